"""Lower bounds that cost nothing: every curve for itself, with all pods' demand spread over the nodes as it likes."""

from __future__ import annotations

from models.problem import NodeCurve, Problem
from optimizer.evaluate.pooling import pool

NAME = "pooled loads"
"""What results call this bound."""


def pooled_bound(problem: Problem, tier: int) -> int:
    """Return a lower bound of a tier: the sum of what its convex curves cost at the very least."""
    return sum(
        weighted.weight * pool(problem, weighted.term).least
        for weighted in problem.tiers[tier].terms
        if isinstance(weighted.term, NodeCurve) and weighted.weight > 0
    )
