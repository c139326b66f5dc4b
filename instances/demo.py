"""The demonstration cluster, a synthetic one with faults; ``python -m stowplan.instances.demo`` writes its file.

Three things have happened to it. An operator has changed the label of a node whose pods need it, and put too many pods
on another node; two replicas of a database share a node they must not share; and a new workload waits for room that
exists, though on no single node.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from stowplan.instances.completeness import ASKED, statement_of
from stowplan.instances.documents import Document
from stowplan.instances.manifests import read_snapshot
from stowplan.instances.synthetic import HOSTNAME, Manifest, generate
from stowplan.models.snapshot import Snapshot

NODES, PODS, SEED, FILL = 24, 240, 5, 0.62
CROWDED = "general-0003"
WAITING, WAITING_CPU, WAITING_MEMORY = 3, "9", "24Gi"


def demo_path() -> Path:
    """Return the path of the demonstration cluster's file."""
    return Path(__file__).parent / "data" / "demo.json.gz"


def demo_manifest() -> Manifest:
    """Return the cluster as one ``List``."""
    cluster = generate(NODES, PODS, SEED, fill=FILL)
    pods = [item for item in cluster["items"] if item["kind"] == "Pod"]
    _crowd(pods)
    _share_a_node(pods)
    cluster["items"] += _newcomers()
    cluster["metadata"] = {"annotations": {ASKED: statement_of(cluster["items"])}}
    return cluster


def demo_cluster() -> Snapshot:
    """Return the cluster as a snapshot."""
    return read_snapshot(iter([Document("demo", json.dumps(demo_manifest()).encode())]))


def _crowd(pods: list[Manifest]) -> None:
    """Put a handful of pods on a node that has no room for them."""
    movable = [p for p in pods if _workload(p) == "ReplicaSet" and "nodeSelector" not in p["spec"] and not _rules(p)]
    for pod in random.Random(SEED).sample(movable, 14):
        pod["spec"]["nodeName"] = CROWDED


def _share_a_node(pods: list[Manifest]) -> None:
    """Put the second replica of a database on the node of the first, if their volumes allow it."""
    replicas: defaultdict[str, list[Manifest]] = defaultdict(list)
    for pod in pods:
        if _workload(pod) == "StatefulSet" and "topologySpreadConstraints" not in pod["spec"]:
            replicas[pod["metadata"]["ownerReferences"][0]["name"]].append(pod)
    first, second, *_ = next(iter(replicas.values()))
    second["spec"]["nodeName"] = first["spec"]["nodeName"]
    second["spec"]["volumes"] = []


def _newcomers() -> list[Manifest]:
    """Return a workload whose pods need most of a node."""
    made: list[Manifest] = []
    for i in range(WAITING):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "report-rs", "uid": "rs", "controller": True}
        requests = {"cpu": WAITING_CPU, "memory": WAITING_MEMORY}
        container = {"name": "main", "image": "registry.example.com/report:1", "resources": {"requests": requests}}
        term = {"labelSelector": {"matchLabels": {"app": "report"}}, "topologyKey": HOSTNAME}
        meta = {"name": f"report-rs-{i}", "namespace": "data", "uid": f"report-{i}", "labels": {"app": "report"}}
        spec = {
            "containers": [container],
            "priority": 1000,
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "ownerReferences": [owner]}, "spec": spec}
        made.append({**pod, "status": {"phase": "Pending"}})
    return made


def _workload(pod: Manifest) -> str:
    return str(pod["metadata"]["ownerReferences"][0]["kind"])


def _rules(pod: Manifest) -> Any:
    return pod["spec"].get("topologySpreadConstraints") or pod["spec"].get("affinity") or pod["spec"].get("tolerations")


if __name__ == "__main__":
    demo_path().parent.mkdir(exist_ok=True)
    demo_path().write_bytes(gzip.compress(json.dumps(demo_manifest()).encode(), mtime=0))
