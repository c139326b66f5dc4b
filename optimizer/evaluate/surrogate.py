"""What loads cost at the very least, and what each node costs beyond that.

The loads of a curve's nodes add up to what all pods ask for, however they are placed. The least that a sum of convex
functions costs for a given sum of arguments is found by filling the flattest pieces first (infimal convolution). The
slope of the last piece is the *price* of load, the multiplier of the equation that adds the loads up. At this price
``λ`` a node with load ``x`` has the reduced cost ``f(x) − λ·x − min_y (f(y) − λ·y)``, which is never negative. Where
the sum of the loads is known, the reduced costs of all nodes add up to what the placement costs beyond the least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import FAR, NodeCurve, Problem


@dataclass(frozen=True, slots=True, eq=False)
class Surrogate:
    """The loads of a `NodeCurve`, spread over the nodes as they like.

    Parameters
    ----------
    least
        What the curves cost at the very least; 0 if they are not convex.
    price
        ``[n]`` cost of one more unit of load, the same for all nodes that count; 0 if the curves are not convex.
    base
        ``[n]`` the least that a node's curve costs at this price, ``min_y (f(y) − price·y)``.
    """

    least: int
    price: Ints
    base: Ints

    def reduced(self, node: Ints, value: Ints, load: Ints) -> Ints:
        """Return what ``node[i]`` with ``load[i]``, whose curve is ``value[i]`` there, costs beyond what it has to."""
        return value - self.price[node] * load - self.base[node]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A weighted `NodeCurve` of a tier, and what its loads cost at least."""

    weight: int
    term: NodeCurve
    surrogate: Surrogate

    def reduced_cost(self, node: Ints, load: Ints) -> Floats:
        """Return what ``node[i]`` would cost with ``load[i]`` beyond what it has to."""
        curve = self.term.curve[node]
        value = np.zeros_like(load)
        value[curve >= 0] = self.term.curves.at(curve[curve >= 0], load[curve >= 0])
        return self.weight * self.surrogate.reduced(node, value, load).astype(np.float64)


def convolve(problem: Problem, term: NodeCurve) -> Surrogate:
    """Return what the loads of a term cost at least."""
    counted = term.curve >= 0
    nothing = np.zeros(len(counted), dtype=np.int64)
    if not counted.any() or not term.curves.convex:
        return Surrogate(0, nothing, nothing)
    placed = problem.size - problem.optional
    # Pods that may wait, or stand on a node whose load is not counted, may leave the total or not.
    free = problem.optional if counted.all() else problem.size
    fixed = placed if counted.all() else np.zeros_like(placed)
    surely = int((term.demand * fixed).sum()) + int(term.held[counted].sum())
    low = surely + int(np.minimum(0, term.demand * free).sum())
    high = surely + int(np.maximum(0, term.demand * free).sum())
    return _convolved(problem, term, counted, low, high)


def _convolved(problem: Problem, term: NodeCurve, counted: Bools, low: int, high: int) -> Surrogate:
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
    price = min(0, steps[0][0])
    for rise, step in steps:
        wanted = (low if rise >= 0 else high) - at
        if wanted <= 0:
            # Between what all pods ask for at least and at most, a total is worth nothing.
            price = max(0, price) if rise >= 0 and at < high else price
            break
        at, cost, price = at + min(step, wanted), cost + rise * min(step, wanted), rise
    # Where the last piece ends that rises less than the price, a load costs least at the price.
    flat = (pieces & (slope < price)).sum(axis=1)
    corner = np.where(flat > 0, begin[np.arange(nodes), np.minimum(flat, slope.shape[1] - 1)], least)
    prices, base = np.zeros((2, len(counted)), dtype=np.int64)
    prices[counted] = price
    base[counted] = term.curves.at(rows, corner) - price * corner
    return Surrogate(cost, prices, base)
