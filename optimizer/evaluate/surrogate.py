"""The surrogate relaxation of curves: the least cost of loads, and the reduced cost of each node.

The loads of a curve's nodes add up to the demand of all pods, however they are placed. The least cost of a sum of
convex functions for a given sum of arguments is found by filling the flattest pieces first (infimal convolution). The
slope of the last piece is the *dual* of the equation that adds the loads up. At this dual ``λ`` a node with load ``x``
has the reduced cost ``f(x) − λ·x − min_y (f(y) − λ·y)``, which is never negative. Where the sum of the loads is known,
the reduced costs of all nodes add up to the placement's cost above the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import FAR, Curves, NodeCurve, Problem

PIECES_AT_ONCE = 100_000
"""Pieces of curves that are looked at together."""


@dataclass(frozen=True, slots=True, eq=False)
class Surrogate:
    """The relaxation of a `NodeCurve` in which loads spread freely over the nodes.

    Parameters
    ----------
    least
        Minimum of the relaxation; 0 if the curves are not convex.
    dual
        ``[n]`` dual of load: cost of one more unit, the same for all nodes that count; 0 if the curves are not convex.
    base
        ``[n]`` minimum of a node's curve at this dual, ``min_y (f(y) − dual·y)``.
    """

    least: int
    dual: Ints
    base: Ints

    def reduced(self, node: Ints, value: Ints, load: Ints) -> Ints:
        """Return the reduced cost of ``node[i]`` with ``load[i]``, where its curve has ``value[i]``."""
        return value - self.dual[node] * load - self.base[node]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A weighted `NodeCurve` of a tier, and its surrogate relaxation."""

    weight: int
    term: NodeCurve
    surrogate: Surrogate

    def reduced_cost(self, node: Ints, load: Ints) -> Floats:
        """Return the reduced cost that ``node[i]`` would have with ``load[i]``."""
        curve = self.term.curve[node]
        value = np.zeros_like(load)
        value[curve >= 0] = self.term.curves.at(curve[curve >= 0], load[curve >= 0])
        return self.weight * self.surrogate.reduced(node, value, load).astype(np.float64)


def convolve(problem: Problem, term: NodeCurve) -> Surrogate:
    """Return the surrogate relaxation of a term."""
    counted = term.curve >= 0
    nothing = np.zeros(len(counted), dtype=np.int64)
    if not counted.any() or not term.curves.convex:
        return Surrogate(0, nothing, nothing)
    placed = problem.size - problem.optional
    # Pods that may be unplaced, or on a node whose load does not count, may add to the total or not.
    free = problem.optional if counted.all() else problem.size
    fixed = placed if counted.all() else np.zeros_like(placed)
    surely = int((term.demand * fixed).sum()) + int(term.held[counted].sum())
    low = surely + int(np.minimum(0, term.demand * free).sum())
    high = surely + int(np.maximum(0, term.demand * free).sum())
    return _convolved(problem, term, counted, low, high)


def _convolved(problem: Problem, term: NodeCurve, counted: Bools, low: int, high: int) -> Surrogate:
    """Return ``min Σ f_n(x_n)`` over whole ``x_n`` whose sum is between ``low`` and ``high``."""
    rows = term.curve[counted]
    slope = term.curves.slope[rows]
    # No load falls below what is held less all negative demands.
    least = term.held[counted] + int(np.minimum(0, term.demand * problem.size).sum())
    cost = int(term.curves.at(rows, least).sum())
    pieces, begin, length = pieces_above(term.curves, rows, least)
    there = length > 0
    at = int(least.sum())
    rises, lengths = slope[there], length[there]
    falling = rises < 0
    below, saved, slope_below = fill(rises[falling], lengths[falling], high - at)
    _, added, slope_above = fill(rises[~falling], lengths[~falling], low - at - below)
    cost += saved + added
    dual = min(0, int(rises.min())) if slope_below is None else slope_below
    if slope_above is not None:
        dual = slope_above
    elif at + below < high:
        dual = max(0, dual)  # between the least and the most total demand
    # A node's minimum at the dual is where the last piece ends whose slope is below the dual.
    flat = (pieces & (slope < dual)).sum(axis=1)
    corner = np.where(flat > 0, begin[np.arange(len(rows)), np.minimum(flat, slope.shape[1] - 1)], least)
    duals, base = np.zeros((2, len(counted)), dtype=np.int64)
    duals[counted] = dual
    base[counted] = term.curves.at(rows, corner) - dual * corner
    return Surrogate(cost, duals, base)


def pieces_above(curves: Curves, curve: Ints, load: Ints) -> tuple[Bools, Ints, Ints]:
    """Return the pieces of curves from loads on.

    Parameters
    ----------
    curve, load
        ``[i]`` which curve of the family, and from where on.

    Returns
    -------
    there, begin, length
        ``[i, j]`` which pieces are no padding, where each begins, and its length, 0 for those below the load.
    """
    start = curves.start[curve]
    there = np.arange(start.shape[1])[None, :] < (start < FAR).sum(axis=1)[:, None]
    begin = np.maximum(start, load[:, None])
    begin[:, 0] = load
    end = np.append(np.where(start[:, 1:] < FAR, start[:, 1:], FAR), np.full((len(start), 1), FAR), axis=1)
    return there, begin, np.where(there, np.maximum(0, end - begin), 0)


def fill(rises: Ints, lengths: Ints, wanted: int) -> tuple[int, int, int | None]:
    """Fill the flattest pieces first, up to a total length.

    Returns
    -------
    tuple[int, int, int | None]
        The length that is filled, what it costs, and the slope of the last piece, ``None`` if none is touched.
    """
    if wanted <= 0 or not len(rises):
        return 0, 0, None
    order = np.argsort(rises, kind="stable")
    left, cost, last = wanted, 0, 0
    # So few at a time that their lengths, each no more than wanted, add up to no more than a number holds.
    many = max(1, min(PIECES_AT_ONCE, 2**62 // wanted))
    for some in np.split(order, range(many, len(order), many)):
        length = np.minimum(lengths[some], left)
        before = np.cumsum(length) - length
        step = np.clip(left - before, 0, length)
        cost += int((rises[some] * step).sum())
        left -= int(step.sum())
        last = int(rises[some[np.flatnonzero(step)[-1]]])
        if not left:
            break
    return wanted - left, cost, last
