"""Plans arranged for a cluster where nobody steers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest

from stowplan.models.objective import PRESETS, REPAIRED, Objective
from stowplan.models.plan import MoveDocument, Plan
from stowplan.models.snapshot import Snapshot
from stowplan.planning.replay import CompiledObjective
from stowplan.planning.unassisted import remarks
from stowplan.plans.any_order import order_problems
from stowplan.plans.cordons import cordon
from stowplan.plans.move import Move
from stowplan.plans.replay.distribution import Certainty
from stowplan.plans.replay.execution import replay
from stowplan.plans.replay.outcome import MoveVerdict
from stowplan.plans.unassisted import Unassisted, UnassistedLimits, arrange
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.plans.test_replay import owned
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import node, snapshot
from tests.support.plans import move, plan

PROFILE = default_profile(K36)


def alone(
    cluster: Snapshot,
    given: Plan,
    objective: str | Objective = "pack",
    may_cordon: bool = True,
    waves: int = 20,
    stopped: Callable[[], bool] = lambda: False,
) -> Unassisted:
    chosen = PRESETS[objective] if isinstance(objective, str) else objective
    compiled = compile_problem(cluster, PROFILE, chosen)
    worth = CompiledObjective(compiled)
    tiers = compiled.problem.tiers
    given = given.model_copy(
        update={"tiers": tuple(given.tiers[0].model_copy(update={"name": tier.name}) for tier in tiers)}
    )
    return arrange(
        given,
        cluster,
        PROFILE,
        worth,
        lambda where: [t.shown(v) for t, v in zip(tiers, worth(where).values, strict=True)],
        limits=UnassistedLimits(cordons=10 if may_cordon else 0, waves=waves),
        stopped=stopped,
    )


def packable() -> Snapshot:
    """Two nodes that one could do without, to which kube-scheduler would send the pod back."""
    return snapshot(
        nodes=[node("n1"), node("n2"), node("n3")],
        pods=[owned("web-a", "n1"), owned("db-a", "n2", cpu="2"), owned("db-b", "n3", cpu="1500m")],
    )


def test_a_cordon_does_what_steering_would() -> None:
    found = alone(packable(), plan([move("web-a", "n1", "n2")]))
    assert found.given.landings[0].verdict is MoveVerdict.NEEDS_STEERING
    (wave,) = found.plan.waves
    assert "n1" in wave.cordon
    assert not set(wave.cordon) & {m.target for m in wave.moves}
    assert found.outcome.by_itself
    assert (found.kept_as_given, found.kept) == (0, 1)


def test_without_cordons_a_move_that_comes_to_nothing_is_left_out() -> None:
    found = alone(packable(), plan([move("web-a", "n1", "n2")]), may_cordon=False)
    assert not found.plan.waves
    assert not found.plan.tokens
    assert [m.pod.name for m in found.given_up] == ["web-a"]
    assert not found.plan.steered
    assert found.plan.given_up == ("default/web-a: left out, since nothing steers it",)
    assert found.kept == 0


def test_the_order_can_do_it_without_a_cordon() -> None:
    """Each node takes one of two pods; the small one fits both, and takes the wrong one if it comes first."""
    pods = [owned("small-a", "n1", cpu="1"), owned("big-a", "n1", cpu="3")]
    cluster = snapshot(nodes=[node("n1", unschedulable=True), node("n2", cpu="3"), node("n3", cpu="1")], pods=pods)
    small = move("small-a", "n1", "n3").model_copy(update={"requests": {"cpu": "1"}})
    big = move("big-a", "n1", "n2").model_copy(update={"requests": {"cpu": "3"}})
    objective = PRESETS["pack"].model_copy(update={"repair": (*REPAIRED, "cordons")})  # so that both have to leave
    found = alone(cluster, plan([small, big]), objective, may_cordon=False)
    assert not found.given.by_itself
    assert found.outcome.by_itself
    assert found.kept == 1
    assert [m.pod.name for m in found.plan.moves] == ["big-a", "small-a"]


def test_the_plan_aims_at_where_pods_land() -> None:
    nodes = [node(f"n{i}") for i in range(1, 5)]
    cluster = snapshot(nodes=nodes, pods=[owned(f"web-{c}", "n1") for c in "abc"])
    found = alone(cluster, plan([move("web-a", "n1", "n4"), move("web-b", "n1", "n3")]), "balance")
    assert all(landing.verdict is MoveVerdict.PLANNED for landing in found.outcome.landings)
    assert sorted(str(m.target) for m in found.plan.moves) == sorted(
        found.outcome.assignment[m.pod.key] for m in found.plan.moves
    )
    assert sum(token.count for token in found.plan.tokens) == len(found.plan.moves)


@dataclass(frozen=True)
class Wish:
    """A cluster of owned pods, and up to four moves to other nodes, in two waves."""

    cluster: Snapshot
    moves: list[MoveDocument]


def random_wish(choices: Choices) -> Wish:
    names = [f"n{i}" for i in range(4)]
    pods = [
        owned(f"{choices.one('abc')}-{i}", choices.one(names), cpu=f"{choices.integer(3, 12)}00m")
        for i in range(choices.integer(2, 8))
    ]
    cluster = snapshot(nodes=[node(name) for name in names], pods=pods)
    moves = [
        move(p.name, p.node_name, choices.one([name for name in names if name != p.node_name]))
        for p in choices.some(cluster.pods, min(len(pods), choices.integer(1, 4)))
    ]
    return Wish(cluster, moves)


@pytest.mark.parametrize("may_cordon", [True, False])
@cases(8, at_least={"moves kept": 5, "moves given up": 3}, wish=drawn(random_wish))
def test_whatever_is_left_comes_true(wish: Wish, may_cordon: bool) -> None:
    cluster, moves = wish.cluster, wish.moves
    given = plan(*(wave for wave in (moves[:2], moves[2:]) if wave))
    found = alone(cluster, given, "balance", may_cordon)
    count("moves kept", len(found.plan.moves))
    count("moves given up", len(found.given_up))
    assert found.outcome.by_itself
    assert not found.outcome.halted
    assert found.outcome.actual.legal
    assert found.outcome.actual.values <= found.given.before.values
    assert all(m.source != m.target for m in found.plan.moves)
    assert may_cordon or not any(wave.cordon for wave in found.plan.waves)
    assert {m.id for m in found.plan.moves} | {m.id for m in found.given_up} == {m.id for m in given.moves}
    assert len(found.plan.waves) <= 20
    assert not found.plan.waves or (found.chance.cautious(0.9) or 0) >= 0
    _in_order(found.plan, given)
    _in_any_order(found.plan, cluster)
    compiled = compile_problem(cluster, PROFILE, PRESETS["balance"])
    again = replay(found.plan, cluster, PROFILE, CompiledObjective(compiled))
    assert again.assignment == found.outcome.assignment


def test_what_comes_into_the_room_of_another_comes_after_it() -> None:
    """kube-scheduler does it in one wave, where the second pod waits; but its filters refuse it before that."""
    pods = [owned("web-a", "n2", cpu="2"), owned("db-a", "n1", cpu="3")]
    cluster = snapshot(nodes=[node("n1", unschedulable=True), node("n2", cpu="3"), node("n3", cpu="2")], pods=pods)
    objective = PRESETS["pack"].model_copy(update={"repair": (*REPAIRED, "cordons")})
    found = alone(cluster, plan([move("web-a", "n2", "n3"), move("db-a", "n1", "n2")]), objective)
    assert found.given.by_itself
    assert [[m.pod.name for m in wave.moves] for wave in found.plan.waves] == [["web-a"], ["db-a"]]
    _in_any_order(found.plan, cluster)


def _in_any_order(found: Plan, cluster: Snapshot) -> None:
    there, pods = cluster.assignment, {pod.key: pod for pod in cluster.pods}
    for wave in found.waves:
        moves = [Move(pods[m.pod.key], m.source or "", m.target or "", waits=m.waits) for m in wave.moves]
        assert not order_problems(cordon(cluster, wave.cordon), PROFILE, there, moves)
        there = there.moved((m.pod.key, m.target) for m in wave.moves)


def by_chance() -> Snapshot:
    """A node to be emptied, and two that kube-scheduler cannot tell apart; packing wants the pod on the first."""
    pods = [owned("web-a", "n1"), owned("db-a", "n2", cpu="1"), owned("agent-b", "n3", kind="DaemonSet", cpu="1")]
    return snapshot(nodes=[node("n1", unschedulable=True), node("n2"), node("n3"), node("n4", cpu="100m")], pods=pods)


def test_a_landing_by_chance_is_made_certain_by_a_cordon() -> None:
    found = alone(by_chance(), plan([move("web-a", "n1", "n2")]))
    (wave,) = found.plan.waves
    assert wave.cordon == ("n3",)
    assert [found.chance.count(certainty) for certainty in Certainty] == [1, 0, 0]
    assert found.chance.finished == found.chance.runs
    assert found.given_chance.finished < found.given_chance.runs
    assert [(c.wave, c.node, c.share) for c in found.cordons] == [(1, "n3", 1.0)]
    kept, cordoned = remarks(found)
    assert "100% of the gain is left on average and 100% in 90% of 20 runs with chance, of which 20 come to" in kept
    assert "0 moves given up and 1 cordon; carried out as it was, the plan would keep" in kept
    assert cordoned.startswith("cordon of n3 in wave 1: buys 100% of the gain, and the end in ")


def test_a_landing_by_chance_is_left_out_without_cordons() -> None:
    found = alone(by_chance(), plan([move("web-a", "n1", "n2")]), may_cordon=False)
    assert not found.plan.waves
    assert found.chance.cautious(0.9) == 0
    kept, advice = remarks(found)
    assert "1 move given up and 0 cordons" in kept
    assert advice == "steering is worth it: it keeps the other 100%; plan without --steer none, and use serve"


def test_no_more_waves_than_are_accepted() -> None:
    """The scheduler has to place the big pod first, which takes a wave more than one."""
    pods = [owned("small-a", "n1", cpu="1"), owned("big-a", "n1", cpu="3")]
    cluster = snapshot(nodes=[node("n1", unschedulable=True), node("n2", cpu="3"), node("n3", cpu="1")], pods=pods)
    moves = [
        move("small-a", "n1", "n3").model_copy(update={"requests": {"cpu": "1"}}),
        move("big-a", "n1", "n2").model_copy(update={"requests": {"cpu": "3"}}),
    ]
    objective = PRESETS["pack"].model_copy(update={"repair": (*REPAIRED, "cordons")})
    assert len(alone(cluster, plan(moves), objective, may_cordon=False).plan.waves) == 2
    assert len(alone(cluster, plan(moves), objective, may_cordon=False, waves=1).plan.waves) <= 1


def _in_order(found: Plan, given: Plan) -> None:
    """A move of an earlier wave never comes after one of a later wave: only inside a wave any order is safe."""
    wave_of = {m.id: wave.number for wave in given.waves for m in wave.moves}
    order = [wave_of[m.id] for m in found.moves]
    assert all(a <= b for a, b in pairwise(order))
    assert [wave.number for wave in found.waves] == list(range(1, len(found.waves) + 1))


def test_when_it_is_stopped_the_best_so_far_is_the_answer() -> None:
    found = alone(packable(), plan([move("web-a", "n1", "n2")]), stopped=lambda: True)
    assert found.outcome.by_itself
    assert not found.plan.waves
