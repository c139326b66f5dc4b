"""A small cluster, scenarios in the words of the command line, and the same changes made to its dump by hand."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.clusters import ZONE, Manifest, csi_node, labels, node, pod
from tests.support.malformed import listed

Items = list[Manifest]
Edit = Callable[[Items], Items]

HARD = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": labels(app="web")}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": labels(app="db")}
        ]
    }
}
SSD = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
NEAR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ZONE, "labelSelector": labels(app="db")}]
    }
}
ON_N4 = {"key": "metadata.name", "operator": "In", "values": ["n4"]}


def cluster() -> Items:
    """Return the manifests of five nodes in three zones, and of pods with every rule that a scenario can drop."""
    nodes = [
        node("n0", labels={ZONE: "a", "disk": "ssd"}),
        node("n1", labels={ZONE: "a"}),
        node("n2", labels={ZONE: "b", "disk": "ssd"}),
        node("n3", cpu="2", labels={ZONE: "b"}, taints=[{"key": "gpu", "effect": "NoSchedule"}]),
        node("n4", labels={ZONE: "c"}, unschedulable=True, taints=[CORDON]),
    ]
    nodes[0]["status"]["capacity"] = {"cpu": "4500m", "memory": "9Gi"}
    web = [_pod(f"web-{i}", at, owner="ReplicaSet/web", topologySpreadConstraints=[HARD]) for i, at in _two("n0", "n2")]
    db = [_pod(f"db-{i}", at, owner="StatefulSet/db", affinity=APART) for i, at in _two("n0", "n1")]
    near = [_pod("near-0", "n1", owner="ReplicaSet/near", affinity=NEAR)]
    ssd = [_pod("ssd-0", "n2", owner="ReplicaSet/ssd", affinity=_required(SSD), nodeSelector={ZONE: "b"})]
    port = [_pod("port-0", "n2", owner="ReplicaSet/port", ports=[{"containerPort": 80, "hostPort": 80}])]
    gated = [_pod("gated-0", owner="ReplicaSet/gated", schedulingGates=[{"name": "wait"}])]
    agents = [
        pod(f"agent-{n}", f"n{n}", cpu="200m", memory="64Mi", owner="DaemonSet/agent", affinity=_required(_on(f"n{n}")))
        for n in range(5)
    ]
    lone = [pod("lone", "n1", cpu="100m", memory="64Mi")]
    over = [pod("over", "n1", cpu="100m", memory="64Mi", phase="Succeeded", owner="Job/over")]
    csi = [csi_node("n0", ebs=4), csi_node("n1", ebs=4)]
    items = listed(*nodes, *web, *db, *near, *ssd, *port, *gated, *agents, *lone, *over)["items"]
    return copy.deepcopy([*items, *_csi(csi)])  # edits change parts that several manifests share


CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def _csi(items: Items) -> Items:
    return [{"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", **item} for item in items]


def _pod(name: str, at: str | None = None, **more: Any) -> Manifest:
    app = name.partition("-")[0]
    return pod(name, at, cpu="800m", memory="512Mi", labels={"app": app}, **more)


def _two(*nodes: str) -> Iterator[tuple[int, str]]:
    return iter(enumerate(nodes))


def _required(terms: list[Any]) -> Manifest:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _on(name: str) -> list[Any]:
    return [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]


# -- what is done by hand -------------------------------------------------------------------------------------


def named(items: Items, *names: str) -> Items:
    """Return the items of these names; of every name one at least."""
    found = [item for item in items if item["metadata"]["name"] in names]
    assert {item["metadata"]["name"] for item in found} == set(names)
    return found


def without(items: Items, *names: str) -> Items:
    named(items, *names)
    return [item for item in items if item["metadata"]["name"] not in names]


def homeless(items: Items, *names: str) -> Items:
    for item in named(items, *names):
        del item["spec"]["nodeName"]
        item["status"] = {"phase": "Pending"}
    return items


def another_n2(items: Items, zone: str) -> Items:
    """Return the cluster with a node like ``n2`` and its agent."""
    (model,) = [item for item in named(items, "n2") if item["kind"] == "Node"]
    fresh = copy.deepcopy(model)
    fresh["metadata"] = {
        "name": "n2-new-1",
        "labels": {"kubernetes.io/hostname": "n2-new-1", ZONE: zone, "disk": "ssd"},
    }
    agent = copy.deepcopy(named(items, "agent-2")[0])
    agent["metadata"]["name"] = "agent-2-n2-new-1"
    agent["spec"] |= {"nodeName": "n2-new-1", "affinity": _required(_on("n2-new-1"))}
    return [*items, fresh, agent]


def zone_a_lost(items: Items) -> Items:
    items = without(items, "n0", "n1", "agent-0", "agent-1", "over")
    return homeless(items, "web-0", "db-0", "db-1", "near-0", "lone")


def resized(items: Items, amounts: dict[str, str], *nodes: str) -> Items:
    for item in named(items, *nodes):
        if item["kind"] == "Node":
            item["status"]["allocatable"] |= amounts
            if "capacity" in item["status"]:  # of n0, which keeps half a core and 1Gi for itself
                has = {"8": "8500m", "1500m": "2", "16Gi": "17Gi"}
                item["status"]["capacity"] |= {name: has[amount] for name, amount in amounts.items()}
    return items


def every_spec(items: Items, change: Callable[[Manifest], object]) -> Items:
    for item in items:
        if item["kind"] == "Pod" and item["status"]["phase"] != "Succeeded":
            change(item["spec"])
    return items


def _tolerate(spec: Manifest) -> None:
    spec["tolerations"] = [*spec.get("tolerations", []), {"operator": "Exists"}]


def lacking(items: Items, field: str, *names: str) -> Items:
    for item in named(items, *names):
        del item["spec"][field]
    return items


def without_host_port(items: Items) -> Items:
    (port,) = named(items, "port-0")[0]["spec"]["containers"][0]["ports"]
    del port["hostPort"]
    return items


def _less_spread(spec: Manifest) -> None:
    if "topologySpreadConstraints" in spec:
        spec["topologySpreadConstraints"] = [HARD | {"maxSkew": 2}]


def _unspread(spec: Manifest) -> None:
    spec.pop("topologySpreadConstraints", None)


def _requiring(items: Items, name: str, terms: list[Any]) -> Items:
    for item in named(items, name):
        item["spec"].setdefault("affinity", {}).update(_required(terms))
    return items


def requesting(items: Items, amounts: dict[str, str], *names: str) -> Items:
    for item in named(items, *names):
        item["spec"]["containers"][0]["resources"]["requests"] |= amounts
    return items


def placeholders(items: Items, model: str, *made: tuple[str, str | None]) -> Items:
    """Return the cluster with pending pods like one of it; each with a name, and a zone if it is to be there."""
    for name, zone in made:
        fresh = copy.deepcopy(named(items, model)[0])
        fresh["metadata"]["name"] = name
        fresh["spec"].pop("nodeName", None)
        fresh["spec"] |= {"priority": -(2**31), "preemptionPolicy": "Never"}
        fresh["status"] = {"phase": "Pending"}
        if zone is not None:
            terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
            fresh["spec"].setdefault("affinity", {}).update(_required(terms))
        items = [*items, fresh]
    return items


def ready_for_pods(items: Items, name: str) -> Items:
    for item in named(items, name):
        if item["kind"] == "Node":
            item["spec"] = {}
    return items


KRR = {
    "scans": [
        {
            "object": {
                "cluster": None,
                "name": "web",
                "container": "main",
                "pods": [],
                "namespace": "default",
                "kind": "Deployment",
                "allocations": {},
            },
            "recommended": {
                "requests": {
                    "cpu": {"value": 0.0501, "severity": "OK"},
                    "memory": {"value": 104857600.0, "severity": "OK"},
                },
                "limits": {"cpu": {"value": None, "severity": "OK"}},
                "info": {},
            },
            "severity": "OK",
        },
        {
            "object": {"name": "db", "container": "main", "namespace": "default", "kind": "StatefulSet"},
            "recommended": {"requests": {"cpu": {"value": "?"}, "memory": {"value": 1073741824}}},
        },
    ]
}
VPA = {
    "apiVersion": "autoscaling.k8s.io/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "db", "namespace": "default"},
    "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}},
    "status": {
        "recommendation": {
            "containerRecommendations": [
                {"containerName": "main", "target": {"cpu": "250m", "memory": "262144k"}, "upperBound": {"cpu": "4"}}
            ]
        }
    },
}
GOLDILOCKS = {
    "Namespaces": {
        "default": {
            "namespace": "default",
            "workloads": {
                "near": {
                    "controllerName": "near",
                    "controllerType": "Deployment",
                    "containers": {"main": {"containerName": "main", "target": {"cpu": "1100m"}, "upperBound": {}}},
                }
            },
        }
    }
}
BUFFERS = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "autoscaling.x-k8s.io/v1beta1",
            "kind": "CapacityBuffer",
            "metadata": {"name": "spare", "namespace": "default"},
            "spec": {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}, "percentage": 60},
        },
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "db", "namespace": "default"},
            "spec": {"scaleTargetRef": {"kind": "StatefulSet", "name": "db"}, "minReplicas": 1, "maxReplicas": 3},
        },
    ],
}
FILES = {"krr.json": KRR, "vpa.json": VPA, "goldilocks.json": GOLDILOCKS, "buffers.json": BUFFERS}


def write_files(folder: Path) -> None:
    """Write what scenarios refer to."""
    for name, content in FILES.items():
        (folder / name).write_text(json.dumps(content))


CASES: dict[str, tuple[str, Edit]] = {
    "a node more": ("--add-nodes n2", lambda items: another_n2(items, "b")),
    "a node more in another zone": ("--add-nodes n2:1,zone=c", lambda items: another_n2(items, "c")),
    "a zone lost": ("--remove-nodes zone=a", zone_a_lost),
    "a node lost": (
        "--remove-nodes n2",
        lambda items: homeless(without(items, "n2", "agent-2"), "web-1", "ssd-0", "port-0"),
    ),
    "larger nodes": (
        "--resize-nodes disk=ssd:cpu=8,memory=16Gi",
        lambda items: resized(items, {"cpu": "8", "memory": "16Gi"}, "n0", "n2"),
    ),
    "a smaller node": ("--resize-nodes n0:cpu=1500m", lambda items: resized(items, {"cpu": "1500m"}, "n0")),
    "a node uncordoned": ("--uncordon n4", lambda items: ready_for_pods(items, "n4")),
    "no spread": (
        "--drop-rule spread",
        lambda items: every_spec(items, _unspread),
    ),
    "no anti-affinity": (
        "--drop-rule anti-affinity:workload=default/db",
        lambda items: lacking(items, "affinity", "db-0", "db-1"),
    ),
    "no affinity": (
        "--drop-rule affinity",
        lambda items: lacking(items, "affinity", "near-0"),
    ),
    "no node affinity": (
        "--drop-rule node-affinity:app=ssd",
        lambda items: lacking(lacking(items, "affinity", "ssd-0"), "nodeSelector", "ssd-0"),
    ),
    "no taints": ("--drop-rule taints", lambda items: every_spec(items, _tolerate)),
    "no host ports": (
        "--drop-rule host-ports",
        without_host_port,
    ),
    "no gates": (
        "--drop-rule gates",
        lambda items: lacking(items, "schedulingGates", "gated-0"),
    ),
    "a larger skew": (
        "--max-skew app=web:2",
        lambda items: every_spec(items, _less_spread),
    ),
    "pinned to a node": (
        "--pin pod=default/ssd-0@n0",
        lambda items: _requiring(items, "ssd-0", [{**SSD[0], **_on("n0")[0]}]),
    ),
    "pinned to a zone": (
        "--pin workload=default/port@zone=c",
        lambda items: _requiring(
            items, "port-0", [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["c"]}]}]
        ),
    ),
    "forbidden on a node": (
        "--forbid pod=default/port-0@n2",
        lambda items: _requiring(
            items, "port-0", [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n2"]}]}]
        ),
    ),
    "forbidden in a zone": (
        "--forbid app=near@zone=a",
        lambda items: _requiring(
            items, "near-0", [{"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["a"]}]}]
        ),
    ),
    "requests of krr": (
        "--requests krr.json",
        lambda items: requesting(
            requesting(items, {"memory": "1Gi"}, "db-0", "db-1"), {"cpu": "51m", "memory": "100Mi"}, "web-0", "web-1"
        ),
    ),
    "requests of autoscalers": (
        "--requests vpa.json",
        lambda items: requesting(items, {"cpu": "250m", "memory": "262144k"}, "db-0", "db-1"),
    ),
    "requests of Goldilocks": (
        "--requests goldilocks.json",
        lambda items: requesting(items, {"cpu": "1100m"}, "near-0"),
    ),
    "room for two": (
        "--headroom default/port:2",
        lambda items: placeholders(items, "port-0", ("port-headroom-1", None), ("port-headroom-2", None)),
    ),
    "room in each zone": (
        "--headroom default/web:1@zone",
        lambda items: placeholders(items, "web-0", *((f"web-headroom-{zone}-1", zone) for zone in "abc")),
    ),
    "room that objects ask for": (
        "--headroom-from buffers.json",
        lambda items: placeholders(
            placeholders(items, "web-0", ("spare-headroom-1", None), ("spare-headroom-2", None)),
            "db-0",
            ("db-headroom-1", None),
        ),
    ),
    "several changes": (
        "--remove-nodes n2 --add-nodes n2:1,zone=c --drop-rule gates",
        lambda items: homeless(
            without(
                lacking(another_n2(items, "c"), "schedulingGates", "gated-0"),
                "n2",
                "agent-2",
            ),
            *("web-1", "ssd-0", "port-0"),
        ),
    ),
}
"""What is changed: the words of the command line, and the same by hand."""
