"""What disruption budgets forbid for good; what they only put off is a matter of waves."""

from __future__ import annotations

from collections import Counter

from stowplan.models.kubernetes import Pod
from stowplan.plans.budgets import Budget, Budgets
from stowplan.plans.movability.causes import Blocker, Cause


class PermanentBlockers:
    """Decides which pods budgets never let go, as things are.

    A budget allows as many disruptions as there are healthy pods beyond those it wants. It never allows one if it
    would not even with every pod healthy: all that it selects now, or all that its controllers are meant to have. It
    never allows one either where the disruption controller cannot count what there should be.
    """

    def __init__(self, budgets: Budgets) -> None:
        self.budgets = budgets
        self._living = Counter(
            i for pod in budgets.snapshot.pods if not (pod.finished or pod.terminating) for i in budgets.covering(pod)
        )

    def blocker(self, pod: Pod) -> Blocker | None:
        """Return what keeps a pod where it is, or ``None``."""
        asked = self.budgets.asked(pod)
        if len(asked) > 1:
            return Blocker(
                Cause.TWO_BUDGETS, "several PodDisruptionBudgets", ", ".join(self.budgets.all[i].name for i in asked)
            )
        for i in asked:
            budget = self.budgets.all[i]
            if not pod.ready and (budget.always_allows_unhealthy or budget.healthy >= budget.desired > 0):
                return None
            if why := self._never(budget, self._living[i]):
                return Blocker(Cause.BUDGET, "PodDisruptionBudget never allows an eviction", f"{budget.name}, {why}")
        return None

    def _never(self, budget: Budget, living: int) -> str:
        if budget.failure:
            return budget.failure
        most = max(living, budget.expected)
        if budget.expected <= 0:
            return "which expects no pods"
        return f"which wants {budget.desired} of {most} pods" if most <= budget.desired else ""
