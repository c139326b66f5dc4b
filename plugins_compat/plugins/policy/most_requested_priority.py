"""MostRequestedPriority: nodes with little left are better."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.models.arrays import Ints
from stowplan.models.problem import Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.policy.used_resources import UsedResources, halves, shares


class MostRequestedPriority(UsedResources):
    """Scores ``(⌊10·used/capacity⌋ of CPU + the same of memory) // 2``; what is used beyond the capacity scores 0."""

    name = "MostRequestedPriority"
    surrogate = "the same with 100 steps a resource instead of 10, and full points beyond the capacity"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score by what is used with the pod in place."""
        used, capacity = self.usage(cycle, nodes)
        return halves(shares(used, used, capacity))

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the score as a `NodeScore`."""
        yield from self.node_score(view, "most", 10)
