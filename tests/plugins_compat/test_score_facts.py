"""Scores as upstream's own test tables state them, transcribed as facts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.plugin import default_normalize
from stowplan.plugins_compat.framework.scheduler import examine
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K24, K36, Release
from tests.support.clusters import HOSTNAME, ZONE, node, pod, snapshot

RESOURCES = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


def score(
    cluster: Snapshot, plugin: str, release: Release = K36, args: dict[str, Any] | None = None, weight: int = 1
) -> list[int]:
    """Return what one plugin alone says about the last pod of a cluster, weighted with 1."""
    version = release.config_versions[-1]
    content = {
        "apiVersion": f"kubescheduler.config.k8s.io/{version}",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {
                    "score": {"disabled": [{"name": "*"}], "enabled": [{"name": plugin, "weight": weight}]},
                    "filter": {"disabled": [{"name": "NodeResourcesFit"}]},
                },
                "pluginConfig": [{"name": plugin, "args": args or {}}],
            }
        ],
    }
    state = ClusterState(cluster, release, Signatures(cluster.pods))
    state.fill(p for p in cluster.pods if p.node_name)
    framework = Framework(make_profiles(content, release)["default-scheduler"], state)
    scored = examine(framework, cluster.pods[-1], score_single=True)
    return [int(value) for value in scored.scores[plugin]] if plugin in scored.scores else []


def nodes(*sizes: tuple[int, int]) -> list[dict[str, Any]]:
    return [node(f"n{i}", cpu=f"{cpu}m", memory=str(memory)) for i, (cpu, memory) in enumerate(sizes)]


def on(n: int, cpu: int, memory: int, name: str = "e") -> dict[str, Any]:
    return pod(f"{name}-{n}", f"n{n}", cpu=f"{cpu}m" if cpu else "0", memory=str(memory))


def new(cpu: int, memory: int) -> dict[str, Any]:
    return pod("new", cpu=f"{cpu}m" if cpu else "0", memory=str(memory))


def strategy(kind: str, cpu: int = 1, memory: int = 1, **more: Any) -> dict[str, Any]:
    resources = [{"name": "cpu", "weight": cpu}, {"name": "memory", "weight": memory}]
    return {"scoringStrategy": {"type": kind, "resources": resources, **more}}


SIX, TEN = (6000, 10000), (10000, 20000)


@pytest.mark.parametrize(
    ("sizes", "held", "asked", "weights", "expected"),
    [
        ([(4000, 10000), SIX], [], (3000, 5000), (1, 1), [37, 50]),
        ([(4000, 10000), SIX], [], (3000, 5000), (1, 2), [41, 50]),
        ([TEN, TEN], [(0, 3000, 0), (1, 3000, 5000)], (3000, 5000), (1, 1), [57, 45]),
        ([TEN, (10000, 50000)], [(0, 3000, 5000), (1, 3000, 5000)], (3000, 5000), (1, 1), [45, 60]),
        ([(4000, 10000), (4000, 10000)], [(0, 3000, 0), (1, 3000, 5000)], (3000, 0), (1, 1), [50, 25]),
    ],
)
def test_least_allocated(
    sizes: list[tuple[int, int]],
    held: list[tuple[int, int, int]],
    asked: tuple[int, int],
    weights: tuple[int, int],
    expected: list[int],
) -> None:
    cluster = snapshot(nodes=nodes(*sizes), pods=[*(on(*h) for h in held), new(*asked)])
    args = strategy("LeastAllocated", *weights)
    assert score(cluster, "NodeResourcesFit", args=args) == expected


@pytest.mark.parametrize(
    ("sizes", "held", "asked", "weights", "expected"),
    [
        ([(4000, 10000), SIX], [], (3000, 5000), (1, 1), [62, 50]),
        ([(4000, 10000), SIX], [], (3000, 5000), (1, 2), [58, 50]),
        ([TEN, TEN], [(0, 3000, 0), (1, 3000, 5000)], (3000, 5000), (1, 1), [42, 55]),
        ([(5000, 10000), (10000, 9000)], [], (5000, 9000), (1, 1), [95, 75]),
    ],
)
def test_most_allocated(
    sizes: list[tuple[int, int]],
    held: list[tuple[int, int, int]],
    asked: tuple[int, int],
    weights: tuple[int, int],
    expected: list[int],
) -> None:
    cluster = snapshot(nodes=nodes(*sizes), pods=[*(on(*h) for h in held), new(*asked)])
    assert score(cluster, "NodeResourcesFit", args=strategy("MostAllocated", *weights)) == expected


def test_requested_to_capacity_ratio() -> None:
    shape = {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]}
    args = strategy("RequestedToCapacityRatio", requestedToCapacityRatio=shape)
    cluster = snapshot(nodes=nodes((4000, 10000), SIX), pods=[new(3000, 5000)])
    assert score(cluster, "NodeResourcesFit", args=args) == [38, 50]


@pytest.mark.parametrize(
    ("sizes", "held", "asked", "std", "delta"),
    [
        ([(4000, 10000), SIX], [], (3000, 5000), [87, 100], [68, 75]),
        ([TEN, TEN], [(0, 3000, 0), (1, 3000, 5000)], (3000, 5000), [82, 95], [73, 74]),
        ([(10000, 50000)], [(0, 3000, 5000)], (3000, 5000), [80], [70]),
        ([SIX, SIX], [(0, 3000, 0), (1, 3000, 5000)], (3000, 0), [50, 75], [62, 62]),
    ],
)
def test_balanced_allocation(
    sizes: list[tuple[int, int]],
    held: list[tuple[int, int, int]],
    asked: tuple[int, int],
    std: list[int],
    delta: list[int],
) -> None:
    cluster = snapshot(nodes=nodes(*sizes), pods=[*(on(*h) for h in held), new(*asked)])
    args = {"resources": RESOURCES}
    assert score(cluster, "NodeResourcesBalancedAllocation", K24, args) == std
    assert score(cluster, "NodeResourcesBalancedAllocation", K36, args) == delta


@pytest.mark.parametrize(
    ("images", "wanted", "expected"),
    [
        ([{"a": 40}, {"b": 250}], ["a", "b"], [0, 5]),
        ([{"a": 40, "b": 300}, {}], ["a", "b"], [7, 0]),
        ([{"a": 4000}, {"b": 10}], ["a", "b"], [100, 0]),
        ([{"a": 4000}, {"b": 10}, {}], ["a", "b"], [66, 0, 0]),
        ([{"b": 600, "c": 900}, {"a": 300, "b": 600, "c": 900}, {}], ["a", "b", "c"], [32, 36, 0]),
        ([{"x": 20, "a": 30, "b": 40}, {"y": 4000, "a": 30}], ["a", "b"], [1, 0]),
    ],
)
def test_image_locality(images: list[dict[str, int]], wanted: list[str], expected: list[int]) -> None:
    made = nodes(*[(4000, 10000)] * len(images))
    for manifest, held in zip(made, images, strict=True):
        manifest["status"]["images"] = [
            {"names": [f"{name}:latest"], "sizeBytes": mebibytes * 2**20} for name, mebibytes in held.items()
        ]
    asking = new(0, 0)
    asking["spec"]["containers"] = [{"name": name, "image": name} for name in wanted]
    assert score(snapshot(nodes=made, pods=[asking]), "ImageLocality") == expected


@pytest.mark.parametrize(("release", "expected"), [(K24, [0, 0]), (K36, [27, 0])], ids=["1.24", "1.36"])
def test_image_locality_counts_image_volumes_in_new_releases(release: Release, expected: list[int]) -> None:
    made = nodes((4000, 10000), (4000, 10000))
    made[0]["status"]["images"] = [{"names": ["data:1"], "sizeBytes": 580 * 2**20}]
    asking = new(0, 0)
    asking["spec"]["volumes"] = [{"name": "data", "image": {"reference": "data:1"}}]
    assert score(snapshot(nodes=made, pods=[asking]), "ImageLocality", release) == expected


@pytest.mark.parametrize(("counts", "expected"), [((0, 1), [100, 0]), ((0, 1, 2), [100, 50, 0]), ((0, 0), [100, 100])])
def test_taints_that_are_not_tolerated(counts: tuple[int, ...], expected: list[int]) -> None:
    made = [
        node(f"n{i}", taints=[{"key": f"k{j}", "value": "v", "effect": "PreferNoSchedule"} for j in range(number)])
        for i, number in enumerate(counts)
    ]
    assert score(snapshot(nodes=made, pods=[pod("new")]), "TaintToleration") == expected


def test_preferred_node_affinity() -> None:
    labels: list[dict[str, str]] = [{"foo": "bar"}, {"foo": "bar", "key": "value", "az": "az1"}, {"key": "value"}]

    def term(weight: int, *keys: str) -> dict[str, Any]:
        return {"weight": weight, "preference": {"matchExpressions": [{"key": k, "operator": "Exists"} for k in keys]}}

    preferred = [term(2, "foo"), term(4, "key"), term(5, "foo", "key", "az")]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    cluster = snapshot(
        nodes=[node(f"n{i}", labels=own) for i, own in enumerate(labels)], pods=[pod("new", affinity=affinity)]
    )
    assert score(cluster, "NodeAffinity") == [18, 100, 36]


@pytest.mark.parametrize(
    ("counts", "skew", "expected"),
    [
        ((2, 1, 0, 3), 1, [20, 60, 100, 0]),
        ((2, 1, 0, 3), 2, [33, 66, 100, 16]),
        ((4, 3, 2, 1), 3, [44, 66, 77, 100]),
        ((4, 2, 1), 1, [33, 83, 100]),
    ],
)
@pytest.mark.parametrize("release", [K24, K36], ids=lambda release: release.name)
def test_soft_spread_over_nodes(counts: tuple[int, ...], skew: int, expected: list[int], release: Release) -> None:
    foo = {"app": "foo"}
    constraint = {
        "maxSkew": skew,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": foo},
    }
    bound = [pod(f"e{n}-{i}", f"n{n}", labels=foo) for n, number in enumerate(counts) for i in range(number)]
    asking = pod("new", labels=foo, topologySpreadConstraints=[constraint])
    made = [node(f"n{i}", labels={ZONE: "z"}) for i in range(len(counts))]
    assert score(snapshot(nodes=made, pods=[*bound, asking]), "PodTopologySpread", release) == expected


@pytest.mark.parametrize(
    ("scores", "reverse", "expected"),
    [
        ([1, 2, 3, 4], False, [25, 50, 75, 100]),
        ([1, 2, 3, 4], True, [75, 50, 25, 0]),
        ([1000, 10, 20, 30], False, [100, 1, 2, 3]),
        ([1000, 10, 20, 30], True, [0, 99, 98, 97]),
        ([1000, 1, 1, 1], False, [100, 0, 0, 0]),
        ([0, 1, 1, 1], True, [100, 0, 0, 0]),
        ([0, 0], True, [100, 100]),
        ([0, 0], False, [0, 0]),
    ],
)
def test_normalizing(scores: list[int], reverse: bool, expected: list[int]) -> None:
    assert default_normalize(np.array(scores), reverse=reverse).tolist() == expected
