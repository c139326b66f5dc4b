"""How many pods a second the framework schedules, by size of the cluster, with every node scored.

``python -m benchmarks.throughput [NODES ...]``: 2,000 pods of 200 workloads, each with a soft spread over zones, onto
an empty cluster; then the same with 10 pods on every node.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

from stowplan.instances.documents import Document
from stowplan.instances.manifests import read_snapshot
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from stowplan.plugins_compat.simulate import simulate

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WORKLOADS, REPLICAS, STANDING = 200, 10, 10


def cluster(nodes: int, participation: int) -> Snapshot:
    """Return a cluster of three zones with waiting pods, and so many bound pods on each node."""
    items = [*_nodes(nodes), *_bound(nodes, participation), *_waiting()]
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()
    return read_snapshot(iter([Document("benchmark", data)]))


def _nodes(number: int) -> Iterator[dict[str, Any]]:
    offers = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    for i in range(number):
        name = f"node-{i:05d}"
        meta = {"name": name, "labels": {HOSTNAME: name, ZONE: f"zone-{i % 3}"}}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": offers}}


def _pod(name: str, app: str, **spec: Any) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "256Mi"}
    container = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
    meta = {"name": name, "namespace": "default", "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


def _bound(nodes: int, each: int) -> Iterator[dict[str, Any]]:
    for i in range(nodes * each):
        yield _pod(f"old-{i}", f"app-{i % WORKLOADS}", nodeName=f"node-{i % nodes:05d}")


def _waiting() -> Iterator[dict[str, Any]]:
    for i in range(WORKLOADS * REPLICAS):
        app = f"app-{i % WORKLOADS}"
        selector = {"matchLabels": {"app": app}}
        spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}
        yield _pod(f"new-{i}", app, topologySpreadConstraints=[spread])


def measure(nodes: int, participation: int) -> tuple[float, int]:
    """Return pods a second, and how many pods found a node."""
    snapshot = cluster(nodes, participation)
    waiting = [pod for pod in snapshot.pods if not pod.node_name]
    bound = {pod.key: pod.node_name for pod in snapshot.pods if pod.node_name}
    began = time.perf_counter()
    simulation = simulate(snapshot, default_profile(K36), waiting, bound)
    seconds = time.perf_counter() - began
    return len(waiting) / seconds, len(simulation.assignment) - len(bound)


def main() -> None:
    """Print one line a size."""
    sizes = [int(word) for word in sys.argv[1:]] or [1000, 2000, 5000, 10000]
    print(f"{'nodes':>6} {'bound':>9} {'placed':>7} {'pods/s':>8} {'peak MB':>8}")
    for nodes in sizes:
        for participation in (0, STANDING):
            speed, placed = measure(nodes, participation)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"{nodes:>6} {nodes * participation:>9} {placed:>7} {speed:>8.0f} {peak:>8}")


if __name__ == "__main__":
    main()
