"""Why a pod cannot be moved."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """A kind of eviction restriction; its value is the argument of ``--may-move``."""

    TIED = "tied"
    """Static, of a DaemonSet, or terminating already."""
    DEAD_NODE = "dead-node"
    """The node does not answer, so no eviction comes to an end there, and the pod tolerates that for good."""
    BARE = "bare"
    """No controller makes the pod again: an eviction deletes it for good."""
    TWO_BUDGETS = "two-budgets"
    """The API server refuses to evict a pod that several budgets select."""
    BUDGET = "budget"
    """A budget allows no disruption, and never will while the workload is of this size."""
    OWNER = "owner"
    """The controller is none of Kubernetes' own that replicate pods, so what it does after an eviction is unknown."""
    JOBS = "jobs"
    """Work under way: what a Job's pod has done until now is lost with the pod."""
    JOB_FAILS = "job-fails"
    """The eviction would make the Job fail, or nothing says that it would not."""
    NOT_RUNNING = "not-running"
    """Bound and not running yet; the descheduler is asked for running pods."""
    NOT_READY = "not-ready"
    """Not ready: its replacement rarely would be either, and a wave would wait for it in vain."""
    SCHEDULER = "scheduler"
    """koordinator's reservations are heeded by koordinator's scheduler only."""
    LOCAL_STORAGE = "local-storage"
    """Data on the node that the pod would lose, or a volume that the descheduler and koordinator protect by default."""
    CRITICAL = "critical"
    """A priority of 2,000,000,000 or more, which the descheduler and koordinator protect by default."""
    REPLICAS = "replicas"
    """The workload has so few replicas that koordinator's arbiter lets none of them go."""
    EVICTION_COST = "eviction-cost"
    """``scheduling.koordinator.sh/eviction-cost`` is the largest there is: never evict."""
    SAFE_TO_EVICT = "safe-to-evict"
    """``cluster-autoscaler.kubernetes.io/safe-to-evict`` says no."""
    DO_NOT_DISRUPT = "do-not-disrupt"
    """``karpenter.sh/do-not-disrupt`` says yes, or has not run out."""
    PREFER_NO_EVICTION = "prefer-no-eviction"
    """``descheduler.alpha.kubernetes.io/prefer-no-eviction`` is set."""


WAIVABLE = frozenset(Cause) - {
    Cause.TIED,
    Cause.DEAD_NODE,
    Cause.BARE,
    Cause.TWO_BUDGETS,
    Cause.BUDGET,
    Cause.OWNER,
    Cause.JOB_FAILS,
}
"""Causes that can be waived by name: an owner's word, a loss, or a default of an executor."""

BY_ANY_EXECUTOR = frozenset(
    {Cause.TIED, Cause.DEAD_NODE, Cause.OWNER, Cause.JOBS, Cause.JOB_FAILS, Cause.LOCAL_STORAGE}
)
"""Causes that keep a pod whatever evicts it, also where no executor is named."""

OF_ENDANGERED = frozenset({Cause.TIED, Cause.BARE})
"""Causes that keep a pod on a dead node from a new home; nothing else does, since it is evicted anyway."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why one pod stays on its node.

    Parameters
    ----------
    phrase
        The reason as pods share it, for counts.
    detail
        What is particular about this pod, if anything.
    """

    cause: Cause
    phrase: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.phrase}: {self.detail}" if self.detail else self.phrase
