"""A cluster as kubectl would print it, for the scheduler to play through."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from stowplan.instances.documents import Document
from stowplan.instances.manifests import read_snapshot
from stowplan.instances.suites.priority_matters.clusters import Cluster, ReplicaSet
from stowplan.instances.suites.priority_matters.placing import ClusterProblem
from stowplan.models.problem import Placement
from stowplan.models.snapshot import Snapshot

NAMESPACE = "default"


def cluster_snapshot(cluster: Cluster) -> Snapshot:
    """Return a cluster as a snapshot; ``set-s-r`` is replica ``r`` of ReplicaSet ``s``, ``node-n`` node ``n``."""
    content = {"apiVersion": "v1", "kind": "List", "items": list(_objects(cluster))}
    return read_snapshot(iter([Document(f"cluster {cluster.seed}", json.dumps(content).encode())]))


def scheduled(stated: ClusterProblem, where: Mapping[str, str]) -> Placement:
    """Return node names by pod key, as a scheduler gives them for `cluster_snapshot`, as a placement."""
    entries = []
    for key, node in where.items():
        replica_set = int(key.removeprefix(f"{NAMESPACE}/set-").partition("-")[0])
        entries.append((int(stated.class_of[replica_set]), int(node.removeprefix("node-")), 1))
    return Placement.of(entries)


def _objects(cluster: Cluster) -> Iterator[dict[str, Any]]:
    room = {"cpu": f"{cluster.node_cpu_m}m", "memory": str(cluster.node_mem_b), "pods": str(cluster.pods)}
    for n in range(cluster.nodes):
        name = f"node-{n}"
        yield _object("v1", "Node", name, labels={"kubernetes.io/hostname": name}) | {"status": {"allocatable": room}}
    for s, replica_set in enumerate(cluster.replicasets):
        name, labels = f"set-{s}", {"app": f"set-{s}"}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
        spec = {"replicas": replica_set.replicas, "selector": {"matchLabels": labels}}
        yield _object("apps/v1", "ReplicaSet", name, namespace=NAMESPACE, uid=name) | {"spec": spec}
        for r in range(replica_set.replicas):
            named = {"namespace": NAMESPACE, "labels": labels, "ownerReferences": [owner]}
            yield _object("v1", "Pod", f"{name}-{r}", **named) | {
                "spec": _spec(replica_set),
                "status": {"phase": "Pending"},
            }


def _object(version: str, kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}


def _spec(replica_set: ReplicaSet) -> dict[str, Any]:
    requests = {"cpu": f"{replica_set.cpu_m}m", "memory": str(replica_set.mem_b)}
    return {"containers": [{"name": "main", "resources": {"requests": requests}}], "priority": replica_set.priority}
