"""Pods that Permit plugins keep waiting: reserved on a node, and not bound yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from stowplan.plugins_compat.framework.cycle_state import CycleState

LONGEST = 15 * 60.0
"""Seconds that a plugin may let a pod wait at most, whatever it asks for."""


@dataclass(slots=True, eq=False)
class WaitingPod:
    """A pod that waits for the permission of some plugins.

    It is counted on its node, so that no other pod takes its place. The first word counts: a pod that was rejected
    cannot be allowed any more.

    Parameters
    ----------
    cycle
        The pod's scheduling cycle, which goes on with PreBind once all have allowed it.
    node
        The node that is reserved for it.
    pending
        Seconds that each plugin lets it wait, by name; a plugin that allowed it is not in it any more.
    """

    cycle: CycleState
    node: int
    pending: dict[str, float]
    rejection: str | None = None

    def allow(self, plugin: str) -> None:
        """Give a plugin's permission."""
        if self.rejection is None:
            self.pending.pop(plugin, None)

    def reject(self, plugin: str, reason: str) -> None:
        """Refuse the pod, unless all have allowed it already."""
        if self.pending and self.rejection is None:
            self.rejection = reason

    @property
    def decided(self) -> bool:
        """Whether the pod need not wait any more."""
        return self.rejection is not None or not self.pending

    @property
    def timeout(self) -> tuple[float, str]:
        """Seconds until the first plugin gives up, and its name."""
        return min((seconds, name) for name, seconds in self.pending.items())


@dataclass(slots=True)
class WaitingPods:
    """All pods that wait, in the order in which they began to; plugins reach them by ``state.waiting``."""

    _pods: dict[str, WaitingPod] = field(default_factory=dict)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(tuple(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, waiting: WaitingPod) -> None:
        """Let a pod wait."""
        waiting.pending = {name: min(seconds, LONGEST) for name, seconds in waiting.pending.items()}
        self._pods[waiting.cycle.pod.key] = waiting

    def get(self, key: str) -> WaitingPod | None:
        """Return a waiting pod by ``namespace/name``."""
        return self._pods.get(key)

    def take_decided(self) -> WaitingPod | None:
        """Return a pod that need not wait any more, and forget it."""
        for key, waiting in self._pods.items():
            if waiting.decided:
                return self._pods.pop(key)
        return None

    def expire(self) -> None:
        """Let the first time-out come: the pod whose plugin gives up first is rejected."""
        if self._pods:
            waiting = min(self._pods.values(), key=lambda pod: pod.timeout)
            seconds, plugin = waiting.timeout
            waiting.reject(plugin, f"rejected due to timeout after waiting {seconds:g}s at plugin {plugin}")
