"""Moves that are known to be possible one after the other come into waves that hold in any order."""

from __future__ import annotations

import random
from collections.abc import Sequence

from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import Budgets
from stowplan.plans.dry_run import DryRun
from stowplan.plans.move import Move
from stowplan.plans.sequencing import SequencingProblem, WaveSequence, sequence
from stowplan.plans.sequencing.construction import Construction
from stowplan.plans.sequencing.following import Following
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.plans.test_sequencing import budget, running, steps
from tests.support.clusters import node, snapshot

PROFILE = default_profile(K36)


def by_way(cluster: Snapshot, wanted: dict[str, str], *way: tuple[str, str]) -> WaveSequence:
    """Put moves in order where a way of pod names and targets is known; each order is played through."""
    pods = {p.name: p for p in cluster.pods}
    known = on(cluster, *way)
    asked: list[Sequence[Move]] = []

    def find(moves: Sequence[Move]) -> Sequence[Move]:
        asked.append(moves)
        return known

    moves = [Move(pods[name], pods[name].node_name, target) for name, target in wanted.items()]
    budgets = Budgets(cluster)
    found = sequence(SequencingProblem(cluster, PROFILE, cluster.assignment, moves, budgets, way=find))
    for seed in range(20):
        run = DryRun(cluster, PROFILE, budgets=budgets)
        run.expect(move.pod.key for wave in found.waves for move in wave if move.source)
        for wave in found.waves:
            assert not run.carry_out(wave, random.Random(seed))
    assert len(asked) <= 1
    return found


def followed(cluster: Snapshot, *way: tuple[str, str]) -> Construction:
    """Follow a way of pod names and targets."""
    return Following(
        SequencingProblem(cluster, PROFILE, cluster.assignment, (), Budgets(cluster)), on(cluster, *way), set()
    ).run()


def on(cluster: Snapshot, *way: tuple[str, str]) -> list[Move]:
    """Return the moves of a way."""
    pods = {p.name: p for p in cluster.pods}
    at = {p.name: p.node_name for p in cluster.pods}
    known = []
    for name, target in way:
        known.append(Move(pods[name], at[name], target))
        at[name] = target
    return known


def crowded() -> Snapshot:
    """Two pods that change places, which fit on no third node before a third pod has left it."""
    return snapshot(
        nodes=[node("a", cpu="2"), node("b", cpu="2"), node("c", cpu="2"), node("d", cpu="1")],
        pods=[running("x-0", "a", cpu="2"), running("y-0", "b", cpu="2"), running("z-0", "c", cpu="1")],
    )


AROUND = (("z-0", "d"), ("y-0", "c"), ("x-0", "b"), ("y-0", "a"), ("z-0", "c"))


def test_a_pod_that_does_not_move_makes_room_for_a_while() -> None:
    found = by_way(crowded(), {"x-0": "b", "y-0": "a"}, *AROUND)
    assert not found.stuck
    assert steps(found) == [
        [("z-0", "c", "d")],
        [("y-0", "b", "c")],
        [("x-0", "a", "b")],
        [("y-0", "c", "a")],
        [("z-0", "d", "c")],
    ]
    first = {move.pod.name: move for wave in reversed(found.waves) for move in wave}
    last = {move.pod.name: move for wave in found.waves for move in wave}
    assert (first["z-0"].parks, last["z-0"].parks) == (True, False)
    assert last["z-0"].follows is first["z-0"]
    assert found.least_waves <= 5


def test_without_a_way_they_are_stuck() -> None:
    found = by_way(crowded(), {"x-0": "b", "y-0": "a"})
    assert len(found.stuck) == 2
    assert not found.waves


def test_moves_that_do_not_disturb_each_other_are_under_way_together() -> None:
    cluster = snapshot(
        nodes=[node(name, cpu="2") for name in "abcdef"],
        pods=[running(f"p{i}-0", name, cpu="2") for i, name in enumerate("abde")],
    )
    way = [("p0-0", "c"), ("p1-0", "a"), ("p0-0", "b"), ("p2-0", "f"), ("p3-0", "d"), ("p2-0", "e")]
    found = followed(cluster, *way)
    assert not found.stuck
    assert [len(wave) for wave in found.waves] == [2, 2, 2]


def test_a_pod_may_be_parked_twice() -> None:
    found = followed(crowded(), ("z-0", "d"), ("y-0", "c"), ("x-0", "b"), ("x-0", "a"), ("y-0", "b"))
    moved = [move for wave in found.waves for move in wave if move.pod.name == "x-0"]
    assert [(move.source, move.target, move.parks) for move in moved] == [("a", "b", True), ("b", "a", False)]
    assert moved[1].follows is moved[0]
    assert not found.stuck


def test_a_move_that_a_budget_refuses_is_left_out_and_so_is_what_its_pod_would_do_next() -> None:
    cluster = snapshot(
        nodes=[node("a", cpu="2"), node("b", cpu="2"), node("c", cpu="2"), node("d", cpu="1"), node("e", cpu="2")],
        pods=[
            running("x-0", "a", cpu="2"),
            running("y-0", "b", cpu="2"),
            running("z-0", "c", cpu="1"),
            running("q-0", "e", cpu="1"),
        ],
        pod_disruption_budgets=[budget("y", maxUnavailable=0)],
    )
    found = by_way(cluster, {"x-0": "b", "y-0": "a"}, *AROUND)
    assert {one.key for one in found.stuck} >= {"default/y-0", "default/x-0"}
    assert all(move.pod.name not in ("x-0", "y-0") for wave in found.waves for move in wave)


def test_a_pod_whose_later_moves_are_refused_stays_where_it_was_parked() -> None:
    found = followed(crowded(), ("z-0", "d"), ("z-0", "a"), ("y-0", "c"))
    ends = {move.pod.name: move for wave in found.waves for move in wave}
    assert all(not move.parks for move in ends.values())
    assert [one.key for one in found.stuck][:1] == ["default/z-0"]
