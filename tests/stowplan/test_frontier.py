"""Moves against gain: no point is worse than the one before, and none is worse than enumeration."""

from __future__ import annotations

import csv
import io
import itertools
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from stowplan.answers.frontier import Frontier, climb, ladder
from stowplan.answers.nested import nest
from stowplan.cli import run
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.errors import InputError
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.report.frontier import BAR, frontier_chart, headline
from stowplan.report.tables import bar
from stowplan.settings.problem import make_problem
from tests.plans.test_replay import owned
from tests.support.cases import cases
from tests.support.choices import Choices, Seeded, drawn
from tests.support.clusters import node, snapshot
from tests.support.malformed import listed


def problem(cluster: Snapshot, objective: str = "balance") -> Compiled:
    return make_problem(cluster, Settings(objective=objective))


def climbed(cluster: Snapshot, objective: str = "balance", limits: list[int] | None = None) -> Frontier:
    compiled = problem(cluster, objective)
    return climb(compiled, Options(time_limit=1, deterministic=True), limits=limits)


def random_crowd(choices: Choices, *, pods: int = 6, nodes: int = 3) -> Snapshot:
    """Build a cluster with all pods on one node."""
    made = [owned(f"{choices.one('abc')}{i}-x", "n0", cpu=f"{choices.integer(1, 6)}00m") for i in range(pods)]
    return snapshot(nodes=[node(f"n{i}") for i in range(nodes)], pods=made)


def crowd(seed: int = 0, pods: int = 6) -> Snapshot:
    """Return one such cluster, always the same."""
    return random_crowd(Seeded(seed), pods=pods)


@cases(2, cluster=drawn(random_crowd))
def test_every_point_is_the_best_there_is(cluster: Snapshot) -> None:
    found = climbed(cluster, limits=[0, 1, 2, 3])
    evaluator = Evaluator(found.compiled.problem)
    names = [n.name for n in cluster.nodes]
    everything: list[tuple[int, tuple[int, ...]]] = []
    for chosen in itertools.product(names, repeat=len(cluster.pods)):
        where: Mapping[str, str] = {p.key: at for p, at in zip(cluster.pods, chosen, strict=True)}
        evaluation = evaluator.evaluate(found.compiled.placement(where))
        if evaluation.legal:
            everything.append((evaluation.moves, evaluation.values))
    for point in found.points:
        best = min(values for moves, values in everything if point.limit is None or moves <= point.limit)
        assert point.values == best
        assert point.limit is None or point.moves <= point.limit
        assert all(tier.bound <= tier.value for tier in point.tiers)


def test_values_never_rise_and_shares_never_fall() -> None:
    compiled = problem(synthetic_snapshot(6, 30, seed=3))
    found = climb(compiled, Options(time_limit=0.2, deterministic=True), limits=[0, 1, 3, 8])
    assert found.complete
    assert found.points[-1].limit is None
    assert all(a.values >= b.values for a, b in pairwise(found.points))
    shares = [point.share for point in found.points if point.share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert found.points[0].limit == 0


def test_where_no_move_helps() -> None:
    cluster = snapshot(nodes=[node("n1"), node("n2")], pods=[owned("a-x", "n1"), owned("b-x", "n2")])
    found = climbed(cluster)
    assert {point.share for point in found.points} == {None}
    assert headline(found) == "No move improves anything."


def test_the_ladder() -> None:
    compiled = problem(crowd(pods=6))
    assert ladder(compiled) == [0, 1, 2, 5, None]
    assert ladder(compiled, [4, 2, 2, 99]) == [2, 4, None]
    with pytest.raises(InputError, match="--moves: is -1"):
        ladder(compiled, [-1])


def test_a_stop_leaves_what_is_known() -> None:
    stop = Stop()
    found = climb(problem(crowd()), Options(time_limit=3, deterministic=True), stop=stop, tell=lambda point: stop.set())
    assert len(found.points) == 1
    assert not found.complete
    assert headline(found) == "Interrupted before any move was tried: nothing is known about moves."


def test_what_was_not_searched_is_not_called_useless() -> None:
    """Interrupted after two moves that bring nothing, or with a search that proves nothing: more moves may help."""
    cluster = snapshot(
        nodes=[node("n1"), node("n2")], pods=[owned("a-x", "n1"), owned("b-x", "n2"), owned("c-x", "n1")]
    )
    found = climbed(cluster, limits=[0, 1])
    cut = replace(found, points=[replace(point, shares={}) for point in found.points[:2]], complete=False)
    assert headline(cut) == "Interrupted: no improvement found with up to 1 move; higher limits are not known."
    last = found.points[-1]
    opened = [replace(tier, bound=0, value=tier.value + 1) for tier in last.tiers]
    unproven = replace(found, points=[replace(last, shares={}, tiers=opened)])
    assert headline(unproven) == "No improvement found; it is not proven that there is none."


@cases(2, cluster=drawn(random_crowd))
def test_each_nested_plan_begins_with_the_one_before(cluster: Snapshot) -> None:
    found = nest(climbed(cluster, limits=[0, 1, 2, 4]))
    assert len(found.nested) == len(found.points)
    today = cluster.assignment
    evaluator = Evaluator(found.compiled.problem)
    for free, nested in zip(found.points, found.nested, strict=True):
        evaluation = evaluator.evaluate(found.compiled.placement(nested.assignment))
        assert evaluation.legal
        assert evaluation.values == nested.values >= free.values
        assert len(nested.assignment.moved_from(today)) == nested.moves
        assert nested.limit is None or nested.moves <= nested.limit
        assert all(share - nested.shares[t] <= found.nesting_loss for t, share in free.shares.items())
    for before, after in pairwise(found.nested):
        kept = before.assignment.moved_from(today)
        assert all(after.assignment[key] == change[1] for key, change in kept.items())
        assert before.values >= after.values


def test_what_is_recommended_brings_most_of_every_tier() -> None:
    found = climbed(crowd(1))
    best, fewer = found.points[-1], found.points[0]
    tiers = [replace(tier, value=0) for tier in best.tiers]
    some = replace(fewer, moves=3, tiers=tiers, shares={1: 1.0, 2: 0.82})
    most = replace(fewer, moves=9, tiers=tiers, shares={1: 1.0, 2: 1.0})
    less = replace(fewer, moves=1, tiers=tiers, shares={1: 1.0, 2: 0.5})
    two = replace(found, points=[less, some, most])
    assert two.recommended is some
    said = headline(two)
    assert "3 moves give at least 82% of the improvement" in said
    assert said.endswith("each further one 3.00%. Recommended: --max-moves 3.")
    assert replace(found, points=[replace(fewer, shares={})]).recommended is None


def test_bars_are_as_long_as_shares() -> None:
    assert [len(bar(share, BAR)) for share in (-1.0, 0.0, 0.5, 1.0, 2.0)] == [0, 0, 8, 16, 16]
    assert bar(1 / 24 / 8, BAR) == "▏"


def test_the_drawing_is_a_stair_through_the_points() -> None:
    found = climbed(crowd(1))
    svg = ElementTree.fromstring(frontier_chart(found))
    dots = svg.findall(".//{*}circle")
    assert len(dots) == len(found.points)
    heights = [float(dot.attrib["cy"]) for dot in dots]
    assert heights == sorted(heights, reverse=True)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, svg = tmp_path / "dump.json", tmp_path / "curve.svg"
    pods = [owned(f"web-{c}", "n1") for c in "abc"]
    path.write_text(json.dumps(listed(node("n1"), node("n2"), *pods)))
    common = ["frontier", str(path), "-t", "2", "--deterministic"]
    assert run([*common, "--svg", str(svg)]) == 0
    printed = capsys.readouterr()
    assert "1 move gives all of the improvement." in printed.out
    assert printed.err.splitlines()[0].startswith("stowplan: at most 0 moves: imbalance ")
    assert svg.read_text().startswith("<svg")
    assert run([*common, "-q", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [point["limit"] for point in document["points"]] == [0, 1, 2, None]
    assert [point["moves"] for point in document["points"]] == [0, 1, 1, 1]
    assert [point["share"] for point in document["points"]] == [0, 1, 1, 1]
    assert run([*common, "-q", "-o", "csv", "--moves", "2"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["limit"] for row in rows] == ["2", ""]
    assert run([*common, "--nested"]) == 0
    assert "NESTED: each plan begins with the moves of the one before. That costs nothing." in capsys.readouterr().out
    assert run([*common, "--nested", "-q", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [point["moves"] for point in document["nested"]] == [0, 1, 1, 1]
    assert (document["recommendedMoves"], document["nestingLoss"]) == (1, 0)
    assert run([*common, "-q", "--svg", str(tmp_path / "no" / "such.svg")]) == 1
