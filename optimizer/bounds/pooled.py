"""Lower bounds that cost nothing: every curve for itself, with all pods' demand spread over the nodes as it likes."""

from __future__ import annotations

from models.problem import NodeCurve
from optimizer.evaluate import Judge

NAME = "pooled loads"
"""What results call this bound."""


def pooled_bound(judge: Judge, tier: int) -> int:
    """Return a lower bound of a tier: the sum of what its convex curves cost at the very least."""
    terms = [weighted for weighted in judge.problem.tiers[tier].terms if isinstance(weighted.term, NodeCurve)]
    pooled = zip(terms, judge.pooled(tier), strict=True)
    return sum(weighted.weight * loads.least for weighted, loads in pooled if weighted.weight > 0)
