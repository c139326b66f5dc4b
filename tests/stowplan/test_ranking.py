"""Moves in the order of what they bring: the values are those of the evaluator, and the first moves are the best."""

from __future__ import annotations

import csv
import io
import random

import pytest
from rich.console import Console

from stowplan.answers.compare import BEST, TODAY, Comparison, compare
from stowplan.answers.ranking import rank, worth, worth_words
from stowplan.answers.solve import Solution, solve_snapshot
from stowplan.documents.comparison import comparison_document
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import PRESETS
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.report.rows import comparison_rows, write_csv
from stowplan.report.text import show_comparison
from stowplan.settings.problem import make_problem
from tests.support.choices import Seeded
from tests.support.clusters import node, pod, snapshot
from tests.support.random_clusters import random_cluster

QUICK = Options(time_limit=2, deterministic=True)
LONG = "shop-with-a-long-name/checkout-service-with-a-long-name-7d9c5b6f4-x2x9q"


def solved(cluster: Snapshot, objective: str = "balance") -> Solution:
    return solve_snapshot(make_problem(cluster, Settings(objective=objective)), QUICK)


def crowded() -> Snapshot:
    """One node with a large pod and small ones, and two empty nodes."""
    sizes = {"large": "2500m", "middle": "1", **{f"small-{i}": "100m" for i in range(3)}}
    pods = [pod(name, "n0", cpu=cpu, owner=f"ReplicaSet/{name}") for name, cpu in sizes.items()]
    return snapshot(nodes=[node(f"n{i}") for i in range(3)], pods=pods)


@pytest.mark.parametrize("seed", range(12))
def test_values_after_each_move_are_those_of_the_evaluator(seed: int) -> None:
    names = list(PRESETS)
    found = solved(random_cluster(Seeded(seed), nodes=4, pods=10, broken=seed % 2 == 1), names[seed % len(names)])
    ranked = rank(found.assessment)
    assert {one.move.pod.key for one in ranked} == {move.pod.key for move in found.moves}
    placed = found.compiled.snapshot.assignment
    moves = 0
    for one in ranked:
        placed = placed.moved([(one.move.pod.key, one.move.target)])
        moves += bool(one.move.source)
        evaluation = found.assessor.assess(placed).evaluation
        assert one.moves == moves
        assert one.values is None or (evaluation.legal and evaluation.values == one.values)
    if ranked:
        assert ranked[-1].values == found.evaluation.values


def test_the_move_that_brings_most_is_first() -> None:
    """A node with 2.5 + 1 + 0.3 CPU beside empty ones: no other move alone is worth more than the first."""
    found = solved(crowded())
    ranked = rank(found.assessment)
    before = found.before.values
    first = ranked[0].values
    assert first is not None
    for other in ranked[1:]:
        alone = found.assessor.values(
            found.compiled.snapshot.assignment.moved([(other.move.pod.key, other.move.target)])
        )
        assert first <= alone
    (told,) = worth(found.compiled.problem, before, ranked)
    assert told.tier == "imbalance"
    gain = before[-1] - found.evaluation.values[-1]
    by_then = next(one for one in ranked if one.moves == told.moves)
    assert by_then.values is not None
    assert told.share == pytest.approx((before[-1] - by_then.values[-1]) / gain)
    assert told.share >= 0.8


def test_moves_that_need_each_other_come_together() -> None:
    """Two pods change places between full nodes: neither goes alone, so nothing is said of the first."""
    pods = [
        pod("a", "n0", cpu="4", owner="ReplicaSet/a", nodeSelector={"kubernetes.io/hostname": "n1"}),
        pod("b", "n1", cpu="4", owner="ReplicaSet/b"),
    ]
    found = solved(snapshot(nodes=[node("n0"), node("n1")], pods=pods))
    ranked = rank(found.assessment)
    assert [one.moves for one in ranked] == [1, 2]
    assert ranked[0].values is None
    assert ranked[1].values == found.evaluation.values


def test_ranking_ends_where_evaluations_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stowplan.answers.ranking.EVALUATIONS", 3)
    found = solved(crowded())
    ranked = rank(found.assessment)
    assert len(ranked) == len(found.moves)
    assert ranked[-1].values == found.evaluation.values


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    rng = random.Random(1)
    pods = [
        pod(
            f"{LONG.partition('/')[2]}-{i}",
            "n0",
            namespace=LONG.partition("/")[0],
            cpu=f"{rng.randint(1, 9)}00m",
            owner=f"ReplicaSet/a{i}",
        )
        for i in range(8)
    ]
    cluster = snapshot(nodes=[node(f"ip-10-0-195-{i}.ec2.internal" if i else "n0") for i in range(3)], pods=pods)
    return compare(make_problem(cluster), QUICK)


def test_the_comparison_names_moves_nodes_and_their_worth(comparison: Comparison) -> None:
    document = comparison_document(comparison, Settings()).model_dump(mode="json", by_alias=True)
    total = comparison.solution.evaluation.moves
    assert len(document["moves"]) == total > 2
    assert document["moves"][-1]["moves"] == total
    assert document["moves"][0]["why"]
    number = document["recommendedMoves"]
    assert 0 < number < total
    assert worth_words(comparison.worth, total).endswith(
        f" of the improvement in imbalance. Recommended: --max-moves {number}."
    )
    for name in (TODAY, BEST):
        nodes = document["placements"][name]["nodes"]
        assert sum(one["pods"] for one in nodes.values()) == 8
        column = comparison.column(name)
        assert column is not None
        assert sum(one["requested"]["cpu"] for one in nodes.values()) == column.usage[0].requested
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(write_csv(comparison_rows(comparison))))}
    first = document["moves"][0]
    cells = rows[f"pods.{first['namespace']}/{first['name']}"]
    assert (cells[1], cells[-2]) == (first["source"], first["target"])
    assert int(rows["nodes.n0.pods"][1]) == 8


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("wide", [False, True])
def test_names_are_never_broken(comparison: Comparison, width: int, wide: bool) -> None:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    show_comparison(console, comparison, wide=wide)
    assert isinstance(console.file, io.StringIO)
    words = set(console.file.getvalue().split())
    for one in comparison.moves:
        assert {one.move.pod.key, one.move.source, one.move.target} <= words
    assert {n.name for n in comparison.compiled.snapshot.nodes} <= words


def test_what_is_resolved_is_named() -> None:
    found = compare(make_problem(synthetic_snapshot(4, 12, seed=2, fill=0.5)), QUICK, scores=False)
    assert not found.resolved
    pods = [pod(f"p{i}", "n0", cpu=f"{2 + i}", owner=f"ReplicaSet/p{i}") for i in range(2)]
    found = compare(make_problem(snapshot(nodes=[node("n0"), node("n1")], pods=pods)), QUICK, scores=False)
    (one,) = found.resolved
    assert (str(one.origin), one.place, one.before) == ("NodeResourcesFit (cpu)", "n0", 1000)
    console = Console(file=io.StringIO(), width=100, color_system=None)
    show_comparison(console, found)
    assert isinstance(console.file, io.StringIO)
    assert "resolved: NodeResourcesFit (cpu) at n0: 1 CPU too much today" in console.file.getvalue()
