"""Lower bounds that cost nothing: every curve for itself, with all pods' demand spread over the nodes as it likes."""

from __future__ import annotations

from stowplan.optimizer.evaluate import Evaluator

NAME = "surrogate relaxation"
"""What results call this bound."""


def surrogate_bound(evaluator: Evaluator, tier: int) -> int:
    """Return a lower bound of a tier: the sum of what its convex curves cost at the very least."""
    return sum(curve.weight * curve.surrogate.least for curve in evaluator.curves(tier) if curve.weight > 0)
