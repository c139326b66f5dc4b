"""Three ways to give pods isolated CPUs, side by side: what each charges, and which QoS class it leaves.

``python -m benchmarks.isolated_cpus``: two pods that need 4 isolated cores and 1 GiB each, on a node with 16 ordinary
and 8 isolated cores, and one line for each way to say so: as an extended resource, in an annotation alone, and as CPU
requests that a changed cache charges to the pool; the last line is the same pods with an unchanged cache.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stowplan.instances.load import load
from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.isolation import POOL, Isolation
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K36, Release

EXTENDED = "example.com/isolated-core"
ORDINARY, ISOLATED, CORES = 16, 8, 4
COMPUTE = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Row:
    """What one way comes to.

    Parameters
    ----------
    ordinary, pool
        Ordinary cores, and isolated ones, that both pods are charged for.
    classes
        QoS class of a pod that asks for cores alone, of one that requests memory too, and of one whose requests have
        equal limits.
    """

    way: str
    ordinary: int
    pool: int
    classes: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        return self.way, f"{self.ordinary} of {ORDINARY}", f"{self.pool} of {ISOLATED}", *self.classes


def qos_class(pod: Pod) -> str:
    """Return the QoS class that Kubernetes gives a pod, by the CPU and memory of its containers.

    Guaranteed: every container has limits of both, and requests that equal them. BestEffort: no container has any.
    Amounts of 0 count as absent.
    """
    containers = (*pod.spec.containers, *pod.spec.init_containers)

    def of(amounts: Mapping[str, int]) -> dict[str, int]:
        return {name: amount for name in COMPUTE if (amount := amounts.get(name, 0))}

    # A request that is not stated is what its limit says.
    asked = [(of({**one.limits, **one.requests}), of(one.limits)) for one in containers]
    if not any(requests or limits for requests, limits in asked):
        return "BestEffort"
    same = all(len(limits) == len(COMPUTE) and requests == limits for requests, limits in asked)
    return "Guaranteed" if same else "Burstable"


def rows() -> list[Row]:
    """Compute the table."""
    unchanged, changed = default_profile(K36).release, _changed_cache().release
    marked, counted = {Isolation().pod_annotation: "true"}, {"example.com/isolcpus": str(CORES)}
    return [
        _row("extended resource", {EXTENDED: CORES}, {}, unchanged),
        _row("annotations alone", {}, counted, unchanged),
        _row("changed cache (IsolatedCPUs)", {"cpu": CORES}, marked, changed),
        _row("unchanged cache", {"cpu": CORES}, marked, unchanged),
    ]


def _row(way: str, cores: Mapping[str, Any], annotations: Mapping[str, str], release: Release) -> Row:
    annotated = {Isolation().node_annotation: f"count:{ISOLATED}"}
    offered = {"cpu": ORDINARY, "memory": "64Gi", "pods": 110, EXTENDED: ISOLATED}
    node = {"kind": "Node", "metadata": {"name": "n", "annotations": annotated}, "status": {"allocatable": offered}}
    classes = []
    for memory, limits in ((False, False), (True, False), (True, True)):
        requests = {**cores, **({"memory": "1Gi"} if memory else {})}
        # Kubernetes wants a limit that equals the request of an extended resource.
        limit = requests if limits else {name: amount for name, amount in cores.items() if name == EXTENDED}
        pods = [_pod(name, {"requests": requests, "limits": limit}, annotations) for name in "ab"]
        content = {"kind": "List", "apiVersion": "v1", "items": [node, *pods]}
        snapshot = load(io.BytesIO(json.dumps(content).encode()))
        classes.append(qos_class(snapshot.pods[0]))
    state = ClusterState(snapshot, release)
    state.fill(snapshot.pods)
    charged = {name: int(state.requested[row, 0]) for name, row in state.resources.items()}
    return Row(way, charged["cpu"] // 1000, charged.get(POOL, 0) or charged.get(EXTENDED, 0), tuple(classes))


def _pod(name: str, resources: Mapping[str, Any], annotations: Mapping[str, str]) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": dict(annotations)},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": resources}]},
        "status": {"phase": "Running"},
    }


def _changed_cache() -> Profile:
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"enabled": [{"name": "IsolatedCPUs"}]}}}],
    }
    return next(iter(make_profiles(content, K36).values()))


def main() -> None:
    """Print the table."""
    heading = ("", "ordinary CPU", "pool", "cores alone", "and memory", "and limits")
    for cells in (heading, *(row.cells for row in rows())):
        print("".join(f"{cell:<{width}}" for cell, width in zip(cells, (30, 14, 8, 13, 13, 0), strict=True)))


if __name__ == "__main__":
    main()
