"""Who takes part: every pod of a snapshot is placed, pending, fixed or finished, with a reason where it is not free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Participation, Snapshot, tied
from stowplan.plugins_compat.framework.framework import Framework

Freeze = Callable[[Pod], str | None]
"""Returns why a pod is to stay where it is, or ``None``."""


@dataclass(frozen=True, slots=True)
class Participants:
    """The participation of every pod.

    Parameters
    ----------
    participation
        ``[pods]`` in the snapshot's order.
    reason
        ``[pods]`` why a pod is fixed, or why a pending pod is not offered to the solver; empty otherwise.
    refused
        ``[pods]`` whether only the model cannot answer for a pending pod; the scheduler can.
    """

    pods: Sequence[Pod]
    participation: Sequence[Participation]
    reason: Sequence[str]
    refused: Sequence[bool]

    def count(self, participation: Participation) -> int:
        """Return how many pods have this participation."""
        return sum(1 for s in self.participation if s is participation)

    def reasons(self, participation: Participation) -> Counter[str]:
        """Count the reasons of the pods with this participation."""
        return Counter(r for s, r in zip(self.participation, self.reason, strict=True) if s is participation and r)

    def fixed(self) -> list[Pod]:
        """Return the pods that stay where they are."""
        return [p for p, s in zip(self.pods, self.participation, strict=True) if s is Participation.FIXED]

    def free(self) -> list[Pod]:
        """Return the pods that the solver places."""
        return [
            pod
            for pod, participation, reason in zip(self.pods, self.participation, self.reason, strict=True)
            if participation is Participation.PLACED or (participation is Participation.PENDING and not reason)
        ]

    def only_refused(self) -> list[Pod]:
        """Return the pending pods that the scheduler can place and the solver cannot."""
        return [pod for pod, refused in zip(self.pods, self.refused, strict=True) if refused]


def classify(snapshot: Snapshot, framework: Framework, freeze: Freeze | None = None) -> Participants:
    """Find the participation of every pod.

    Parameters
    ----------
    framework
        Its plugins say which pods they cannot answer for.
    freeze
        The user's own request that a pod stays.
    """
    found = [_classify(pod, framework, freeze) for pod in snapshot.pods]
    return Participants(
        snapshot.pods,
        [participation for participation, _, _ in found],
        [reason for _, reason, _ in found],
        [refused for _, _, refused in found],
    )


def _classify(pod: Pod, framework: Framework, freeze: Freeze | None) -> tuple[Participation, str, bool]:
    if pod.finished:
        return Participation.FINISHED, "", False
    reason = tied(pod) or _foreign(pod, framework)
    refusal = _refused(pod, framework)
    if pod.node_name:
        reason = reason or refusal or (freeze and freeze(pod))
        return (Participation.FIXED, reason, False) if reason else (Participation.PLACED, "", False)
    for plugin in framework.pre_enqueue:
        if status := plugin.pre_enqueue(pod):
            reason = reason or status.reasons[0]
    return Participation.PENDING, reason or refusal or "", bool(refusal) and not reason


def _foreign(pod: Pod, framework: Framework) -> str | None:
    name, profile = pod.spec.scheduler_name, framework.profile
    return None if name in profile.names else f"scheduler {name}"


def _refused(pod: Pod, framework: Framework) -> str | None:
    if pod.spec.scheduler_name not in framework.profile.modeled:
        return f"profile {pod.spec.scheduler_name}, which filters otherwise than {framework.profile.scheduler_name}"
    return next((reason for plugin in framework.plugins.values() if (reason := plugin.refuses(pod))), None)
