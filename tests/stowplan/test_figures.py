"""Every figure of a comparison is in the table, in CSV and in JSON, with the same value."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from rich.console import Console

from stowplan.answers.assessment import Assessor
from stowplan.answers.compare import Comparison, compare
from stowplan.answers.figures import FRACTION
from stowplan.answers.measures import measure
from stowplan.documents.comparison import comparison_document
from stowplan.models.kubernetes.devices import GPU_COUNT
from stowplan.models.problem import Tier
from stowplan.models.result import TRIVIAL, TierOutcome, revalued
from stowplan.models.settings import Settings
from stowplan.optimizer.portfolio import Options
from stowplan.plugins_compat import admission
from stowplan.report.rows import comparison_rows, write_csv
from stowplan.report.tables import show_names
from stowplan.report.text import show_comparison, show_figures
from stowplan.report.words import figure as written
from stowplan.settings.problem import make_problem
from tests.support.clusters import node, pod, snapshot

QUICK = Options(time_limit=2, deterministic=True)
LONG = "a-namespace-with-a-rather-long-name/and-a-workload-whose-name-is-longer-still-7d9c5b6f4-x2x9q"


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """Two full nodes, one that is over its capacity, and pods that wait: four placements, and violations."""
    cluster = snapshot(
        nodes=[node("n0", cpu="1"), node("n1", cpu="4", extended={GPU_COUNT: "1"}), node("n2", cpu="4")],
        pods=[
            *(pod(f"a{i}", "n0", owner="ReplicaSet/a") for i in range(2)),
            *(pod(f"b{i}", "n1", owner="ReplicaSet/b") for i in range(3)),
            pod("gpu", owner="ReplicaSet/g", extended={GPU_COUNT: "1"}),
            pod("large", owner="ReplicaSet/l", cpu="5"),
        ],
    )
    return compare(make_problem(cluster, Settings()), QUICK)


def printed(show: Any, width: int = 200) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    show(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_every_figure_is_in_table_csv_and_json(comparison: Comparison) -> None:
    table = printed(lambda console: show_figures(console, comparison, wide=True))
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(write_csv(comparison_rows(comparison))))}
    document = comparison_document(comparison, Settings()).model_dump(mode="json", by_alias=True)
    assert len({one.name for one in comparison.figures}) == len(comparison.figures) > 25
    names = [column.name for column in comparison.columns]
    assert rows["figure"] == ["unit", *names, "bound"]
    assert list(document["placements"]) == names
    lines = iter(table[2:])
    for one in comparison.figures:
        line = next(lines)
        assert line.startswith(one.title)
        unit, *cells = rows[one.name]
        assert unit == one.unit
        assert cells[-1] == ("" if one.bound is None else str(one.bound))
        for column, cell in zip(comparison.columns, cells, strict=False):
            value: Any = document["placements"][column.name]
            for part in one.key:
                value = value[part]
            assert value == one.value(column.measures)
            assert cell == ("" if value is None else str(value))
            shown = "-" if value is None else f"{value:.1%}" if one.unit == FRACTION else written(value)
            assert shown in line.split()


def test_json_has_nothing_that_is_no_figure(comparison: Comparison) -> None:
    def leaves(tree: Any) -> int:
        return sum(map(leaves, tree.values())) if isinstance(tree, dict) else 1

    document = comparison_document(comparison, Settings())
    assert {leaves(tree) for tree in document.placements.values()} == {
        len(comparison.figures) + len(comparison.node_figures)
    }


def test_a_comparison_fits_a_terminal(comparison: Comparison) -> None:
    lines = printed(lambda console: show_figures(console, comparison), width=80)
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("pods scheduled") for line in lines)
    text = "\n".join(printed(lambda console: show_comparison(console, comparison), width=80))
    assert "1 violated constraint today: 1 resolved, 0 remaining" in text
    assert text.count("Lower is better") == 1
    assert "squared percentage points" in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_names_are_never_broken(width: int) -> None:
    rows = [(LONG, "ip-10-0-12-34.eu-central-1.compute.internal", "→", "n1"), ("short", "n1", "→", "n2")]
    lines = printed(lambda console: show_names(console, ("POD", "FROM", "", "TO"), rows), width)
    assert any(LONG in line for line in lines)
    assert any("ip-10-0-12-34.eu-central-1.compute.internal" in line for line in lines)


def test_no_placement_is_judged_twice(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[Any] = []
    rejections = admission.rejections

    def counted(framework: Any, assignment: Any, *more: Any) -> Any:
        judged.append(assignment)
        return rejections(framework, assignment, *more)

    monkeypatch.setattr(admission, "rejections", counted)
    again = compare(comparison.compiled, QUICK)
    assert len(again.columns) == 4
    assert len(judged) <= 4
    assert all(one != other for i, one in enumerate(judged) for other in judged[:i])


def test_what_a_solution_knows_is_what_is_measured_anew(comparison: Comparison) -> None:
    for column in comparison.columns:
        assignments = {"today": comparison.compiled.snapshot.assignment, "stowplan": comparison.solution.assignment}
        if column.name in assignments:
            assert measure(comparison.compiled, assignments[column.name]) == column.measures
    assessor = Assessor(comparison.compiled)
    assert assessor.values(comparison.solution.assignment) == comparison.solution.outcome.values


def outcomes(*tiers: tuple[int, int]) -> list[TierOutcome]:
    return [TierOutcome(Tier(f"t{i}", ()), value, bound, "proof", 0.0) for i, (value, bound) in enumerate(tiers)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((5, 7, 9), [(5, "proof"), (6, "proof"), (2, "proof")]),
        ((5, 8, 9), [(5, "proof"), (6, "proof"), (0, TRIVIAL)]),  # a tier above got worse
        ((6, 6, 9), [(5, "proof"), (0, TRIVIAL), (0, TRIVIAL)]),
        ((5, 6, 9), [(5, "proof"), (6, "proof"), (2, "proof")]),  # better, so among those it was proven of
        ((5, 7, 1), [(5, "proof"), (6, "proof"), (0, TRIVIAL)]),  # refuted
    ],
)
def test_a_bound_holds_while_no_tier_above_is_worse(values: tuple[int, ...], expected: list[tuple[int, str]]) -> None:
    found = revalued(outcomes((5, 5), (7, 6), (9, 2)), values)
    assert tuple(tier.value for tier in found) == values
    assert [(tier.bound, tier.bound_by) for tier in found] == expected
