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
from stowplan.models.problem import FAR, Curves, NodeCurve, Placement, Problem
from stowplan.optimizer.bounds.bound import BoundRequest, CheapBound
from stowplan.optimizer.evaluate.cost import move_prices
from stowplan.optimizer.evaluate.surrogate import fill, pieces_above

COLUMNS = 16
"""Pods of a node whose gains there are told apart; the last one counts for all further ones, too."""

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
    today = filled = 0
    for weight, term in _curves(problem, tier):
        loads, requests = _Loads(term, start), np.repeat(term.demand[start.cls], start.count)
        space = np.maximum(0, term.demand @ upper.astype(np.int64) - start.per_node(nodes, term.demand))
        today += weight * int(loads.cost.sum())
        less, more = _leaving(requests, start, nodes, columns), _arriving(term, problem.size, upper, columns, space)
        gone[loads.node] += weight * loads.gains(-less).astype(np.float64)
        come[loads.node] += weight * loads.gains(more).astype(np.float64)
        together = int(term.demand @ waiting) + int(np.sort(requests)[::-1][:leaving].sum())
        filled += weight * loads.gain_of_all(space, together)
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


def _leaving(requests: Ints, start: Placement, nodes: int, columns: int) -> Ints:
    """``[n, j]`` what the ``j + 1`` pods of a node that request most request; in the last column, all of them.

    Parameters
    ----------
    requests
        What each pod requests, in the order of ``start``.
    """
    node = np.repeat(start.node, start.count)
    order = np.lexsort((-requests, node))
    node = node[order]
    place = np.minimum(np.arange(len(node)) - np.searchsorted(node, node), columns - 1)
    each = np.zeros((nodes, columns), dtype=np.int64)
    np.add.at(each, (node, place), requests[order])
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


class _Loads:
    """The nodes whose load costs something, with today's loads.

    Attributes
    ----------
    node, cost
        ``[i]`` the nodes, and what their loads cost today.
    """

    def __init__(self, term: NodeCurve, start: Placement) -> None:
        self.node = np.flatnonzero(term.curve >= 0)
        self._curves, self._curve = term.curves, term.curve[self.node]
        self._load = (start.per_node(len(term.curve), term.demand) + term.held)[self.node]
        self.cost = self._curves.at(self._curve, self._load)

    def gains(self, change: Ints) -> Ints:
        """``[i, j]`` what the pod ``j`` of a node gains there: how far its cost falls up to it beyond the last one.

        Parameters
        ----------
        change
            ``[n, j]`` how far the load goes at most in one direction with ``j + 1`` pods.
        """
        here, to = self._load[:, None], self._load[:, None] + change[self.node]
        best = np.clip(_lowest(self._curves)[self._curve, None], np.minimum(here, to), np.maximum(here, to))
        cost = np.stack([self._curves.at(self._curve, load) for load in best.T], axis=1)
        gains: Ints = -np.diff(cost, axis=1, prepend=self.cost[:, None])
        return gains

    def gain_of_all(self, most: Ints, together: int) -> int:
        """Return the most that pods gain which request so much together, divided among nodes in any fractions.

        Parameters
        ----------
        most
            ``[n]`` by how much the load of a node can rise.
        """
        _, begin, length = pieces_above(self._curves, self._curve, self._load)
        length = np.clip((self._load + most[self.node])[:, None] - begin, 0, length)
        slope = self._curves.slope[self._curve]
        falling = (length > 0) & (slope < 0)
        _, cost, _ = fill(slope[falling], length[falling], together)
        return -cost


def _lowest(curves: Curves) -> Ints:
    """``[k]`` a load at which each curve is lowest; without an end where it falls or rises for ever."""
    first = np.argmax(curves.slope >= 0, axis=1)
    found = np.where(first > 0, curves.start[np.arange(len(first)), first], -FAR)
    lowest: Ints = np.where(curves.slope[:, -1] < 0, FAR, found)
    return lowest


def _largest(gains: Floats, most: int) -> float:
    """Return the sum of the largest gains, of so many, that are above 0."""
    best = np.sort(gains[gains > 0])[::-1]
    return float(best[:most].sum())
