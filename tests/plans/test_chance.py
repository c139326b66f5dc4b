"""What chance makes of a plan: ties, sampled nodes, the order of events, and how results are distributed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.plan import Plan
from stowplan.models.snapshot import Snapshot
from stowplan.planning.replay import CompiledObjective
from stowplan.plans.replay.distribution import (
    Certainty,
    Distribution,
    distribution,
    gives_up_little,
    replay_by_chance,
)
from stowplan.plans.replay.outcome import ObjectiveValue, ReplayOutcome
from stowplan.plans.replay.simulated_cluster import SimulatedCluster
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.sampling import chunk_size
from stowplan.plugins_compat.framework.scheduler import examine
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from stowplan.plugins_compat.simulate import simulate
from tests.plans.test_replay import owned
from tests.support.clusters import node, pod, snapshot
from tests.support.plans import move, plan


def played(
    cluster: Snapshot,
    document: Plan,
    runs: int = 20,
    release: Release = K36,
    objective: str = "balance",
    *,
    steered: bool = False,
) -> list[ReplayOutcome]:
    profile = default_profile(release)
    compiled = compile_problem(cluster, profile, PRESETS[objective])
    worth = CompiledObjective(compiled)
    return replay_by_chance(
        document, cluster, profile, worth, runs=runs, steered=steered, signatures=compiled.signatures
    )


def tied() -> Snapshot:
    """A crowded node and two empty ones."""
    return snapshot(nodes=[node("n1"), node("n2"), node("n3")], pods=[owned(f"web-{c}", "n1") for c in "abc"])


@pytest.mark.parametrize("release", [K24, K36])
def test_of_equal_nodes_any_may_be_taken_and_all_are_as_good(release: Release) -> None:
    document = plan([move("web-a", "n1", "n2")])
    outcomes = played(tied(), document, release=release)
    assert {outcome.landings[0].node for outcome in outcomes} == {"n2", "n3"}
    found = distribution(document, outcomes)
    assert found.certainty == {"m-web-a": Certainty.EQUALLY_GOOD}
    assert (found.runs, found.finished, found.mean) == (20, 20, 1.0)


def test_a_landing_is_certain_where_one_node_is_best_in_every_order() -> None:
    cluster = snapshot(
        nodes=[node("n1"), node("n2"), node("n3", unschedulable=True)], pods=[owned(f"web-{c}", "n1") for c in "abc"]
    )
    document = plan([move("web-a", "n1", "n2")])
    found = distribution(document, played(cluster, document))
    assert found.certainty == {"m-web-a": Certainty.CERTAIN}


def test_a_landing_by_chance_ends_the_run_where_apply_stops() -> None:
    """n2 and n3 are as full as each other, but only on n2 is a pod of the kind that packing counts."""
    local = owned("agent-b", "n3", kind="DaemonSet", cpu="1")
    pods = [owned("web-a", "n1"), owned("db-a", "n2", cpu="1"), local]
    cluster = snapshot(nodes=[node("n1", unschedulable=True), node("n2"), node("n3")], pods=pods)
    document = plan([move("web-a", "n1", "n2")])
    outcomes = played(cluster, document, objective="pack")
    found = distribution(document, outcomes)
    assert found.certainty["m-web-a"] is Certainty.BY_CHANCE
    assert 0 < found.finished < found.runs
    assert found.halts[0][0] == "wave 1: default/web-a is on n3, planned for n2"
    assert found.quantile(0.05) == 0.0
    assert found.quantile(0.95) == 1.0


def test_runs_are_reproducible() -> None:
    document = plan([move("web-a", "n1", "n2")])
    first, second = (played(tied(), document, 8) for _ in range(2))
    assert [o.landings[0].node for o in first] == [o.landings[0].node for o in second]


def test_quantiles_are_rather_too_wide() -> None:
    found = Distribution(20, tuple(i / 20 for i in range(20)), 20, (), {})
    assert (found.quantile(0.05), found.quantile(0.95)) == (0.0, 0.95)
    assert found.cautious(0.9) == 0.1
    assert sum(share >= 0.1 for share in found.kept) == 18
    assert Distribution(3, (), 3, (), {}).mean is None


def test_ties_are_told() -> None:
    cluster = snapshot(nodes=[node("n1"), node("n2"), node("n3", cpu="2")], pods=[pod("new")])
    profile = default_profile(K36)
    (decision,) = simulate(cluster, profile, cluster.pods, {}).decisions
    assert {decision.node, *decision.tied} == {0, 1}
    steady = replace(profile, release=replace(K36, tie_break="first"), tie_break="first")
    assert simulate(cluster, steady, cluster.pods, {}).decisions[0].tied == ()


def test_of_equal_nodes_any_may_be_taken_whatever_their_order() -> None:
    """One list of nodes, one pod: the release itself always takes the same node, and a cluster does not."""
    cluster = snapshot(nodes=[node(f"n{i}") for i in range(5)], pods=[pod("new")])

    def taken(*, by_chance: bool) -> set[int | None]:
        framework = SimulatedCluster(cluster, default_profile(K36), by_chance=by_chance).framework
        return {examine(framework, cluster.pods[0]).node for _ in range(50)}

    assert len(taken(by_chance=False)) == 1
    assert taken(by_chance=True) == set(range(5))


@pytest.mark.parametrize(("steered", "certainty"), [(False, Certainty.BY_CHANCE), (True, Certainty.CERTAIN)])
def test_replays_look_at_as_many_nodes_as_the_scheduler_does(steered: bool, certainty: Certainty) -> None:
    """Of 160 nodes 100 are looked at, and the one that is planned is not always among them."""
    rest = [owned(f"agent-{i}", f"n{i}", kind="DaemonSet", cpu="1") for i in range(1, 160)]
    cluster = snapshot(nodes=[node(f"n{i}") for i in range(160)], pods=[*rest, owned("web-a", "n1", cpu="3")])
    document = plan([move("web-a", "n1", "n0")])
    found = distribution(document, played(cluster, document, 8, steered=steered))
    assert found.certainty == {"m-web-a": certainty}


def test_which_nodes_are_looked_at_is_left_to_chance() -> None:
    cluster = snapshot(nodes=[node(f"n{i:03}") for i in range(200)], pods=[pod("new")])
    profile = replace(default_profile(K36), samples=True)
    seen = set()
    for seed in range(3):
        framework = Framework(profile, ClusterState(cluster, profile.release))
        assert framework.sampler is not None
        framework.sampler.leave_to_chance(random.Random(seed), 200)
        diagnosis = examine(framework, cluster.pods[0]).diagnosis
        assert len(diagnosis.nodes) == 100
        seen.add(frozenset(diagnosis.nodes.tolist()))
    assert len(seen) == 3


@pytest.mark.parametrize(("nodes", "size"), [(0, 1), (15, 1), (100, 7), (400, 20), (10000, 100)])
def test_chunks_are_those_of_upstream(nodes: int, size: int) -> None:
    assert chunk_size(nodes) == size


def test_an_end_is_worth_a_tenth_of_the_gain_of_each_tier_and_no_more() -> None:
    gain = ObjectiveValue((3, 200), True), ObjectiveValue((1, 100), True)
    best = (False, (1, 100))
    assert gives_up_little((False, (1, 110)), best, gain)
    assert gives_up_little((False, (1, 90)), best, gain)
    assert not gives_up_little((False, (1, 111)), best, gain)
    assert not gives_up_little((False, (2, 90)), best, gain)
    assert not gives_up_little((True, (1, 100)), best, gain)  # a rule is violated
    worsened = ObjectiveValue((1, 100), True), ObjectiveValue((1, 120), True)
    assert not gives_up_little((False, (1, 121)), (False, (1, 120)), worsened)
