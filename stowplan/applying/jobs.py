"""Whether the Jobs of a live cluster survive what is left of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stowplan.applying.ledger import ApplyLedger
from stowplan.models.kubernetes import Pod
from stowplan.models.plan import Plan
from stowplan.models.snapshot import Snapshot
from stowplan.plans.movability.causes import Cause
from stowplan.plans.movability.jobs import JobRuns
from stowplan.settings.freeze import EVERYTHING


def failing_jobs(plan: Plan, ledger: ApplyLedger, snapshot: Snapshot) -> Iterator[str]:
    """Say for which pods that are still to be evicted the Job might fail, one line each.

    A Job may have failed more often since the plan was made, or have another limit. What counts against the limit is
    what has failed, what is on its way out, and what the plan still evicts; replacements are not evicted again, so
    they do not count. A plan that was made with ``--may-move job-fails`` has accepted the loss.
    """
    if {Cause.JOB_FAILS.value, EVERYTHING} & set(plan.settings.may_move):
        return
    pods = {pod.key: pod for pod in snapshot.pods if not pod.finished}
    at_stake = Counter(
        (pod.namespace, owner.name)
        for pod in pods.values()
        if pod.terminating and (owner := pod.metadata.controller) and owner.kind == "Job"
    )
    doomed: dict[str, Pod] = {}
    for move in plan.moves:
        if (
            move.kind == "place"
            or move.owner is None
            or move.owner.kind != "Job"
            or ledger.stage(move) not in {"waiting", "asked"}
        ):
            continue
        key = f"{move.pod.namespace}/{ledger.name(move)}"
        pod = pods.get(key)
        if pod is not None and not pod.terminating and pod.node_name:
            doomed[key] = pod
            at_stake[move.pod.namespace, move.owner.name] += 1
    runs = JobRuns(snapshot, at_stake)
    for key, pod in doomed.items():
        controller = pod.metadata.controller
        if controller is None or controller.kind != "Job":
            continue  # it has another controller now, which is drift
        if why := runs.why_it_fails(pod):
            yield f"pod {key}: its Job might not survive the eviction: {why}"
