"""The compiled score of a final state is that of the plugins, wherever pods are and whatever moves were taken back."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import PRESETS
from stowplan.models.problem import FinalCost, Placement, Problem, ScoreTables
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.final_state.kernel.arrays import Scores, scores_of
from stowplan.optimizer.final_state.kernel.following import begin, change, undo
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocationArgs
from stowplan.plugins_compat.plugins.node_resources_fit import NodeResourcesFitArgs
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K5, K24, K36, Release
from stowplan.settings.problem import make_problem
from tests.optimizer.final_state.test_branching_program import random_problem
from tests.plugins_compat.final_state.test_scorer import random_attraction
from tests.support.brute_force import placements
from tests.support.cases import cases, count
from tests.support.choices import drawn
from tests.support.clusters import HOSTNAME, ZONE, node, pod, snapshot
from tests.support.random_clusters import Setup, clusters, device_clusters, disk_clusters, setups

EVERYTHING = -(1 << 60)


def final_of(problem: Problem) -> FinalCost:
    final = next(tier.final for tier in problem.tiers if tier.final is not None)
    assert final is not None
    return final


def put(scores: Scores, placement: Placement) -> None:
    begin(scores, placement.cls, placement.node, placement.count)


def check_everywhere(problem: Problem, most: int = 12) -> None:
    """Compare the costs of some placements, and of all steps between them, kept and taken back."""
    final = final_of(problem)
    tables = final.tables()
    count("tables", tables is not None)
    if tables is None:
        return
    scores, rng = scores_of(tables, problem.pods), random.Random(0)
    states = list(placements(problem))
    rng.shuffle(states)
    for placement in [problem.start, *states[:most]]:
        put(scores, placement)
        assert tables.every - scores.total[0] == final.cost(placement)
    walk(final, tables, scores, placement, 6, rng)


def walk(
    final: FinalCost, tables: ScoreTables, scores: Scores, placement: Placement, steps: int, rng: random.Random
) -> None:
    """Make steps of one or two moves, legal or not; compare the cost after each, and after half were taken back."""
    state, (_, nodes) = final.state(placement), scores.pods.shape
    for _ in range(steps):
        before, moves = int(scores.total[0]), []
        state.begin()
        for _ in range(rng.choice((1, 1, 2))):
            there = state.placement
            if len(there.cls):
                e = rng.randrange(len(there.cls))
                move = int(there.cls[e]), int(there.node[e]), rng.randrange(nodes)
                moves.append(move)
                state.shift(*move)
        made = np.array(moves, dtype=np.int64).reshape(-1, 3)
        least = rng.choice((EVERYTHING, before))
        complete = change(scores, made, len(moves), least)
        assert complete == (scores.total[1] >= least)
        if complete:
            assert tables.every - scores.total[0] == state.cost
        if not complete or rng.random() < 0.5:
            state.roll_back()
            undo(scores, made, len(moves), before)
        else:
            state.keep()
        assert tables.every - scores.total[0] == state.cost
    kept = [scores.own, scores.compared]
    known = [np.where((scores.pods > 0) & scores.stay, array, 0) for array in kept]
    put(scores, state.placement)
    for array, before_ in zip(kept, known, strict=True):
        assert np.array_equal(np.where((scores.pods > 0) & scores.stay, array, 0), before_)


def check_start(problem: Problem, steps: int = 40, seed: int = 1) -> ScoreTables:
    """Compare the cost at the start, and after steps from there."""
    final = final_of(problem)
    tables = final.tables()
    assert tables is not None
    scores = scores_of(tables, problem.pods)
    put(scores, problem.start)
    assert tables.every - scores.total[0] == final.cost(problem.start)
    walk(final, tables, scores, problem.start, steps, random.Random(seed))
    return tables


@cases(80, at_least={"tables": 60}, cluster=clusters(), setup=setups("kube"))
def test_small_clusters_with_every_kind_of_rule(cluster: Snapshot, setup: Setup) -> None:
    check_everywhere(setup.compile(cluster).problem)


@cases(10, at_least={"tables": 8}, cluster=drawn(random_attraction), setup=setups("kube"))
def test_pods_that_attract_and_repel_each_other(cluster: Snapshot, setup: Setup) -> None:
    check_everywhere(setup.compile(cluster).problem)


@cases(12, at_least={"tables": 6}, cluster=disk_clusters(), setup=setups("kube"))
def test_disks(cluster: Snapshot, setup: Setup) -> None:
    check_everywhere(setup.compile(cluster).problem, 6)


@cases(6, cluster=device_clusters(), setup=setups("kube", more=("GpuShare",)))
def test_devices(cluster: Snapshot, setup: Setup) -> None:
    check_everywhere(setup.compile(cluster).problem, 4)


@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
@pytest.mark.parametrize(("seed", "fill"), [(0, 0.6), (1, 0.9), (2, 0.75)])
def test_generated_clusters(seed: int, fill: float, release: Release) -> None:
    cluster = synthetic_snapshot(14, 110, seed, fill=fill)
    check_start(compile_problem(cluster, default_profile(release), PRESETS["kube"]).problem, 150, seed)


@cases(25, at_least={"tables": 12}, cluster=drawn(random_problem))
def test_scores_of_many_configurations(cluster: Problem) -> None:
    check_everywhere(cluster, 6)


@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
def test_most_allocated_nodes_and_three_resources(release: Release) -> None:
    names = ("cpu", "memory", "ephemeral-storage")
    weighted = [{"name": name, "weight": i + 1} for i, name in enumerate(names)]
    strategy = {"scoringStrategy": {"type": "MostAllocated", "resources": weighted}}
    fit = NodeResourcesFitArgs.model_validate(strategy)
    balanced = NodeResourcesBalancedAllocationArgs.model_validate({"resources": [{"name": name} for name in names]})
    profile = default_profile(release)
    arguments = {**profile.arguments, "NodeResourcesFit": fit, "NodeResourcesBalancedAllocation": balanced}
    cluster = synthetic_snapshot(8, 60, 4)
    problem = compile_problem(cluster, replace(profile, arguments=arguments), PRESETS["kube"]).problem
    tables = check_start(problem, 60, 4)
    assert "most" in {one.kind for one in tables.usage}
    assert {len(one.weight) for one in tables.usage} == {3}


@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
def test_two_constraints_over_hosts(release: Release) -> None:
    """Both weigh by the number of hosts, although the second has the key of the first."""
    cluster = snapshot(
        nodes=[node(f"n{i}", cpu="16", labels={ZONE: f"z{i % 2}"}) for i in range(4)],
        pods=[
            pod(
                f"p{i}",
                f"n{i % 3 if i < 5 else 0}",
                cpu="100m",
                labels={"app": "ab"[i % 2]},
                owner=f"ReplicaSet/{'ab'[i % 2]}",
                topologySpreadConstraints=[spread(app, skew) for app, skew in (("a", 1), ("b", 2))],
            )
            for i in range(9)
        ],
    )
    check_start(compile_problem(cluster, default_profile(release), PRESETS["kube"]).problem)


def spread(app: str, skew: int) -> dict[str, Any]:
    return {
        "maxSkew": skew,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }


@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
@pytest.mark.parametrize("plugin", ["InterPodAffinity", "PodTopologySpread", "NodePorts", "NodeResourcesFit"])
def test_a_filter_that_is_turned_off_refuses_nothing(plugin: str, release: Release) -> None:
    """The plugin stays on as PreFilter, as where a configuration names the filter alone."""
    configuration = {
        "apiVersion": f"kubescheduler.config.k8s.io/{release.config_versions[-1]}",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"disabled": [{"name": plugin}]}}}],
    }
    profile = make_profiles(configuration, release)["default-scheduler"]
    apart = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "a"}}}
    asked: dict[str, Any] = {
        "InterPodAffinity": {
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
        },
        "PodTopologySpread": {"topologySpreadConstraints": [{**spread("a", 1), "whenUnsatisfiable": "DoNotSchedule"}]},
        "NodePorts": {"ports": [{"hostPort": 80}]},
        "NodeResourcesFit": {},
    }[plugin]
    pods = [pod(f"p{i}", f"n{i % 2}", cpu="1", labels={"app": "a"}, owner="ReplicaSet/a", **asked) for i in range(7)]
    nodes = [node(f"n{i}", cpu="3", labels={ZONE: f"z{i % 2}"}) for i in range(3)]
    check_start(compile_problem(snapshot(nodes=nodes, pods=pods), profile, PRESETS["kube"]).problem)


@pytest.mark.parametrize("strategy", ["LeastAllocated", "MostAllocated"])
def test_a_strategy_whose_resources_no_node_has(strategy: str) -> None:
    resources = [{"name": "example.com/none", "weight": 5}]
    fit = NodeResourcesFitArgs.model_validate({"scoringStrategy": {"type": strategy, "resources": resources}})
    profile = default_profile(K36)
    profile = replace(profile, arguments={**profile.arguments, "NodeResourcesFit": fit})
    problem = compile_problem(synthetic_snapshot(6, 40, 1), profile, PRESETS["kube"]).problem
    check_start(problem)
    assert final_of(problem).relaxation(problem.start)


def test_what_is_not_known_is_left_to_the_plugins() -> None:
    cluster = snapshot(nodes=[node("n")], pods=[pod("p", "n", owner="ReplicaSet/a")])
    assert final_of(make_problem(cluster, Settings(objective="kube")).problem).tables() is not None
    up_to_ten = compile_problem(cluster, default_profile(K5), PRESETS["kube"]).problem
    assert final_of(up_to_ten).tables() is None
