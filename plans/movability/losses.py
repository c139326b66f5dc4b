"""What is lost for good when a pod goes: data on its node, and the work of a Job's pod."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from stowplan.models.kubernetes import Pod
from stowplan.models.moments import parse_time
from stowplan.models.snapshot import Snapshot
from stowplan.plans.movability.jobs import running_time
from stowplan.plans.movability.local_data import local_data

Losses = Callable[[Pod], tuple[str, ...]]
"""Returns what is lost when a pod is evicted, in words."""


def losses(snapshot: Snapshot, now: datetime | None = None) -> Losses:
    """Return what says for a pod of a snapshot what its eviction loses.

    Parameters
    ----------
    now
        The present, for the time that a pod has run; by default the latest moment that the snapshot names.
    """
    moment = now or latest(snapshot)

    def of(pod: Pod) -> tuple[str, ...]:
        lost = [f"data in {data}" for data in local_data(snapshot, pod)]
        controller = pod.metadata.controller
        if controller is not None and controller.kind == "Job":
            lost.append(f"{running_time(pod, moment)} of Job {controller.name}")
        return tuple(lost)

    return of


def latest(snapshot: Snapshot) -> datetime | None:
    """Return the latest moment that a snapshot names: it was taken no earlier."""
    stamps = {
        stamp
        for pod in snapshot.pods
        for stamp in (pod.metadata.creation_timestamp, pod.status.start_time if pod.status else None)
        if stamp
    }
    return max((read for stamp in stamps if (read := parse_time(stamp))), default=None)
