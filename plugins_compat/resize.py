"""In-place resize: what a running pod holds on its node, where that differs from what its spec requests.

While the kubelet resizes a pod, the scheduler counts for every container the largest of what the spec requests, what
the kubelet has admitted (``allocatedResources``) and what the container runs with (``resources``). Where the kubelet
has found the resize infeasible, the spec does not count.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from stowplan.models.kubernetes import Pod
from stowplan.models.kubernetes.base import EMPTY
from stowplan.models.kubernetes.pod import Container, ContainerStatus, ResourceRequirements

PENDING, INFEASIBLE = "PodResizePending", "Infeasible"


class Held:
    """What the containers of a pod hold, in nanos by resource name.

    Parameters
    ----------
    pod
        The pod, with its status.
    """

    def __init__(self, pod: Pod) -> None:
        status = pod.status
        pending = next((c for c in status.conditions if c.type == PENDING), None) if status else None
        self._pod = pod
        # As upstream: the first such condition decides, and its own status is not asked for.
        self._infeasible = pending is not None and pending.reason == INFEASIBLE
        self._statuses = _by_name(status.container_statuses) if status else {}
        self._init_statuses = _by_name(status.init_container_statuses) if status else {}

    def container(self, container: Container) -> Mapping[str, int]:
        """Return what a container holds."""
        return self._of(container, self._statuses)

    def sidecar(self, container: Container) -> Mapping[str, int]:
        """Return what a restartable init container holds."""
        return self._of(container, self._init_statuses)

    def pod_level(self, own: Mapping[str, int]) -> Mapping[str, int]:
        """Return the pod-level requests, for the resources that its spec names."""
        status = self._pod.status
        if status is None or status.resources is None:
            return own
        held = self._larger(own, status.resources, status.allocated_resources)
        return {name: held.get(name, 0) for name in own}

    def _of(self, container: Container, statuses: Mapping[str, ContainerStatus]) -> Mapping[str, int]:
        status = statuses.get(container.name)
        if status is None or status.resources is None:
            return container.requests
        return self._larger(container.requests, status.resources, status.allocated_resources)

    def _larger(
        self, wanted: Mapping[str, int], actuated: ResourceRequirements, allocated: Mapping[str, int]
    ) -> Mapping[str, int]:
        counted = (actuated.requests, allocated) if self._infeasible else (wanted, actuated.requests, allocated)
        return {name: max(part.get(name, 0) for part in counted) for part in counted for name in part}


def resize(pod: Pod) -> Hashable:
    """Return what the pod's containers hold if that differs from what its spec requests, else ``None``."""
    status = pod.status
    if status is None or not (status.container_statuses or status.init_container_statuses or status.resources):
        return None
    held = Held(pod)
    sidecars = [c for c in pod.spec.init_containers if c.restart_policy == "Always"]
    pairs: list[tuple[Mapping[str, int], Mapping[str, int]]] = [
        (container.requests, held.container(container)) for container in pod.spec.containers
    ]
    pairs += [(container.requests, held.sidecar(container)) for container in sidecars]
    own = pod.spec.resources.requests if pod.spec.resources else EMPTY
    pairs.append((own, held.pod_level(own)))
    if all(wanted == there for wanted, there in pairs):
        return None
    return tuple(frozenset(there.items()) for _, there in pairs)


def not_resized(pod: Pod) -> Pod:
    """Return a pod as its controller creates it anew: it requests what its spec says."""
    if pod.status is None:
        return pod
    status = replace(
        pod.status, container_statuses=(), init_container_statuses=(), resources=None, allocated_resources=EMPTY
    )
    return replace(pod, status=status)


def _by_name(statuses: tuple[ContainerStatus, ...]) -> dict[str, ContainerStatus]:
    return {status.name: status for status in reversed(statuses)}
