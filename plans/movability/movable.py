"""Which pods an executor can move, and one reason for each pod that it cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from functools import cached_property

from stowplan.models.kubernetes import Pod
from stowplan.models.node_health import dead_nodes, endangered
from stowplan.models.settings import Executor
from stowplan.models.snapshot import Snapshot, tied
from stowplan.plans.budgets import Budgets
from stowplan.plans.movability.annotations import (
    DO_NOT_DISRUPT,
    EVICT,
    EVICTION_COST,
    NEVER,
    PREFER_NO_EVICTION,
    SAFE_TO_EVICT,
    cost,
    undisturbed,
)
from stowplan.plans.movability.budgets import PermanentBlockers
from stowplan.plans.movability.causes import BY_ANY_EXECUTOR, OF_ENDANGERED, Blocker, Cause
from stowplan.plans.movability.jobs import JobRuns
from stowplan.plans.movability.local_data import protected_data
from stowplan.plans.movability.losses import Losses, latest, losses
from stowplan.plans.movability.workloads import Workloads, may_migrate, replicates

CRITICAL = 2_000_000_000
"""The lowest priority that the descheduler takes for critical."""

KOORD_SCHEDULER = "koord-scheduler"


class Movability:
    """Decides which pods an executor can move. Call it as a `Freeze` of the compiler.

    The causes are looked for in the order of `Cause`, and the first one is the reason. The annotation
    ``descheduler.alpha.kubernetes.io/evict``, whatever its value, lifts what the tools that read it check themselves:
    everything of the descheduler's and koordinator's own, and ``prefer-no-eviction``. Annotations of other
    tools apply to every executor, since they state the owner's intention.

    Parameters
    ----------
    executor
        ``None`` if no executor is given; then only the causes count that hold for every executor and are about
        what would be lost: `BY_ANY_EXECUTOR`.
    waived
        Causes that shall not count.
    owners
        Kinds of controllers whose pods may move although stowplan does not know what these controllers do.
    drained
        Nodes that are to be emptied: their pods go whether they are ready or not, as with ``kubectl drain``.
    budgets
        The disruption budgets of the snapshot, if computed already.
    now
        The present, for protections that run out. By default the latest moment that the snapshot names, so that equal
        snapshots have equal answers; a protection is then rather taken for too long than for too short.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        executor: Executor | None,
        *,
        waived: Collection[Cause] = (),
        owners: Collection[str] = (),
        drained: Collection[str] = (),
        budgets: Budgets | None = None,
        now: datetime | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.executor = executor
        self.waived = frozenset(waived)
        self.owners = frozenset(owners)
        self.drained = frozenset(drained)
        self._permanent = PermanentBlockers(budgets or Budgets(snapshot)) if snapshot.pod_disruption_budgets else None
        self._now = now
        self._workloads = Workloads(snapshot)
        self._jobs = JobRuns(snapshot)
        self._dead = dead_nodes(snapshot)

    @cached_property
    def now(self) -> datetime | None:
        """The moment at which protections are asked whether they have run out."""
        return self._now or latest(self.snapshot)

    def __call__(self, pod: Pod) -> str | None:
        """Return the reason why a pod stays, in the words that pods of the same cause share, or ``None``."""
        blocker = self.blocker(pod)
        return None if blocker is None else blocker.phrase

    def blocker(self, pod: Pod) -> Blocker | None:
        """Return what keeps a bound pod where it is, or ``None`` if the executor can move it."""
        return next((blocker for blocker in self._blockers(pod) if blocker.cause not in self.waived), None)

    def losses(self, pod: Pod) -> tuple[str, ...]:
        """Return what is lost for good when a pod goes: data on its node, and the work of a Job's pod."""
        return self._losses(pod)

    @cached_property
    def _losses(self) -> Losses:
        return losses(self.snapshot, self.now)

    def _blockers(self, pod: Pod) -> Iterator[Blocker]:
        found = self._all_blockers(pod)
        if self._dead and endangered(pod, self._dead):
            return (blocker for blocker in found if blocker.cause in OF_ENDANGERED)
        if self.executor is None:
            return (blocker for blocker in found if blocker.cause in BY_ANY_EXECUTOR)
        return found

    def _all_blockers(self, pod: Pod) -> Iterator[Blocker]:
        annotations = pod.metadata.annotations
        if reason := tied(pod):
            yield Blocker(Cause.TIED, reason)
        if any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references):
            yield Blocker(Cause.TIED, "DaemonSet")
        if pod.node_name in self._dead:
            yield Blocker(Cause.DEAD_NODE, "on a dead node that it tolerates")
        controller = pod.metadata.controller
        if controller is None:
            yield Blocker(Cause.BARE, "no controller")
        if self._permanent is not None and (blocker := self._permanent.blocker(pod)):
            yield blocker
        if controller is not None and controller.kind == "Job":
            yield Blocker(Cause.JOBS, "Job under way", controller.name)
            if why := self._jobs.why_it_fails(pod):
                yield Blocker(Cause.JOB_FAILS, "Job might not survive an eviction", why)
        elif controller is not None and not replicates(controller) and controller.kind not in self.owners:
            yield Blocker(Cause.OWNER, "controller of unknown behavior", f"{controller.kind} {controller.name}")
        if self.executor == "koordinator" and pod.spec.scheduler_name != KOORD_SCHEDULER:
            yield Blocker(Cause.SCHEDULER, f"scheduler is not {KOORD_SCHEDULER}", pod.spec.scheduler_name)
        if self.executor == "descheduler" and pod.phase == "Pending":
            yield Blocker(Cause.NOT_RUNNING, "not running yet")
        if (reported := pod.unready) is not None and pod.node_name not in self.drained:
            yield Blocker(Cause.NOT_READY, "not ready", reported)
        if kept := next(protected_data(self.snapshot, pod), None):
            yield Blocker(Cause.LOCAL_STORAGE, "local storage", kept)
        if EVICT not in annotations:
            if self.executor != "eviction-api":
                yield from _protected_by_default(pod)
            if self.executor == "koordinator":
                yield from self._too_few(pod)
        if not annotations:
            return
        if cost(annotations, EVICTION_COST) == NEVER and not (self.executor == "koordinator" and EVICT in annotations):
            yield Blocker(Cause.EVICTION_COST, "eviction cost: never")
        if (said := annotations.get(SAFE_TO_EVICT)) in ("false", "on-completion"):
            yield Blocker(Cause.SAFE_TO_EVICT, f"safe-to-evict: {said}")
        if DO_NOT_DISRUPT in annotations and undisturbed(annotations[DO_NOT_DISRUPT], pod, self.now):
            yield Blocker(Cause.DO_NOT_DISRUPT, "do-not-disrupt")
        if PREFER_NO_EVICTION in annotations and EVICT not in annotations:
            yield Blocker(Cause.PREFER_NO_EVICTION, "prefer-no-eviction")

    def _too_few(self, pod: Pod) -> Iterator[Blocker]:
        """Refuse what koordinator's arbiter refuses for good: one replica, none, or all of them at once."""
        replicas = self._workloads.replicas(pod)
        if replicas in (0, 1, may_migrate(replicas)):
            yield Blocker(Cause.REPLICAS, "too few replicas", str(replicas))


def immovable(
    snapshot: Snapshot,
    executor: Executor | None,
    *,
    waived: Collection[Cause] = (),
    owners: Collection[str] = (),
    budgets: Budgets | None = None,
    now: datetime | None = None,
) -> Mapping[str, str]:
    """Return the reason for each bound pod that an executor cannot move, by pod key; finished pods are left out.

    Parameters
    ----------
    executor, waived, owners, budgets, now
        As for `Movability`.
    """
    movability = Movability(snapshot, executor, waived=waived, owners=owners, budgets=budgets, now=now)
    return {
        pod.key: str(blocker)
        for pod in snapshot.pods
        if pod.node_name and not pod.finished and (blocker := movability.blocker(pod))
    }


def _protected_by_default(pod: Pod) -> Iterator[Blocker]:
    """Yield what the DefaultEvictor of the descheduler protects; koordinator's descheduler asks the same plugin."""
    local = (
        f"{'emptyDir' if volume.empty_dir else 'hostPath'} {volume.name}"
        for volume in pod.spec.volumes
        if volume.empty_dir or volume.host_path
    )
    if first := next(local, None):
        yield Blocker(Cause.LOCAL_STORAGE, "local storage", first)
    if pod.priority >= CRITICAL:
        yield Blocker(Cause.CRITICAL, "critical priority")
