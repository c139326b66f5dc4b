"""Every formula of the articles, on random clusters, against one written a second time from the articles."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.feature_gates import gated
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.scheduler import examine
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K5, K20, K24, Release
from tests.plugins_compat.test_retired_plugins import LEAST, MOST
from tests.support import article_formulas as article
from tests.support.article_formulas import BETA_REGION, BETA_ZONE, MIB, Cluster
from tests.support.cases import WANTED
from tests.support.clusters import ZONE, Manifest, node, pod, snapshot

SEEDS = range(max(25, WANTED))
SIZES = ("0", "1", "2000", "3500m", "7")


def cluster(rng: random.Random) -> tuple[Cluster, Snapshot]:
    """Return a random cluster as manifests and as a snapshot; the last pod is pending."""
    nodes = [_node(rng, f"n{i}") for i in range(rng.randint(1, 5))]
    names = [made["metadata"]["name"] for made in nodes]
    pods = [_pod(rng, f"e{i}", rng.choice(names)) for i in range(rng.randint(0, 8))]
    new = _pod(rng, "new", None)
    for made in pods:
        if rng.random() < 0.1:
            made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    zones = [{}, {BETA_ZONE: "a"}, {BETA_ZONE: "b", BETA_REGION: "r"}, {BETA_ZONE: "a__b"}, {BETA_REGION: "r"}]
    more: dict[str, list[Manifest]] = {
        "services": [
            {"metadata": {"name": f"s{i}"}, "spec": {"selector": _labels(rng) or {"app": "x"}}}
            for i in range(rng.randint(0, 2))
        ],
        "replica_sets": [
            {"metadata": {"name": f"r{i}"}, "spec": {"selector": {"matchLabels": _labels(rng)}}}
            for i in range(rng.randint(0, 2))
        ],
        "persistent_volumes": [
            {"metadata": {"name": f"v{i}", "labels": rng.choice(zones)}, "spec": {}} for i in range(3)
        ],
        "persistent_volume_claims": [
            {"metadata": {"name": f"c{i}", "namespace": "default"}, "spec": {"volumeName": f"v{i}"}} for i in range(3)
        ],
    }
    return Cluster(new, nodes, pods, **more), snapshot(nodes=nodes, pods=[*pods, new], **more)


def _labels(rng: random.Random) -> dict[str, str]:
    return {key: rng.choice("xy") for key in ("app", "tier") if rng.random() < 0.5}


def _node(rng: random.Random, name: str) -> Manifest:
    labels = {key: rng.choice("ab") for key in (BETA_ZONE, BETA_REGION, "rack", "disk", ZONE) if rng.random() < 0.4}
    if rng.random() < 0.5:
        labels["number"] = rng.choice(["4", "5", "6", "x"])
    memory = rng.choice(["0", "10000", "40000", str(800 * MIB), "4Gi", str(rng.randint(1, 10**10))])
    cpu = rng.choice([*SIZES, f"{rng.randint(1, 9000)}m"])
    made = node(name, cpu=cpu, memory=memory, pods=rng.choice([1, 3, 110]), labels=labels)
    if rng.random() < 0.5:
        made["status"]["allocatable"]["example.com/gpu"] = str(rng.randint(0, 4))
    made["status"]["images"] = [
        {"names": [f"app:{i}", f"repo/app:{i}"], "sizeBytes": rng.choice([22, 23, 121, 340, 999, 1000]) * MIB - i}
        for i in range(rng.randint(0, 3))
    ]
    return made


def _container(rng: random.Random) -> Manifest:
    requests = {}
    if rng.random() < 0.7:
        requests["cpu"] = rng.choice(["0", "1", f"{rng.randint(1, 3000)}m"])
    if rng.random() < 0.7:
        requests["memory"] = rng.choice(["0", "5000", "100Mi", "1Gi", str(rng.randint(1, 10**9))])
    if rng.random() < 0.2:
        requests["example.com/gpu"] = str(rng.randint(0, 2))
    ports = [{"hostPort": 80 + i, "protocol": rng.choice(["TCP", "UDP"])} for i in range(2) if rng.random() < 0.15]
    image = f"app:{rng.randint(0, 2)}"
    return {"name": "c", "image": image, "resources": {"requests": requests}, "ports": ports}


def _volume(rng: random.Random, i: int) -> Manifest:
    reading = {"readOnly": True} if rng.random() < 0.5 else {}
    sources: list[Manifest] = [
        {"gcePersistentDisk": {"pdName": f"d{rng.randint(0, 25)}", **reading}},
        {"awsElasticBlockStore": {"volumeID": f"d{rng.randint(0, 3)}", **reading}},
        {"rbd": {"monitors": rng.sample(["m1", "m2", "m3"], 2), "pool": "p", "image": rng.choice("ij"), **reading}},
        {"persistentVolumeClaim": {"claimName": f"c{rng.randint(0, 2)}"}},
    ]
    return {"name": f"v{i}", **rng.choice(sources)}


def _pod(rng: random.Random, name: str, at: str | None) -> Manifest:
    spec: dict[str, Any] = {"containers": [_container(rng) for _ in range(rng.choice([0, 1, 1, 1, 2, 2]))]}
    if rng.random() < 0.3:
        spec["initContainers"] = [_container(rng) | {"ports": []} for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.3:
        spec["overhead"] = {"cpu": rng.choice(["250m", "1500m", "1"]), "memory": "10Mi"}
    if rng.random() < 0.4:
        spec["volumes"] = [_volume(rng, i) for i in range(rng.choice([1, 2, 9]))]
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"disk": rng.choice("ab")}
    terms = [[_expression(rng) for _ in range(rng.randint(1, 2))] for _ in range(3)]
    preferred = [
        {"weight": rng.randint(1, 100), "preference": {"matchExpressions": term}}
        for term in terms
        if rng.random() < 0.5
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": rng.choice([[], *terms])} for _ in range(2)]}
    required = required if rng.random() < 0.3 else {}
    spec["affinity"] = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
            **({"requiredDuringSchedulingIgnoredDuringExecution": required} if required else {}),
        }
    }
    namespace = "default" if at is None or rng.random() < 0.8 else "other"
    if rng.random() < 0.05:
        spec["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
        ]
    owner = {"owner": f"ReplicaSet/r{rng.randint(0, 1)}"} if rng.random() < 0.4 else {}
    return pod(name, at, labels=_labels(rng), namespace=namespace, **owner, **spec)


def _expression(rng: random.Random) -> Manifest:
    operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    if operator in ("Gt", "Lt"):
        return {"key": "number", "operator": operator, "values": ["5"]}
    values = {"values": ["a"]} if "In" in operator else {}
    return {"key": rng.choice(["rack", "disk"]), "operator": operator, **values}


def framework(there: Snapshot, content: dict[str, Any], release: Release) -> Framework:
    state = ClusterState(there, release, Signatures(there.pods))
    state.fill(p for p in there.pods if p.node_name)
    return Framework(make_profiles(content, release)["default-scheduler"], state)


def points(there: Snapshot, content: dict[str, Any], release: Release) -> tuple[list[int], list[int]]:
    """Return the feasible nodes in the order of the node tree, and what the one score says about them."""
    found = examine(framework(there, content, release), there.pods[-1], score_single=True)
    return found.diagnosis.feasible.tolist(), [int(p) for values in found.scores.values() for p in values]


@pytest.mark.parametrize("seed", SEEDS)
def test_predicates_of_1_5(seed: int) -> None:
    manifests, there = cluster(random.Random(seed))
    for name, predicate in article.PREDICATES.items():
        content = {"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": name}]}
        made = framework(there, content, K5)
        diagnosis = made.run_filters(made.cycle(there.pods[-1]))
        fits = set(diagnosis.feasible.tolist())
        for position, n in enumerate(diagnosis.nodes.tolist()):
            said = [] if n in fits else list(diagnosis.why(position).reasons)
            assert said == predicate(manifests, manifests.nodes[n]), (name, n)


PRIORITIES: dict[str, Callable[[Cluster, list[Manifest]], list[int]]] = {
    "LeastRequestedPriority": article.least_requested,
    "MostRequestedPriority": article.most_requested,
    "BalancedResourceAllocation": article.balanced_allocation,
    "ImageLocalityPriority": article.image_locality,
    "NodeAffinityPriority": article.node_affinity,
    "SelectorSpreadPriority": article.selector_spread_of_1_5,
    "RackSpread": article.service_anti_affinity("rack"),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("filtered", [False, True], ids=["all nodes", "some nodes"])
def test_priorities_of_1_5(seed: int, filtered: bool) -> None:
    manifests, there = cluster(random.Random(seed))
    for name, priority in PRIORITIES.items():
        argument = {"argument": {"serviceAntiAffinity": {"label": "rack"}}} if name == "RackSpread" else {}
        content = {
            "kind": "Policy",
            "apiVersion": "v1",
            "predicates": [{"name": "MatchNodeSelector"}] if filtered else [],
            "priorities": [{"name": name, "weight": 1, **argument}],
        }
        feasible, found = points(there, content, K5)
        assert found == priority(manifests, [manifests.nodes[n] for n in feasible]), name


def config(name: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a configuration of 1.20 with this one score, and no filters."""
    every = {"disabled": [{"name": "*"}]}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1beta1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"preFilter": every, "filter": every, "score": {**every, "enabled": [{"name": name}]}},
                **({"pluginConfig": [{"name": name, "args": args}]} if args else {}),
            }
        ],
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_resource_scores_of_1_20(seed: int) -> None:
    rng = random.Random(seed)
    manifests, there = cluster(rng)
    weights = {name: rng.randint(1, 5) for name in rng.sample(["cpu", "memory", "example.com/gpu"], rng.randint(1, 3))}
    resources = [{"name": name, "weight": weight} for name, weight in weights.items()]
    for name, kind in ((LEAST, "least"), (MOST, "most")):
        order, found = points(there, config(name, {"resources": resources}), K20)
        nodes = [manifests.nodes[n] for n in order]
        assert found == article.allocated_of_1_20(kind, weights)(manifests, nodes), name
    order, found = points(there, config("NodeResourcesBalancedAllocation"), K20)
    assert found == article.balanced_of_1_20(manifests, [manifests.nodes[n] for n in order])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("release", "version"), [(K20, "v1beta1"), (K24, "v1beta2")], ids=["1.20", "1.24"])
def test_selector_spread(seed: int, release: Release, version: str) -> None:
    manifests, there = cluster(random.Random(seed))
    content = config("SelectorSpread") | {"apiVersion": f"kubescheduler.config.k8s.io/{version}"}
    order, found = points(there, content, release)
    assert found == article.selector_spread(manifests, [manifests.nodes[n] for n in order])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_variance_with_volumes_of_1_20(seed: int) -> None:
    """One cloud's disks alone, so that no other cloud's count is in the way."""
    manifests, there = cluster(random.Random(seed))
    for one in (*manifests.pods, manifests.pod):
        volumes = [v for v in one["spec"].get("volumes", ()) if "gcePersistentDisk" in v]
        one["spec"]["volumes"] = volumes
    there = snapshot(nodes=manifests.nodes, pods=[*manifests.pods, manifests.pod])
    content = config("NodeResourcesBalancedAllocation")
    content["profiles"][0]["plugins"]["filter"]["enabled"] = [{"name": "GCEPDLimits"}]
    release = gated(K20, "BalanceAttachedNodeVolumes=true")
    feasible, found = points(there, content, release)
    nodes = [manifests.nodes[n] for n in feasible]
    assert found == article.balanced_of_1_20(manifests, nodes, volumes=True)
