"""A small cluster of which nothing is missing, as the dump of it."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable
from typing import Any

from stowplan.instances.completeness import RESOURCES
from stowplan.instances.load import load
from stowplan.models.snapshot import Snapshot
from tests.support.clusters import node, pod

Manifest = dict[str, Any]
GIVEN = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists"} for key in ("not-ready", "unreachable")]
READY = [{"type": "Ready", "status": "True"}]


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


ALL = ",".join(RESOURCES)
"""What `ASKED` says if every kind was read."""


def items() -> list[Manifest]:
    """Return the objects of a small cluster that lacks nothing."""
    made: list[tuple[str, str, Manifest]] = []
    for i in (1, 2):
        made.append(("v1", "Node", node(f"n{i}", uid=uid(i))))
        agent = pod(f"agent-{i}", f"n{i}", cpu="100m", owner="DaemonSet/agent", namespace="kube-system")
        made.append(("v1", "Pod", agent))
        made.append(("storage.k8s.io/v1", "CSINode", {"metadata": {"name": f"n{i}"}, "spec": {"drivers": []}}))
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    made.append(("v1", "Pod", pod("web-1", "n1", owner="ReplicaSet/web")))
    made.append(("v1", "Pod", pod("db-0", "n1", owner="StatefulSet/db", volumes=claim)))
    made.append(("apps/v1", "ReplicaSet", {"metadata": {"name": "web", "namespace": "default"}}))
    made.append(("apps/v1", "StatefulSet", {"metadata": {"name": "db", "namespace": "default"}}))
    made.append(("v1", "Service", {"metadata": {"name": "kubernetes", "namespace": "default"}}))
    budget = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}
    made.append(
        ("policy/v1", "PodDisruptionBudget", {"metadata": {"name": "web", "namespace": "default"}, "spec": budget})
    )
    bound = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"volumeName": "pv"}}
    made.append(("v1", "PersistentVolumeClaim", bound))
    made.append(("v1", "PersistentVolume", {"metadata": {"name": "pv"}, "spec": {"nfs": {}}}))
    for _, kind, content in made:
        if kind == "Node":
            content["status"]["conditions"] = READY
        content["metadata"].setdefault("uid", uid(50))
        if kind == "Pod":
            content["metadata"]["uid"] = uid(len(content["metadata"]["name"]))
            content["metadata"]["ownerReferences"][0]["uid"] = uid(99)
            content["metadata"]["labels"] = {"app": content["metadata"]["name"].partition("-")[0]}
            content["spec"]["tolerations"] = copy.deepcopy(GIVEN)
    return [{"apiVersion": version, "kind": kind, **content} for version, kind, content in made]


def dumped(found: list[Manifest], **meta: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "metadata": meta, "items": found})


def read(found: list[Manifest], **meta: Any) -> Snapshot:
    return load(io.BytesIO(dumped(found, **meta).encode()))


def without(test: Callable[[Manifest], bool]) -> list[Manifest]:
    return [item for item in items() if not test(item)]


def agents_alone(space: str) -> list[Manifest]:
    """Return nodes, and one agent on each as the only pods, all in one namespace."""
    found = without(lambda item: item["metadata"].get("namespace", "kube-system") != "kube-system")
    for item in found:
        if item["kind"] == "Pod":
            item["metadata"]["namespace"] = space
    return found


def emptied(reported: int) -> list[Manifest]:
    """Return the pods of two other namespaces, and a ReplicaSet that has pods as its controller reports."""
    found = without(lambda item: item["kind"] == "Pod" and item["metadata"].get("namespace") == "default")
    for item in found:
        if item["kind"] == "ReplicaSet":
            item |= {"spec": {"replicas": 2}, "status": {"replicas": reported}}
    return [*found, *(item for item in agents_alone("monitoring") if item["kind"] == "Pod")]
