"""Disruption budgets, worked out as the disruption controller does it, and asked as the Eviction API asks them.

Two components of Kubernetes decide whether a pod may be evicted. The disruption controller counts, for every
PodDisruptionBudget, how many pods there should be and how many are healthy
(``pkg/controller/disruption/disruption.go``); the API server looks at that count when an eviction is requested
(``pkg/registry/core/pod/storage/eviction.go``). Both are followed here to the letter, on a snapshot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property

from stowplan.models.kubernetes import Pod, PodDisruptionBudget
from stowplan.models.moments import parse_time
from stowplan.models.snapshot import Snapshot
from stowplan.plans.disruption import NotInSnapshot, Scales, SyncFailed, expected_pods, under_way

MOST_DISRUPTED = 2000
"""Evictions under way in one budget beyond which the API server refuses more."""


class EvictionResponse(StrEnum):
    """Answer of the Eviction API."""

    FREE = "granted; no budget is asked"
    """No budget covers the pod, or none is asked: it is pending, over, terminating, or unhealthy and let go."""
    COUNTED = "granted; the budget allows one disruption less"
    """Granted, and the budget allows one disruption less."""
    EXHAUSTED = "429: the budget allows no disruption"
    FORBIDDEN = "403: too many evictions are under way"
    SEVERAL = "500: more than one budget covers the pod"

    @property
    def granted(self) -> bool:
        """Whether the pod is evicted."""
        return self in (EvictionResponse.FREE, EvictionResponse.COUNTED)


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    """A PodDisruptionBudget as the disruption controller would see it now.

    Parameters
    ----------
    expected, desired
        How many pods there should be, and how many of them have to be healthy.
    healthy
        How many are: ready, not terminating, and no eviction of them granted in the last two minutes.
    disrupted
        How many evictions are under way.
    failure
        Why the controller cannot work the budget out; it then allows nothing. Empty if it can.
    remark
        How the stated status differs from this one; empty if it does not.
    """

    source: PodDisruptionBudget
    expected: int
    desired: int
    healthy: int
    disrupted: int = 0
    failure: str = ""
    remark: str = ""

    @property
    def name(self) -> str:
        """The budget's name inside its namespace."""
        return self.source.metadata.name

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{_namespace(self.source)}/{self.name}"

    @property
    def allowed(self) -> int:
        """Number of healthy pods that may be evicted now."""
        return _allowed(self.expected, self.desired, self.healthy) if not self.failure else 0

    @property
    def always_allows_unhealthy(self) -> bool:
        """Whether unhealthy pods leave whatever the budget says."""
        return bool(self.source.spec and self.source.spec.unhealthy_pod_eviction_policy == "AlwaysAllow")

    @property
    def stale(self) -> bool:
        """Whether the status is older than the newest generation of the spec."""
        return is_stale(self.source)

    def admits(self, ready: bool, healthy: int, disrupted: int, allowed: int) -> EvictionResponse:
        """Answer an eviction that falls to this budget alone.

        Parameters
        ----------
        ready
            Whether the pod is.
        healthy, disrupted, allowed
            Of the budget, at that moment.
        """
        if not ready and (self.always_allows_unhealthy or healthy >= self.desired > 0):
            return EvictionResponse.FREE
        if disrupted > MOST_DISRUPTED:
            return EvictionResponse.FORBIDDEN
        return EvictionResponse.COUNTED if allowed > 0 else EvictionResponse.EXHAUSTED


class Budgets:
    """All budgets of a snapshot.

    Parameters
    ----------
    now
        When the snapshot was taken; by default `taken_at` says.
    """

    def __init__(self, snapshot: Snapshot, now: datetime | None = None) -> None:
        self.snapshot = snapshot
        self.now = now or taken_at(snapshot)
        # By namespace and a label that the selector demands, so that a pod is held against few of thousands.
        self._demanding: defaultdict[tuple[str, tuple[str, str] | None], list[int]] = defaultdict(list)
        for i, source in enumerate(snapshot.pod_disruption_budgets):
            selector = source.spec.selector if source.spec else None
            if selector is not None:
                self._demanding[_namespace(source), next(iter(selector.match_labels.items()), None)].append(i)
        self._covering: dict[tuple[str, Mapping[str, str]], tuple[int, ...]] = {}
        self._matched: list[list[Pod]] = [[] for _ in snapshot.pod_disruption_budgets]
        for pod in snapshot.pods:
            for i in self.covering(pod):
                self._matched[i].append(pod)
        scales = Scales(snapshot)
        self.all: Sequence[Budget] = [
            _recomputed(source, pods, scales, self.now)
            for source, pods in zip(snapshot.pod_disruption_budgets, self._matched, strict=True)
        ]

    def covering(self, pod: Pod) -> tuple[int, ...]:
        """Return the positions, in ``all``, of the budgets whose selector selects a pod.

        An empty selector selects every pod of the namespace, a missing one none.
        """
        if not self._demanding:
            return ()
        labels = pod.metadata.labels
        key = (pod.namespace, labels)
        found = self._covering.get(key)
        if found is None:
            sources = self.snapshot.pod_disruption_budgets
            near = (i for item in (None, *labels.items()) for i in self._demanding.get((pod.namespace, item), ()))
            found = tuple(
                i
                for i in sorted(near)
                if (spec := sources[i].spec) and spec.selector is not None and spec.selector.matches(labels)
            )
            self._covering[key] = found
        return found

    def asked(self, pod: Pod) -> tuple[int, ...]:
        """Return the budgets that an eviction of a pod of the snapshot is put before: none if it is not running."""
        return () if ignores_budgets(pod) else self.covering(pod)

    @cached_property
    def remarks(self) -> list[str]:
        """Remarks on the budgets for readers of a plan, one line each."""
        lines = [f"PodDisruptionBudget {b.key}: {b.remark}" for b in self.all if b.remark]
        lines += [
            f"PodDisruptionBudget {b.key}: its status is not of its newest generation; until it is, evictions get a 429"
            for b in self.all
            if b.stale
        ]
        failed = [b for b in self.all if b.failure]
        if failed:
            others = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            verb = "allow" if others else "allows"
            lines.append(f"PodDisruptionBudget {failed[0].key}{others}: {verb} nothing, since {failed[0].failure}")
        return lines

    def ledger(self) -> BudgetLedger:
        """Return a ledger that starts at this snapshot."""
        return BudgetLedger(self)


class BudgetLedger:
    """What budgets come to while pods leave and their replacements become ready.

    A pod is named by its key; a replacement takes over the name of the pod it replaces, whatever it is called in the
    cluster.

    Attributes
    ----------
    healthy, disrupted
        Of each budget, in the order of ``budgets.all``.
    reserved
        Evictions of unhealthy pods that a budget counted: the API server takes them off what is allowed, until the
        controller, which does not, has looked again. Here they count until the replacement is ready.
    """

    def __init__(self, budgets: Budgets) -> None:
        self.budgets = budgets
        self.healthy = [budget.healthy for budget in budgets.all]
        self.disrupted = [budget.disrupted for budget in budgets.all]
        self.reserved = [0] * len(budgets.all)
        self._ready: dict[str, bool] = {}
        self._running: set[str] = set()
        self._counted: dict[str, bool] = {}

    def ready(self, pod: Pod) -> bool:
        """Whether the pod, or the replacement that has its name by now, is ready."""
        return self._ready.get(pod.key, pod.ready)

    def asked(self, pod: Pod) -> tuple[int, ...]:
        """Return the positions of the budgets that an eviction would be put before now."""
        return self.budgets.covering(pod) if pod.key in self._running else self.budgets.asked(pod)

    def response(self, pod: Pod) -> EvictionResponse:
        """Return the answer that the Eviction API would give now."""
        asked = self.asked(pod)
        if not asked:
            return EvictionResponse.FREE
        if len(asked) > 1:
            return EvictionResponse.SEVERAL
        (i,) = asked
        budget = self.budgets.all[i]
        return budget.admits(self.ready(pod), self.healthy[i], self.disrupted[i], self.allowed(i))

    def evict(self, pod: Pod) -> EvictionResponse:
        """Ask for an eviction; if it is granted, the pod no longer counts."""
        response = self.response(pod)
        if response is EvictionResponse.COUNTED:
            unhealthy = not self._counts(pod)
            self._counted[pod.key] = unhealthy
            for i in self.budgets.covering(pod):
                self.disrupted[i] += 1
                self.reserved[i] += unhealthy
        if response.granted:
            self.lose(pod)
        return response

    def lose(self, pod: Pod) -> None:
        """Note that a pod terminates, for whatever reason."""
        for i in self.budgets.covering(pod):
            self.healthy[i] -= self._counts(pod)
        self._ready[pod.key] = False

    def restore(self, pod: Pod) -> None:
        """Note that the replacement of a pod, or a pod that waited for a node, has become ready."""
        for i in self.budgets.covering(pod):
            self.healthy[i] += not self._counts(pod)
            self.disrupted[i] -= pod.key in self._counted
            self.reserved[i] -= self._counted.get(pod.key, False)
        self._ready[pod.key] = True
        self._running.add(pod.key)
        self._counted.pop(pod.key, None)

    def allowed(self, i: int) -> int:
        """How many healthy pods of a budget may be evicted now."""
        budget = self.budgets.all[i]
        left = 0 if budget.failure else _allowed(budget.expected, budget.desired, self.healthy[i])
        return max(0, left - self.reserved[i])

    def _counts(self, pod: Pod) -> bool:
        """Whether the pod is among the healthy ones."""
        known = self._ready.get(pod.key)
        return known if known is not None else _healthy(pod)


def taken_at(snapshot: Snapshot) -> datetime:
    """Return when a snapshot was taken, as far as it tells: the newest time that something began in it."""
    stamps = [pod.metadata.creation_timestamp for pod in snapshot.pods]
    stamps += [pod.status.start_time for pod in snapshot.pods if pod.status]
    for budget in snapshot.pod_disruption_budgets:
        stamps += list(budget.status.disrupted_pods.values()) if budget.status else []
    moments = [read for stamp in set(stamps) if stamp and (read := parse_time(stamp))]
    return max(moments, default=datetime(1970, 1, 1, tzinfo=UTC))


def is_stale(source: PodDisruptionBudget) -> bool:
    """Whether a budget's status is older than the newest generation of its spec."""
    observed = (source.status.observed_generation or 0) if source.status else 0
    return observed < (source.metadata.generation or 0)


def ignores_budgets(pod: Pod) -> bool:
    """Whether the Eviction API deletes a pod without asking any budget (``canIgnorePDB``)."""
    return pod.finished or pod.phase == "Pending" or pod.terminating


def _allowed(expected: int, desired: int, healthy: int) -> int:
    return max(0, healthy - desired) if expected > 0 else 0


def _recomputed(source: PodDisruptionBudget, pods: Sequence[Pod], scales: Scales, now: datetime) -> Budget:
    """Return ``trySync`` of the disruption controller; where it fails, ``failSafe``."""
    leaving = under_way(source, pods, now)
    healthy = sum(_healthy(pod) and pod.name not in leaving for pod in pods)
    status = source.status
    try:
        expected, desired = expected_pods(source, pods, scales)
    except NotInSnapshot as unknown:
        if status is None:
            return Budget(source, 0, 0, healthy, len(leaving), failure=str(unknown))
        remark = f"taken from its status, since {unknown}"
        return Budget(source, status.expected_pods, status.desired_healthy, healthy, len(leaving), remark=remark)
    except SyncFailed as failed:
        return Budget(source, 0, 0, healthy, len(leaving), failure=str(failed))
    budget = Budget(source, expected, desired, healthy, len(leaving))
    if status is not None and status.disruptions_allowed != budget.allowed:
        remark = f"allows {budget.allowed} disruptions, its status says {status.disruptions_allowed}"
        return Budget(source, expected, desired, healthy, len(leaving), remark=remark)
    return budget


def _healthy(pod: Pod) -> bool:
    return pod.ready and not pod.terminating


def _namespace(source: PodDisruptionBudget) -> str:
    return source.metadata.namespace or "default"
