"""Whether a Job survives the eviction of its pods, as the Job controller counts failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from stowplan.models.kubernetes import Job, Pod
from stowplan.models.kubernetes.workload import PodFailurePolicyRule
from stowplan.models.moments import parse_time
from stowplan.models.snapshot import Snapshot

BACKOFF_LIMIT = 6
"""Retries of a Job that does not say how many."""
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
DISRUPTION = "DisruptionTarget"
"""The condition that the Eviction API sets on a pod."""


class JobRuns:
    """The Jobs of a snapshot, with the number of their pods that may fail still.

    An evicted pod counts as failed, and a Job fails once more pods have failed than its ``backoffLimit``. So a Job
    survives if it would survive the eviction of all its unfinished pods; then it does so whichever of them move. With
    ``backoffLimitPerIndex``, each index has a limit of its own. A rule of its ``podFailurePolicy`` that ignores
    ``DisruptionTarget`` keeps evictions out of the count, unless an earlier rule can match first: one about exit codes
    may, since a container that is told to end can end with any code.

    Parameters
    ----------
    at_stake
        How many pods of each Job, by namespace and name, may fail still. By default all that are not finished.
    """

    def __init__(self, snapshot: Snapshot, at_stake: Mapping[tuple[str, str], int] | None = None) -> None:
        self._jobs = {(job.metadata.namespace or "default", job.metadata.name): job for job in snapshot.jobs}
        self._at_stake = _under_way(snapshot) if at_stake is None else at_stake

    def why_it_fails(self, pod: Pod) -> str:
        """Return why the Job of a pod may not survive an eviction; empty if it does."""
        owner = pod.metadata.controller
        assert owner is not None, "asked about pods of Jobs only"
        job = self._jobs.get((pod.namespace, owner.name))
        if job is None:
            return f"{owner.name} is not in the snapshot"
        return _why_it_fails(job, pod, self._at_stake.get((pod.namespace, owner.name), 0))


def running_time(pod: Pod, now: datetime | None) -> str:
    """Return for how long a pod has run, as ``2 h 5 min``."""
    text = pod.status.start_time if pod.status else None
    since = parse_time(text) if text else None
    if since is None or now is None:
        return "unknown running time"
    minutes = max(0, int((now - since).total_seconds()) // 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _under_way(snapshot: Snapshot) -> Counter[tuple[str, str]]:
    return Counter(
        (pod.namespace, owner.name)
        for pod in snapshot.pods
        if not pod.finished and (owner := pod.metadata.controller) and owner.kind == "Job"
    )


def _why_it_fails(job: Job, pod: Pod, at_stake: int) -> str:
    spec = job.spec
    name = job.metadata.name
    if spec and spec.pod_failure_policy:
        verdict = _policy(spec.pod_failure_policy.rules)
        if verdict == "Ignore":
            return ""
        if verdict != "Count":
            return f"podFailurePolicy of {name} may answer with {verdict}"
    if spec and spec.backoff_limit_per_index is not None:
        text = pod.metadata.annotations.get(INDEX_FAILURES, "")
        failures = int(text) if text.isdecimal() else 0
        limit = spec.backoff_limit_per_index
        return "" if failures < limit else f"{name} has no retries left for this index (backoffLimitPerIndex {limit})"
    limit = BACKOFF_LIMIT if spec is None or spec.backoff_limit is None else spec.backoff_limit
    failed = job.status.failed if job.status and job.status.failed else 0
    if failed + at_stake <= limit:
        return ""
    return f"{name} has failed {failed} of {limit} times allowed, and {at_stake} of its pods could go"


def _policy(rules: tuple[PodFailurePolicyRule, ...]) -> str:
    """Return the action that an eviction meets, or the worst that it may meet before; ``Count`` if none is meant."""
    for rule in rules:
        about = [condition for condition in rule.on_pod_conditions if condition.type == DISRUPTION]
        if any(condition.status == "True" for condition in about):
            return rule.action
        if rule.on_exit_codes is not None and rule.action in ("FailJob", "FailIndex"):
            return rule.action
    return "Count"
