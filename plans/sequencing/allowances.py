"""Maximum number of evictions in a wave, by disruption budgets and by the user's limits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from stowplan.models.kubernetes import Pod
from stowplan.models.limits import LimitsDocument
from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import BudgetLedger, Budgets

Owner = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class EvictionLimit:
    """Maximum number of evictions in a wave, of one owner, node, or namespace (``of``), or in all."""

    kind: str
    of: Hashable
    most: int


class Allowances:
    """Evictions that the current wave still allows.

    Budgets are charged as if no replacement became ready before the end of the wave, so any order of moves will do.
    """

    def __init__(self, snapshot: Snapshot, budgets: Budgets, limits: LimitsDocument) -> None:
        self.budgets = budgets
        self.limits = limits
        self.ledger: BudgetLedger = budgets.ledger()
        self._sizes = Counter(owner_of(pod) for pod in snapshot.pods if not pod.finished)
        self._used: Counter[EvictionLimit] = Counter()

    def refusal(self, pod: Pod, source: int) -> str | None:
        """Return what keeps a pod from being evicted in this wave, or ``None``."""
        for limit in self.limits_on(pod, source):
            if self._used[limit] >= limit.most:
                return f"the limit of {limit.most} evictions {limit.kind} is reached"
        response = self.ledger.response(pod)
        if response.granted:
            return None
        names = ", ".join(self.budgets.all[i].name for i in self.budgets.covering(pod))
        return f"PodDisruptionBudget {names}: {response}"

    def charge(self, pod: Pod, source: int) -> None:
        """Note that a pod is evicted in this wave."""
        self._used.update(self.limits_on(pod, source))
        self.ledger.evict(pod)

    def end_wave(self, ready: Iterable[Pod]) -> None:
        """Begin the next wave: limits are fresh, and some pods or their replacements have become ready."""
        self._used.clear()
        for pod in ready:
            self.ledger.restore(pod)

    def limits_on(self, pod: Pod, source: int) -> list[EvictionLimit]:
        """Return every limit that an eviction of a pod from a node falls under."""
        limits, owner = self.limits, owner_of(pod)
        found = []
        if limits.per_owner is not None and owner is not None:
            found.append(EvictionLimit("of one owner", owner, share_of(limits.per_owner, self._sizes[owner])))
        if limits.per_node is not None:
            found.append(EvictionLimit("from one node", source, limits.per_node))
        if limits.per_namespace is not None:
            found.append(EvictionLimit("in one namespace", pod.namespace, limits.per_namespace))
        if limits.total is not None:
            found.append(EvictionLimit("in a wave", None, limits.total))
        return found


def owner_of(pod: Pod) -> Owner | None:
    """Return namespace, kind and name of the pod's controller, if it has one."""
    controller = pod.metadata.controller
    return (pod.namespace, controller.kind, controller.name) if controller else None


def share_of(limit: int | str, total: int) -> int:
    """Return a limit as a number; a percentage rounds up."""
    return limit if isinstance(limit, int) else math.ceil(int(limit.removesuffix("%")) * total / 100)
