"""Manifests of a cluster by a few words: nodes, workloads with their pods, budgets."""

from __future__ import annotations

import uuid
from typing import Any

from tests.support.api_server.errors import Object
from tests.support.api_server.workloads import HASH


def uid(*parts: str) -> str:
    """Return the uid of an object, always the same for the same words."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))


def namespace(name: str) -> Object:
    """Return a namespace."""
    return {"kind": "Namespace", "metadata": {"name": name, "uid": uid("Namespace", name)}}


def node(name: str, cpu: str = "4", memory: str = "8Gi", pods: int = 110) -> Object:
    """Return a node that is ready."""
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": uid("Node", name), "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": str(pods)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def deployment(space: str, name: str, on: list[str], cpu: str = "1", template: str = "5d5b") -> list[Object]:
    """Return a Deployment, its ReplicaSet and a ready pod on each of the nodes named."""
    labels = {"app": name, HASH: template}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "controller": True}
    owner["uid"] = uid("Deployment", space, name)
    above: Object = {
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": space, "uid": owner["uid"], "labels": {"app": name}},
        "spec": {"replicas": len(on), "selector": {"matchLabels": {"app": name}}, "template": _template(labels, cpu)},
    }
    made = _workload("ReplicaSet", space, f"{name}-{template}", labels, len(on), cpu)
    made["metadata"]["ownerReferences"] = [owner]
    pods = [_pod(made, f"{name}-{template}-{_letters(i)}", where) for i, where in enumerate(on)]
    return [above, made, *pods]


def stateful_set(space: str, name: str, on: list[str], cpu: str = "1", policy: str = "OrderedReady") -> list[Object]:
    """Return a StatefulSet and a ready pod on each of the nodes named."""
    made = _workload("StatefulSet", space, name, {"app": name, "controller-revision-hash": f"{name}-1"}, len(on), cpu)
    made["spec"] |= {"podManagementPolicy": policy, "serviceName": name}
    return [made, *(_pod(made, f"{name}-{i}", where) for i, where in enumerate(on))]


def daemon_set(space: str, name: str, on: list[str]) -> list[Object]:
    """Return a DaemonSet and a ready pod on each of the nodes named."""
    made = _workload("DaemonSet", space, name, {"app": name}, 0, "100m")
    del made["spec"]["replicas"]
    return [made, *(_pod(made, f"{name}-{_letters(i)}", where) for i, where in enumerate(on))]


def bare_pod(space: str, name: str, at: str | None, cpu: str = "1", labels: Object | None = None) -> Object:
    """Return a pod that nobody owns, ready on a node or waiting for one."""
    owner = {"metadata": {"namespace": space}, "spec": {"template": _template(labels or {}, cpu)}}
    made = _pod(owner, name, at)
    del made["metadata"]["ownerReferences"]
    return made


def budget(space: str, name: str, app: str, **spec: Any) -> Object:
    """Return a PodDisruptionBudget over the pods of a workload; ``minAvailable`` or ``maxUnavailable`` by keyword."""
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": space, "uid": uid("PodDisruptionBudget", space, name)},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def _workload(kind: str, space: str, name: str, labels: Object, replicas: int, cpu: str) -> Object:
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": space, "uid": uid(kind, space, name), "labels": dict(labels)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": dict(labels)},
            "template": _template(labels, cpu),
        },
    }


def _template(labels: Object, cpu: str) -> Object:
    requests = {"cpu": cpu, "memory": "64Mi"}
    container = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler"}
    return {"metadata": {"labels": dict(labels)}, "spec": spec}


def _pod(owner: Object, name: str, at: str | None) -> Object:
    space, template = owner["metadata"]["namespace"], owner["spec"]["template"]
    meta: Object = {
        "name": name,
        "namespace": space,
        "uid": uid("Pod", space, name),
        "labels": dict(template["metadata"]["labels"]),
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": owner.get("kind", ""),
                "name": owner["metadata"].get("name", ""),
                "uid": owner["metadata"].get("uid", ""),
                "controller": True,
            }
        ],
    }
    ready = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready", "ContainersReady")]
    status = {"phase": "Running", "conditions": ready} if at else {"phase": "Pending"}
    spec = {**template["spec"], **({"nodeName": at} if at else {})}
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def _letters(number: int) -> str:
    return "aaaa" + "bcdfghjklmnpqrstvwxz"[number % 20] if number < 20 else f"aaa{number:02d}"
