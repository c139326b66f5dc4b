"""Drawings say what the numbers say, and use no color that the style sheet of a page does not know."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from stowplan.answers.measures import NodeUsage
from stowplan.html_report.drawings import MOST_POINTS, compact, convergence, first_moves, histogram, ticks, waves
from stowplan.models.plan import Plan, PlanTier
from stowplan.models.problem import Tier
from stowplan.optimizer.run import Step
from tests.support.plans import move, plan


def measures(*shares: int) -> Any:
    """Return measures of nodes that have requests for so many percent of their CPU."""
    nodes = [NodeUsage(f"n{i}", 1, {"cpu": share}, {"cpu": 100}) for i, share in enumerate(shares)]
    return SimpleNamespace(nodes=[*nodes, NodeUsage("none", 0, {"cpu": 0}, {"cpu": 0})])


def titles(svg: str) -> list[str]:
    found = [title.text or "" for title in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]
    return found[1:]  # the first is the title of the drawing


def test_nodes_are_counted_by_tenths_and_the_whole_belongs_to_the_last_of_them() -> None:
    drawing = histogram("cpu", [("today", measures(0, 10, 11, 100, 101)), ("stowplan", measures(50, 50, 50, 50, 50))])
    assert titles(drawing.svg) == [
        "today: 2 nodes at 0 to 10%",
        "today: 1 node at 10 to 20%",
        "today: 1 node at 90 to 100%",
        "today: 1 node above 100%",
        "stowplan: 5 nodes at 40 to 50%",
    ]
    assert "5 nodes" in drawing.caption  # the one that offers nothing is not counted


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 7), (0, 103), (23_003, 50_994), (-3, 5), (0.1, 0.9), (0, 1e9)])
def test_ticks_are_few_round_and_between_the_ends(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 2 <= len(found) <= 7
    assert low <= found[0] <= found[-1] <= high
    steps = {round((b - a) / (high - low), 9) for a, b in pairwise(found)}
    assert len(steps) == 1
    assert re.fullmatch(r"[125]0*", f"{(found[1] - found[0]) * 1e6:.0f}")


def test_values_beside_an_axis_are_short() -> None:
    values = (0, 0.25, 999, 2_500, 10_000, 50_500, 1_000_000, 4_250_000, 3e9, 2e12, -20_000)
    assert [compact(value) for value in values] == (
        ["0", "0.25", "999", "2,500", "10k", "50.5k", "1M", "4.25M", "3G", "2T", "-20k"]
    )


def test_ticks_of_counts_are_whole_and_one_value_has_one_tick() -> None:
    assert ticks(0, 2, whole=True) == [0, 1, 2]
    assert ticks(5, 5) == [5]


TIER = Tier("imbalance", ())
OTHER = Tier("other", ())


def test_a_search_is_drawn_to_its_end_and_only_where_something_changes() -> None:
    steps = [Step(0.0, "start", (8, 5), (0, 5)), Step(1.0, "anneal", (4, 5), (0, 5)), Step(2.0, "cut", (4, 5), (4, 5))]
    (drawing,) = convergence([TIER, OTHER], steps, 10.0)
    assert drawing.caption.startswith("imbalance: ")
    assert [title.split(", ")[-1] for title in titles(drawing.svg)] == ["start", "anneal", "anneal"]
    ends = re.findall(r'd="M[^"]*H([\d.]+) V[\d.]+" fill="none"', drawing.svg)
    assert ends == ["584.0", "584.0"]  # both curves reach the right edge, which is the end of the search
    assert list(convergence([TIER, OTHER], [], 1.0)) == []


def test_long_courses_are_thinned_and_keep_both_ends() -> None:
    course = [(i, 10_000 - i) for i in range(1, 5_001)]
    found = titles(first_moves(TIER, 10_000, course, None).svg)
    assert len(found) == MOST_POINTS
    assert (found[0], found[-1]) == ("today: 10,000", "5,000 moves: 5,000")


def two_waves() -> Plan:
    first = [move("a<b/web-0", "n1", "n2"), move("web-1", "n1", "n2"), move("web-2", None, "n2")]
    made = plan(first, [move("web-3", "n1", None)])
    tier = PlanTier(name="imbalance", unit="", before=9, after=7, bound=1, bound_by="x")
    each = [wave.model_copy(update={"tiers": (8.0 - w,)}) for w, wave in enumerate(made.waves)]
    return made.model_copy(update={"tiers": (tier,), "waves": tuple(each)})


def test_every_move_is_a_block_of_its_wave_with_its_pod_and_nodes() -> None:
    drawing = waves(two_waves())
    assert titles(drawing.svg) == [
        "a<b/web-0: n1 → n2",
        "default/web-1: n1 → n2",
        "default/web-2: (pending) → n2",
        "default/web-3: n1 → (none)",
    ]
    assert "imbalance 9 → 8" in drawing.svg
    assert "imbalance 8 → 7" in drawing.svg
    blocks = re.findall(r'<rect x="([\d.]+)" y="\d+" width="[\d.]+" height="18"', drawing.svg)
    assert blocks == sorted(blocks, key=float)
    assert len(set(blocks)) == 4  # none hides another, and the second wave begins where the first ends


def test_the_style_sheet_knows_every_color_of_drawings() -> None:
    style = files("stowplan.html_report").joinpath("page.css").read_text(encoding="utf-8")
    steps = [Step(0.0, "start", (8,), (0,)), Step(1.0, "anneal", (4,), (1,))]
    shown = measures(10, 80)
    drawn = [
        histogram("cpu", [("today", shown), ("kube-scheduler", shown), ("stowplan", shown)]).svg,
        waves(two_waves()).svg,
        first_moves(TIER, 9, [(1, 5), (2, 4)], 3).svg,
        *(one.svg for one in convergence([TIER], steps, 2.0)),
    ]
    used = set(re.findall(r'(fill|stroke)="(#\w+)"', "".join(drawn)))
    assert len(used) >= 8
    assert {f'[{attribute}="{color}"]' for attribute, color in used} <= set(re.findall(r'\[\w+="#\w+"\]', style))
