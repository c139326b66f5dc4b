"""Few-moves bound: what the loads of nodes cost today, less the most that so many moves can gain.

A node's load falls by no more than its largest pods request, as many as leave it, and rises by no more than the largest
ones that may be there. What ``j`` pods gain there is divided among them one by one, and the largest of these gains over
all nodes bound what any set of moves gains. Pods that arrive gain no more, either, than all that they request would in
any fractions. A node that pods leave and others reach counts as if it gained by both: with a convex cost it gains no
more than the larger of the two.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import FAR, NodeCurve, Placement, Problem
from stowplan.optimizer.bounds.bound import BoundRequest, CheapBound
from stowplan.optimizer.evaluate.cost import move_prices

COLUMNS = 16
"""Pods of a node whose gains there are told apart; the last one counts for all further ones, too."""

PIECES = 16
"""Pieces of the way from a node's load to where its cost is lowest."""

EXACT, SAFETY = 2.0**53, 1e-9
"""Up to where floating point is exact, and the share by which gains beyond that are raised, against rounding."""


class FewMovesBound(CheapBound):
    """The few-moves bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "few-moves bound"

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether moves are limited, and loads of nodes have a convex cost."""
        return problem.move_limit is not None and bool(_curves(problem, tier))

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        problem, tier = request.evaluator.problem, request.tier
        return request.evaluator.once((self.name, tier), lambda: few_moves_bound(problem, request.upper, tier))


def few_moves_bound(problem: Problem, upper: NDArray[np.int32], tier: int, columns: int = COLUMNS) -> int:
    """Return a lower bound of a tier: its convex costs of loads today, less what moves and pending pods can gain.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    columns
        Pods of a node that are told apart.
    """
    (classes, nodes), start = problem.shape, problem.start
    placed = int(start.count.sum())
    leaving = placed if problem.move_limit is None else min(problem.move_limit, placed)
    arriving = leaving + int(problem.size.sum()) - placed
    waiting = problem.size - start.placed(classes)
    gone, come = np.zeros((nodes, columns)), np.zeros((nodes, columns))
    today, filled = 0, 0.0
    for weight, term in _curves(problem, tier):
        load = start.per_node(nodes, term.demand) + term.held
        space = np.maximum(0, term.held + term.demand @ upper.astype(np.int64) - load)
        counted = np.flatnonzero(term.curve >= 0)
        today += weight * int(_cost(term, counted, load[counted]).sum())
        less, more = _leaving(term, start, nodes, columns), _arriving(term, problem.size, upper, columns, space)
        gone[counted] += weight * _gains(term, counted, load, -less).astype(np.float64)
        come[counted] += weight * _gains(term, counted, load, more).astype(np.float64)
        moved = np.sort(np.repeat(term.demand[start.cls], start.count))[::-1][:leaving]
        request = int(term.demand @ waiting) + int(moved.sum())
        filled += weight * _filling(term, counted, load[counted], np.minimum(space[counted], request), request)
    price = move_prices(problem.tiers[tier], classes)[start.cls].min(initial=FAR)
    gains = _largest(gone - price, leaving) + min(filled, _largest(come, arriving))
    # Whole numbers are exact up to there.
    return max(0, today - math.ceil(gains if gains < EXACT else gains * (1 + SAFETY)))


def _curves(problem: Problem, tier: int) -> list[tuple[int, NodeCurve]]:
    """Return the convex costs of loads that no pod lowers, with their weights."""
    return [
        (weighted.weight, weighted.term)
        for weighted in problem.tiers[tier].terms
        if isinstance(weighted.term, NodeCurve)
        and weighted.weight > 0
        and weighted.term.curves.convex
        and (weighted.term.demand >= 0).all()
    ]


def _leaving(term: NodeCurve, start: Placement, nodes: int, columns: int) -> Ints:
    """``[n, j]`` what the ``j + 1`` pods of a node that request most request; in the last column, all of them."""
    demand = np.repeat(term.demand[start.cls], start.count)
    node = np.repeat(start.node, start.count)
    order = np.lexsort((-demand, node))
    node, demand = node[order], demand[order]
    place = np.minimum(np.arange(len(node)) - np.searchsorted(node, node), columns - 1)
    each = np.zeros((nodes, columns), dtype=np.int64)
    np.add.at(each, (node, place), demand)
    together: Ints = each.cumsum(axis=1)
    return together


def _arriving(term: NodeCurve, size: Ints, upper: NDArray[np.int32], columns: int, space: Ints) -> Ints:
    """``[n, j]`` what ``j + 1`` pods that may be on a node request at most; in the last column, all that may be there.

    Parameters
    ----------
    space
        ``[n]`` what all pods that may be there request beyond today's load.
    """
    largest = np.zeros(upper.shape[1], dtype=np.int64)
    for c in np.flatnonzero(term.demand).tolist():
        np.maximum(largest, term.demand[c], out=largest, where=upper[c] > 0)
    most = -np.sort(-np.repeat(term.demand, np.minimum(size, columns)))[:columns]
    most = np.pad(most, (0, columns - len(most))).cumsum()
    found: Ints = np.minimum(largest[:, None] * np.arange(1, columns + 1), most)
    found[:, -1] = space
    return np.minimum(found, space[:, None])


def _filling(term: NodeCurve, counted: Ints, load: Ints, most: Ints, request: int) -> float:
    """Return the most that pods gain which request so much together, divided among nodes in any fractions.

    The way from today's load to the lowest cost is cut into pieces, of which each gains as much as at its beginning.
    """
    way = np.clip(_lowest(term)[term.curve[counted]] - load, 0, most)
    ends = np.stack([load + way * i // PIECES for i in range(PIECES + 1)], axis=1)
    rate = np.stack([_cost(term, counted, at) - _cost(term, counted, at + 1) for at in ends.T[:-1]], axis=1).ravel()
    length = np.diff(ends, axis=1).ravel()
    order = np.argsort(-rate, kind="stable")
    rate, length = rate[order], length[order]
    taken = np.minimum(length, np.maximum(0, request - (length.cumsum() - length)))
    return float((np.maximum(0.0, rate.astype(np.float64)) * taken).sum())


def _gains(term: NodeCurve, counted: Ints, load: Ints, change: Ints) -> Ints:
    """``[counted, j]`` what the pod ``j`` of a node gains there: how far the curve falls up to it beyond the last one.

    Parameters
    ----------
    counted
        Nodes that have a curve.
    load, change
        ``[n]`` today's, and ``[n, j]`` how far it goes at most in one direction with ``j + 1`` pods.
    """
    here, to = load[counted, None], load[counted, None] + change[counted]
    best = np.clip(_lowest(term)[term.curve[counted], None], np.minimum(here, to), np.maximum(here, to))
    cost = np.stack([_cost(term, counted, best[:, j]) for j in range(best.shape[1])], axis=1)
    gains: Ints = -np.diff(cost, axis=1, prepend=_cost(term, counted, load[counted])[:, None])
    return gains


def _lowest(term: NodeCurve) -> Ints:
    """``[k]`` a load at which each curve is lowest; without an end where it falls or rises for ever."""
    slope, start = term.curves.slope, term.curves.start
    first = np.argmax(slope >= 0, axis=1)
    rows = np.arange(len(slope))
    found = np.where(first > 0, start[rows, first], -FAR)
    lowest: Ints = np.where(slope[:, -1] < 0, FAR, found)
    return lowest


def _cost(term: NodeCurve, counted: Ints, load: Ints) -> Ints:
    return term.curves.at(term.curve[counted], load)


def _largest(gains: Floats, most: int) -> float:
    """Return the sum of the largest gains, of so many, that are above 0."""
    best = np.sort(gains[gains > 0])[::-1]
    return float(best[:most].sum())
