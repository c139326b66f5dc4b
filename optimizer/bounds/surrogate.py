"""The surrogate relaxation: each convex curve by itself, with the total demand spread freely over the nodes."""

from __future__ import annotations

from stowplan.models.problem import NodeCurve, Problem
from stowplan.optimizer.bounds.bound import BoundRequest, CheapBound
from stowplan.optimizer.evaluate import Evaluator


class SurrogateBound(CheapBound):
    """The surrogate relaxation as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "surrogate relaxation"

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether loads of nodes have a convex cost."""
        terms = [weighted.term for weighted in problem.tiers[tier].terms]
        return any(isinstance(term, NodeCurve) and term.curves.convex for term in terms)

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        return surrogate_bound(request.evaluator, request.tier)


def surrogate_bound(evaluator: Evaluator, tier: int) -> int:
    """Return a lower bound of a tier: the sum of the surrogate relaxations of its convex curves."""
    return sum(curve.weight * curve.surrogate.least for curve in evaluator.curves(tier) if curve.weight > 0)
