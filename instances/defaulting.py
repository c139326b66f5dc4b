"""What the API server would have filled in, for manifests that never went through one.

An object that an API server stored has a uid and is complete. A manifest written by hand is not: a container with
a limit and no request requests its limit, a pod on the host's network holds its container ports there, and a
priority class is replaced by its number. A claim that names its volume is bound to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stowplan.models.interning import FrozenMap
from stowplan.models.kubernetes import Container, PersistentVolumeClaim, Pod, PriorityClass
from stowplan.models.kubernetes.pod import ResourceRequirements
from stowplan.models.kubernetes.storage import BIND_COMPLETED

BUILT_IN_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Defaults:
    """Completes pods of one snapshot."""

    def __init__(self, priority_classes: Sequence[PriorityClass]) -> None:
        self.priorities = BUILT_IN_PRIORITIES | {c.metadata.name: c.value for c in priority_classes}
        self.default_priority = next((c.value for c in priority_classes if c.global_default), None)

    def apply(self, pod: Pod) -> Pod:
        """Return the pod as an API server would have stored it."""
        if pod.metadata.uid:
            return pod
        spec = pod.spec
        changes: dict[str, Any] = {}
        containers = tuple(_container(c, bool(spec.host_network)) for c in spec.containers)
        if containers != spec.containers:
            changes["containers"] = containers
        inits = tuple(_container(c, False) for c in spec.init_containers)
        if inits != spec.init_containers:
            changes["init_containers"] = inits
        if spec.priority is None:
            name = spec.priority_class_name
            priority = self.priorities.get(name) if name else self.default_priority
            if priority is not None:
                changes["priority"] = priority
        return replace(pod, spec=replace(spec, **changes)) if changes else pod


def complete_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Return the claim as the controllers would have left it.

    A claim in phase ``Bound`` has been completed; if the annotation that says so is missing, the dump was stripped of
    it.
    """
    is_bound = not claim.metadata.uid or (claim.status is not None and claim.status.phase == "Bound")
    if not is_bound or not claim.spec.volume_name or claim.bound:
        return claim
    annotations = FrozenMap({**claim.metadata.annotations, BIND_COMPLETED: "yes"})
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))


def _container(container: Container, host_network: bool) -> Container:
    resources = container.resources
    if resources is not None and any(name not in resources.requests for name in resources.limits):
        requests = FrozenMap({**resources.limits, **resources.requests})
        container = replace(container, resources=ResourceRequirements(requests, resources.limits))
    if host_network and any(not port.host_port for port in container.ports):
        ports = tuple(replace(port, host_port=port.host_port or port.container_port) for port in container.ports)
        container = replace(container, ports=ports)
    return container
