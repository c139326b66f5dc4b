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
    kept
        ``[pods]`` whether only the user or the executor keeps a bound pod.
    """

    pods: Sequence[Pod]
    participation: Sequence[Participation]
    reason: Sequence[str]
    refused: Sequence[bool]
    kept: Sequence[bool]

    def count(self, participation: Participation) -> int:
        """Return how many pods have this participation."""
        return sum(1 for s in self.participation if s is participation)

    def reasons(self, participation: Participation) -> Counter[str]:
        """Count the reasons of the pods with this participation."""
        return Counter(r for s, r in zip(self.participation, self.reason, strict=True) if s is participation and r)

    def fixed(self) -> list[Pod]:
        """Return the pods that stay where they are."""
        return [p for p, s in zip(self.pods, self.participation, strict=True) if s is Participation.FIXED]

    def kept_pods(self) -> list[Pod]:
        """Return the pods that only the user or the executor keeps: nothing of their own ties them to their node."""
        return [pod for pod, kept in zip(self.pods, self.kept, strict=True) if kept]

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
        [one.participation for one in found],
        [one.reason for one in found],
        [one.refused for one in found],
        [one.kept for one in found],
    )


@dataclass(frozen=True, slots=True)
class _One:
    participation: Participation
    reason: str = ""
    refused: bool = False
    kept: bool = False


def _classify(pod: Pod, framework: Framework, freeze: Freeze | None) -> _One:
    if pod.finished:
        return _One(Participation.FINISHED)
    reason = tied(pod) or _foreign(pod, framework)
    refusal = _refused(pod, framework)
    if pod.node_name:
        if own := reason or refusal:
            return _One(Participation.FIXED, own)
        wish = freeze and freeze(pod)
        return _One(Participation.FIXED, wish, kept=True) if wish else _One(Participation.PLACED)
    for plugin in framework.pre_enqueue:
        if status := plugin.pre_enqueue(pod):
            reason = reason or status.reasons[0]
    return _One(Participation.PENDING, reason or refusal or "", refused=bool(refusal) and not reason)


def _foreign(pod: Pod, framework: Framework) -> str | None:
    name, profile = pod.spec.scheduler_name, framework.profile
    return None if name in profile.names else f"scheduler {name}"


def _refused(pod: Pod, framework: Framework) -> str | None:
    if pod.spec.scheduler_name not in framework.profile.modeled:
        return f"profile {pod.spec.scheduler_name}, which filters otherwise than {framework.profile.scheduler_name}"
    return next((reason for plugin in framework.plugins.values() if (reason := plugin.refuses(pod))), None)
