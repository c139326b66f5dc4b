"""Which pod is on which node, and which is nominated to which: what preemption asks of a cluster, pod by pod.

Everything else in the framework counts signatures; only a victim has to be one pod and no other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache

from stowplan.models.kubernetes import Pod
from stowplan.models.moments import parse_time
from stowplan.plugins_compat.framework.signatures import Signature

NOW = 2**62
"""The present moment, in nanoseconds: later than any start that a snapshot can name."""


@dataclass(frozen=True, slots=True, eq=False)
class Occupant:
    """A pod on a node.

    Parameters
    ----------
    arrival
        Pods that the simulation placed are numbered from 1 on; a pod that was there before has 0.
    """

    pod: Pod
    signature: Signature
    arrival: int = 0

    @property
    def has_started(self) -> bool:
        """Whether it is known when the pod started."""
        return self.arrival > 0 or self.started != NOW

    @property
    def started(self) -> int:
        """When the pod started, in nanoseconds. A pod placed by the simulation has only just started."""
        if self.arrival:
            return NOW + self.arrival
        stated = self.pod.status and self.pod.status.start_time
        return _nanoseconds(stated) if stated else NOW


class PodIndex:
    """The occupants of every node, in the order in which the scheduler's cache would hold them."""

    def __init__(self, size: int) -> None:
        self._on: list[list[Occupant]] = [[] for _ in range(size)]
        self._placed = 0

    def copy(self, size: int) -> PodIndex:
        """Return a copy for at least as many nodes, the further ones empty."""
        other = PodIndex(size)
        other._placed = self._placed
        for node, here in enumerate(self._on):
            other._on[node] = list(here)
        return other

    def on(self, node: int) -> Sequence[Occupant]:
        """Return the pods on a node."""
        return self._on[node]

    def add(self, pod: Pod, signature: Signature, node: int, *, new: bool) -> None:
        """Note that a pod is on a node; a ``new`` one has been placed just now."""
        self._placed += new
        self._on[node].append(Occupant(pod, signature, self._placed if new else 0))

    def remove(self, pod: Pod, node: int) -> Occupant:
        """Note that a pod has left; the last of the list takes its place, as in the scheduler's cache."""
        here = self._on[node]
        i = next(i for i, occupant in enumerate(here) if occupant.pod.key == pod.key)
        gone, here[i] = here[i], here[-1]
        here.pop()
        return gone


@dataclass(slots=True)
class Nominator:
    """Pods that wait for a node which preemption has chosen for them."""

    _on: defaultdict[int, dict[str, Pod]] = field(default_factory=lambda: defaultdict(dict))
    _node_of: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._node_of)

    def add(self, pod: Pod, node: int) -> None:
        """Nominate a pod, in place of an earlier nomination."""
        self.remove(pod)
        self._on[node][pod.key] = pod
        self._node_of[pod.key] = node

    def remove(self, pod: Pod) -> None:
        """Drop a pod's nomination, if it has one."""
        node = self._node_of.pop(pod.key, None)
        if node is not None:
            del self._on[node][pod.key]

    def node_of(self, pod: Pod) -> int | None:
        """Return the node a pod is nominated to."""
        return self._node_of.get(pod.key)

    def nominate_pending(self, pods: Sequence[Pod], index: Mapping[str, int]) -> None:
        """Take over the nominations that waiting pods have in their status."""
        for pod in pods:
            name = pod.status.nominated_node_name if pod.status and not pod.node_name else None
            if name and name in index:
                self.add(pod, index[name])

    def below(self, pod: Pod, node: int) -> list[Pod]:
        """Return the pods nominated to a node that have a lower priority than ``pod``."""
        return [other for other in self._on[node].values() if other.priority < pod.priority]

    def rivals(self, pod: Pod) -> dict[int, list[Pod]]:
        """Return the other nominated pods of the same or a higher priority, by node."""
        rivals: dict[int, list[Pod]] = {}
        for node, pods in self._on.items():
            here = [other for key, other in pods.items() if key != pod.key and other.priority >= pod.priority]
            if here:
                rivals[node] = here
        return rivals


@cache
def _nanoseconds(stamp: str) -> int:
    """Read an RFC 3339 time; one that cannot be read counts as the present."""
    read = parse_time(stamp)
    if read is None:
        return NOW
    since = read - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86400 + since.seconds) * 10**6 + since.microseconds) * 1000
