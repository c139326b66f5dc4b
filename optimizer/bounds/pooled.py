"""Lower bounds that cost nothing: every curve for itself, with all pods' demand spread over the nodes as it likes.

The loads of a curve's nodes add up to what all pods ask for, however they are placed. The least that a sum of convex
functions costs for a given sum of arguments is found by filling the flattest pieces first (infimal convolution).
"""

from __future__ import annotations

import numpy as np

from models.arrays import Bools
from models.problem import FAR, NodeCurve, Problem

NAME = "pooled loads"
"""What results call this bound."""


def pooled_bound(problem: Problem, tier: int) -> int:
    """Return a lower bound of a tier: the sum of what its convex curves cost at the very least."""
    total = 0
    for weighted in problem.tiers[tier].terms:
        if isinstance(weighted.term, NodeCurve) and weighted.weight > 0 and weighted.term.curves.convex:
            total += weighted.weight * _least(problem, weighted.term)
    return total


def _least(problem: Problem, term: NodeCurve) -> int:
    """Return the least that the curves cost for any total that the pods' loads can have."""
    counted = term.curve >= 0
    if not counted.any():
        return 0
    placed = problem.size - problem.spare
    # Pods that may wait, or stand on a node whose load is not counted, may leave the total or not.
    free = problem.spare if counted.all() else problem.size
    fixed = placed if counted.all() else np.zeros_like(placed)
    surely = int((term.demand * fixed).sum()) + int(term.held[counted].sum())
    low = surely + int(np.minimum(0, term.demand * free).sum())
    high = surely + int(np.maximum(0, term.demand * free).sum())
    return _convolved(problem, term, counted, low, high)


def _convolved(problem: Problem, term: NodeCurve, counted: Bools, low: int, high: int) -> int:
    """Return ``min Σ f_n(x_n)`` over whole ``x_n`` whose sum is between ``low`` and ``high``."""
    rows, nodes = term.curve[counted], int(np.count_nonzero(counted))
    start, slope = term.curves.start[rows], term.curves.slope[rows]
    # No load falls below what stays when all that lower it have come.
    least = term.held[counted] + int(np.minimum(0, term.demand * problem.size).sum())
    cost = int(term.curves.at(rows, least).sum())
    pieces = np.arange(start.shape[1])[None, :] < (start < FAR).sum(axis=1)[:, None]
    begin = np.maximum(start, least[:, None])
    begin[:, 0] = least
    end = np.append(np.where(start[:, 1:] < FAR, start[:, 1:], FAR), np.full((nodes, 1), FAR), axis=1)
    length = np.maximum(0, end - begin)
    there = pieces & (length > 0)
    at = int(least.sum())
    steps = sorted(zip(slope[there].tolist(), length[there].tolist(), strict=True))
    for rise, step in steps:
        wanted = (low if rise >= 0 else high) - at
        if wanted <= 0:
            break
        at, cost = at + min(step, wanted), cost + rise * min(step, wanted)
    return cost
