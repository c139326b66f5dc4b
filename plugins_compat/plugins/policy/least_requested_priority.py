"""LeastRequestedPriority: nodes with much left are better."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.models.arrays import Ints
from stowplan.models.problem import Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.policy.used_resources import UsedResources, halves, shares


class LeastRequestedPriority(UsedResources):
    """Scores ``(⌊10·free/capacity⌋ of CPU + the same of memory) // 2``."""

    name = "LeastRequestedPriority"
    surrogate = "the same with 100 steps a resource instead of 10"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score by what is left with the pod in place."""
        used, capacity = self.usage(cycle, nodes)
        return halves(shares(capacity - used, used, capacity))

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the score as a `NodeScore`."""
        yield from self.node_score(view, "least", 10)
