"""Plugins of older releases: resource scores of 1.20 in their two forms, and SelectorSpread of 1.20 and 1.24."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.models.errors import InputError
from stowplan.models.objective import PRESETS
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.admission import populated, rejections
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.feature_gates import gated
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.scheduler import examine
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K20, K24, K36, Release
from tests.plugins_compat.test_score_facts import nodes, on, score
from tests.support.brute_force import placements
from tests.support.choices import Seeded
from tests.support.clusters import ZONE, Manifest, node, pod, snapshot
from tests.support.random_clusters import random_cluster, random_disks

LEAST, MOST = "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated"
BALANCED = "NodeResourcesBalancedAllocation"


def weights(**resources: int) -> dict[str, Any]:
    return {"resources": [{"name": name.replace("_", "/"), "weight": w} for name, w in resources.items()]}


def new(cpu: int, memory: int, **more: Any) -> Manifest:
    return pod("new", cpu=f"{cpu}m", memory=str(memory), **more)


def alone(cpu: int, memory: int, asked: Manifest, **more: Any) -> Snapshot:
    return snapshot(nodes=[node("n", cpu=f"{cpu}m", memory=str(memory), **more)], pods=[asked])


# -- resource scores of 1.20 ------------------------------------------------------------------------------------


def test_default_scores_of_1_20() -> None:
    profile = default_profile(K20)
    assert {name: profile.weight(name) for name in profile.at("score")} == {
        BALANCED: 1, "ImageLocality": 1, "InterPodAffinity": 1, LEAST: 1, "NodeAffinity": 1,
        "NodePreferAvoidPods": 10000, "PodTopologySpread": 2, "TaintToleration": 1,
    }  # fmt: skip


def test_upstreams_rows_of_least_and_most() -> None:
    cluster = snapshot(nodes=nodes((4000, 10000), (6000, 10000)), pods=[new(3000, 5000)])
    assert score(cluster, LEAST, K20) == [37, 50]
    assert score(cluster, MOST, K20) == [62, 50]
    assert score(cluster, LEAST, K20, weights(cpu=1, memory=2)) == [41, 50]
    tens = snapshot(
        nodes=nodes((10000, 20000), (10000, 50000)), pods=[on(0, 3000, 5000), on(1, 3000, 5000), new(3000, 5000)]
    )
    assert score(tens, LEAST, K20) == [45, 60]


def test_no_capacity_scores_0_and_keeps_its_weight() -> None:
    nothing = alone(0, 10000, new(0, 5000))
    assert score(nothing, LEAST, K20) == [25]  # (0 + 50) / 2
    assert score(nothing, MOST, K20) == [25]
    absent = weights(cpu=1, memory=1, example_com=2)  # a resource nobody has
    assert score(alone(4000, 10000, new(2000, 5000)), LEAST, K20, absent) == [25]  # (50 + 50 + 2·0) / 4


def test_resources_that_the_pod_does_not_ask_for_count() -> None:
    args = {"resources": [{"name": "example.com/gpu", "weight": 1}, {"name": "cpu", "weight": 1}]}
    cluster = alone(4000, 10000, new(2000, 0), extended={"example.com/gpu": "4"})
    assert score(cluster, LEAST, K20, args) == [75]  # (100 + 50) / 2; 1.24 would leave the GPU out


def test_more_than_there_is_scores_0_in_most_allocated() -> None:
    assert score(alone(2000, 10000, new(3000, 5000)), MOST, K20) == [25]  # 1.24 counts a full node as 100


@pytest.mark.parametrize(
    ("size", "asked", "points"),
    [
        ((4000, 10000), (3000, 5000), 75),
        ((6000, 10000), (3000, 5000), 100),
        ((3000, 10000), (3000, 5000), 0),  # a fraction of 1
        ((0, 10000), (0, 5000), 0),  # no capacity counts as a fraction of 1
    ],
)
def test_balance_by_the_difference(size: tuple[int, int], asked: tuple[int, int], points: int) -> None:
    assert score(alone(*size, new(*asked)), BALANCED, K20) == [points]


def test_the_machines_of_the_operations_platform_by_the_difference() -> None:
    gib = 2**30
    held = [(50, 10), (30, 30), (10, 50)]
    cluster = snapshot(
        nodes=nodes(*[(64000, 64 * gib)] * 3),
        pods=[*(on(i, cpu * 1000, memory * gib) for i, (cpu, memory) in enumerate(held)), new(2000, 10 * gib)],
    )
    assert score(cluster, BALANCED, K20) == [50, 87, 25]


def test_balance_reads_the_defaults_of_containers() -> None:
    bare = pod("new", cpu="", memory="")
    cluster = alone(1000, 200 * 2**20 * 4, bare)  # 100m of 1, and 200 MiB of 800
    assert score(cluster, BALANCED, K20) == [85]


@pytest.mark.parametrize(("overhead", "counted"), [("250m", 1), ("1500m", 2)])
def test_overhead_counts_in_cores_read_as_millicores(overhead: str, counted: int) -> None:
    cluster = alone(1000, 10**9, new(500, 0, overhead={"cpu": overhead}))
    args = weights(cpu=1)
    assert score(cluster, MOST, K20, args) == [(500 + counted) * 100 // 1000]
    ten = alone(10, 10**9, new(5, 0, overhead={"cpu": overhead}))
    assert score(ten, MOST, K20, args) == [(5 + counted) * 10]
    without = gated(K20, "PodOverhead=false")
    assert score(ten, MOST, without, args) == [50]


def disks(count: int, first: int = 0) -> list[Manifest]:
    return [
        {"name": f"v{i}", "gcePersistentDisk": {"pdName": f"d{i}", "readOnly": True}}
        for i in range(first, first + count)
    ]


VOLUMES = gated(K20, "BalanceAttachedNodeVolumes=true")


@pytest.mark.parametrize(
    ("size", "asked", "held", "brought", "points"),
    [
        ((3500, 40000), (3000, 5000), 11, 1, 89),  # 1 of 5 that are left
        ((4000, 10000), (3000, 5000), 14, 1, 98),  # 1 of 2
        ((4000, 10000), (3000, 5000), 14, 2, 0),  # all that is left
        ((4000, 10000), (3000, 5000), 14, 0, 75),  # no disks: the difference
        ((4000, 10000), (1, 9999), 0, 1, 79),
    ],
)
def test_volumes_make_it_a_variance(
    size: tuple[int, int], asked: tuple[int, int], held: int, brought: int, points: int
) -> None:
    there = pod("e", "n0", cpu="0", memory="0", volumes=disks(held))
    cluster = snapshot(nodes=nodes(size), pods=[there, new(*asked, volumes=disks(brought, held))])
    assert score(cluster, BALANCED, VOLUMES) == [points]


def test_volumes_that_are_there_already_are_no_new_ones() -> None:
    there = pod("e", "n0", cpu="0", memory="0", volumes=disks(14))
    cluster = snapshot(nodes=nodes((4000, 10000)), pods=[there, new(3000, 5000, volumes=disks(1))])
    assert score(cluster, BALANCED, VOLUMES) == [90]  # fractions 0.75, 0.5, 0/2
    full = pod("e", "n0", cpu="0", memory="0", volumes=disks(16))
    cluster = snapshot(nodes=nodes((4000, 10000)), pods=[full, new(3000, 5000, volumes=disks(1))])
    assert score(cluster, BALANCED, VOLUMES) == [75]  # no room is left, so volumes do not count
    assert score(cluster, BALANCED, K20) == [75]


def test_nodes_that_rather_avoid_a_controllers_pods() -> None:
    entry = '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "u1"}}}]}'
    owner = [{"kind": "ReplicaSet", "name": "r", "uid": "u1", "controller": True}]
    made = new(1, 1)
    made["metadata"]["ownerReferences"] = owner
    marked = node("n", annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods": entry})
    broken = node("m", annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods": "{"})
    assert score(snapshot(nodes=[marked, broken], pods=[made]), "NodePreferAvoidPods", K20) == [0, 100]
    assert score(snapshot(nodes=[marked, broken], pods=[new(1, 1)]), "NodePreferAvoidPods", K20) == [100, 100]


# -- SelectorSpread ---------------------------------------------------------------------------------------------


def zoned(*zones: str, at: tuple[int, ...] = (), **spec: Any) -> Snapshot:
    return snapshot(
        nodes=[node(f"n{i}", labels={ZONE: zone} if zone else {}) for i, zone in enumerate(zones)],
        pods=[
            *(pod(f"e{k}", f"n{i}", labels={"app": "x"}) for k, i in enumerate(at)),
            pod("p", labels={"app": "x"}, **spec),
        ],
        services=[{"metadata": {"name": "s"}, "spec": {"selector": {"app": "x"}}}],
    )


OWN = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}]


@pytest.mark.parametrize("release", [K20, K24], ids=lambda release: release.name)
def test_selector_spread(release: Release) -> None:
    name = "SelectorSpread"
    assert score(zoned("1", "2", "2", at=(1,)), name, release) == [100, 0, 33]
    assert score(zoned("", "", "", at=(0, 0, 1)), name, release) == [0, 50, 100]
    assert score(zoned("1", "2"), name, release) == [100, 100]
    assert score(zoned("1", "2", "", at=(0,)), name, release) == [0, 100, 100]
    assert score(zoned("1", "2", "2", at=(1,), topologySpreadConstraints=OWN), name, release) == [0, 0, 0]


def test_selector_spread_is_gone_from_newer_releases() -> None:
    with pytest.raises(InputError, match="'SelectorSpread' is unknown"):
        score(zoned("1"), "SelectorSpread", K36)


@pytest.mark.parametrize("name", ["NodeLabel", "RequestedToCapacityRatio", "ServiceAffinity"])
def test_a_plugin_that_is_not_implemented_is_refused_wherever_it_is_named(name: str) -> None:
    with pytest.raises(InputError, match="is not implemented"):
        score(zoned("1"), name, K20)
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1beta1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": name, "args": {}}]}],
    }
    with pytest.raises(InputError, match="is not implemented"):
        make_profiles(content, K20)


def test_a_release_knows_its_own_plugins_and_points_alone() -> None:
    for name in (LEAST, MOST, "NodePreferAvoidPods"):
        with pytest.raises(InputError, match=f"'{name}' is unknown"):
            score(zoned("1"), name, K24)
    with pytest.raises(InputError, match="'NodeResourcesFit' does not extend this point"):
        score(zoned("1"), "NodeResourcesFit", K20)
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1beta1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "SelectorSpread"}]}}}],
    }
    with pytest.raises(InputError, match="multiPoint: is unknown to release 1.20".replace(".", r"\.")):
        make_profiles(content, K20)


# -- the model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_rules_of_1_20_admit_what_its_filters_admit(seed: int) -> None:
    for cluster in (random_cluster(Seeded(seed)), random_disks(Seeded(seed))):
        profile = default_profile(K20)
        compiled = compile_problem(cluster, profile, PRESETS["repair"])
        evaluator = Evaluator(compiled.problem)
        for placement in list(placements(compiled.problem))[:30]:
            where = compiled.assign(placement)
            refused = rejections(populated(cluster, profile, where, compiled.signatures), where)
            violations = [
                v for v in evaluator.evaluate(placement).violations if refused or v.origin.plugin != "NodeVolumeLimits"
            ]
            assert bool(refused) == bool(violations), (where, [str(r) for r in refused], violations)


@pytest.mark.parametrize("name", [LEAST, MOST, BALANCED, "SelectorSpread", "NodePreferAvoidPods"])
def test_terms_prefer_the_node_that_the_score_prefers(name: str) -> None:
    cluster = zoned("1", "2", "3", at=(1, 1, 2))
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1beta1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": name}]}}}],
    }
    profile = make_profiles(content, K20)["default-scheduler"]
    compiled = compile_problem(cluster, profile, PRESETS["kube"])
    assert not compiled.notes
    evaluator = Evaluator(compiled.problem)
    costs = {}
    for placement in placements(compiled.problem):
        where = compiled.assign(placement)
        if all(where.get(p.key) == p.node_name for p in cluster.pods if p.node_name) and "default/p" in where:
            costs[where["default/p"]] = evaluator.evaluate(placement).values[-1]
    state = ClusterState(cluster, K20, Signatures(cluster.pods))
    state.fill(p for p in cluster.pods if p.node_name)
    total = examine(Framework(profile, state), cluster.pods[-1]).total.tolist()
    best = {f"n{i}" for i, points in enumerate(total) if points == max(total)}
    assert best & {name for name, cost in costs.items() if cost == min(costs.values())}
