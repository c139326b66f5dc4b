"""Room bound: how many pods stay without a node if few may leave theirs.

A node takes at most as many of the pods that wait as there is room for the smallest of them, resource by resource, once
the largest pods that may leave it have left. A multiplier on departures bounds what all nodes take together. Large pods
find less room than small ones, so this is asked of the largest pods of each resource too, by several thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import Capacity, Problem, Unplaced
from stowplan.optimizer.bounds.bound import BoundRequest, CheapBound
from stowplan.optimizer.bounds.waiting import costs_of_waiting, least_worth

THRESHOLDS = 8
"""Sizes of each resource from which on pods are asked about by themselves."""

MOST_DEPARTURES = 128
"""Departures from a node after which all others from it are free, so that time does not grow with the fullest node."""

FINENESS = 256
"""Parts of a pod that the price of a departure is a multiple of: whole numbers are exact."""


class RoomBound(CheapBound):
    """The room bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "room bound"

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether moves are limited and unplaced pods cost something."""
        unplaced = any(isinstance(weighted.term, Unplaced) for weighted in problem.tiers[tier].terms)
        return unplaced and problem.move_limit is not None

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        return room_bound(request.evaluator.problem, request.upper, request.tier, request.reached)


def room_bound(problem: Problem, upper: NDArray[np.int32], tier: int, reached: Sequence[int]) -> int:
    """Return a lower bound of a tier: the cost of the pods for which a limit on moves leaves no room.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    reached
        Values of the earlier tiers, which must not get worse.
    """
    limit = problem.move_limit
    if limit is None:
        return 0
    own, waiting = costs_of_waiting(problem, tier), problem.size - problem.start.placed(len(problem.classes))
    earlier, unplaced = _earlier(problem, own, reached[:tier])
    room, best = Room(problem, upper, limit), 0
    for chosen, most in ((own > 0, 0), ((own > 0) | earlier, unplaced)):
        for some in _largest(room.capacities, chosen & (waiting > 0)):
            # Those that are unplaced now and find no room are unplaced then, they or others of their class.
            left = int(waiting[some].sum()) - most
            if left > 0:
                counted = some[own[some] > 0]
                left -= room.arrivals(some)
                best = max(best, least_worth(own[counted], np.ones_like(counted), problem.optional[counted], left))
    return best


def _earlier(problem: Problem, own: Ints, reached: Sequence[int]) -> tuple[Bools, int]:
    """Return the classes that only earlier tiers count, and how many of their pods may be unplaced at most."""
    chosen, most = np.zeros(len(own), dtype=np.bool_), 0
    for earlier, value in enumerate(reached):
        cost = costs_of_waiting(problem, earlier)
        counted = (cost > 0) & (own <= 0)
        if problem.tiers[earlier].counts_unscheduled and counted.any() and not (chosen & counted).any():
            chosen |= counted
            most += value // int(cost[cost > 0].min())
    return chosen, most


def _largest(capacities: Sequence[Capacity], chosen: Bools) -> Iterator[Ints]:
    """Yield the chosen classes, and those of them from several sizes of each resource on."""
    classes = np.flatnonzero(chosen)
    if not len(classes):
        return
    yield classes
    for capacity in capacities:
        sizes = np.unique(capacity.demand[classes])[1:]
        for size in sizes[:: -(-len(sizes) // THRESHOLDS) or 1].tolist():
            yield classes[capacity.demand[classes] >= size]


class Room:
    """How many pods nodes can take if some leave.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    limit
        How many pods may leave in all.

    Attributes
    ----------
    departures
        How many may leave one node; after `MOST_DEPARTURES`, all count as gone that the limit lets leave.
    """

    def __init__(self, problem: Problem, upper: NDArray[np.int32], limit: int) -> None:
        self._upper, self._size, self._limit = upper, problem.size, limit
        self.capacities = problem.plain_capacities
        start, nodes = problem.start, len(problem.nodes)
        elsewhere = (upper > 0).sum(axis=1)[start.cls] > (upper[start.cls, start.node] > 0)
        may_leave = elsewhere | (problem.optional[start.cls] > 0)
        pod, node = (np.repeat(at[may_leave], start.count[may_leave]) for at in (start.cls, start.node))
        self.departures = most = min(limit, MOST_DEPARTURES, int(np.bincount(node, minlength=nodes).max(initial=0)))
        source = np.sort(node)
        rank = np.arange(len(source)) - np.searchsorted(source, source)
        column, leaves = np.minimum(rank + 1, most), rank < limit
        self._free = []
        for rule in self.capacities:
            # What leaves from an overloaded node makes room only once the overload is gone.
            room = np.maximum(0, rule.free) - start.per_node(nodes, rule.demand)
            gained = np.zeros((nodes, most + 1), dtype=np.int64)
            if not rule.held_on_source:
                demand = rule.demand[pod][np.lexsort((-rule.demand[pod], node))]
                np.add.at(gained, (source[leaves], column[leaves]), demand[leaves])
            # One [n, e] each: what is free once the e largest pods that may leave have left.
            self._free.append(np.maximum(0, room[:, None] + np.cumsum(gained, axis=1)))

    def arrivals(self, some: Ints) -> int:
        """Return the most pods of some classes that come to nodes."""
        most = self._upper[some].sum(axis=0, dtype=np.int64)
        room = np.broadcast_to(most[:, None], (len(most), self.departures + 1))
        for capacity, free in zip(self.capacities, self._free, strict=True):
            demand = capacity.demand[some]
            order = np.argsort(demand, kind="stable")
            smallest = np.repeat(demand[order], self._size[some][order])
            if smallest[-1] > 0:
                room = np.minimum(room, np.searchsorted(np.cumsum(smallest), free, side="right"))
        return _with_departures(room, self._limit)


def _with_departures(room: Ints, limit: int) -> int:
    """Return at least the most that ``Σ_n room[n, e_n]`` can be if ``Σ_n e_n ≤ limit``.

    For any price of a departure, no choice is above what each node makes of it alone, and what the limit is worth.
    """
    number = np.arange(room.shape[1])
    least, most = 0, FINENESS * int(room.max(initial=0))

    def dual(price: int) -> tuple[int, int]:
        worth = FINENESS * room - price * number
        return int(worth.max(axis=1, initial=0).sum()) + price * limit, int(worth.argmax(axis=1).sum())

    best, departures = dual(0)
    while least < most and departures != limit:
        price = (least + most) // 2
        value, departures = dual(price)
        best = min(best, value)
        least, most = (price + 1, most) if departures > limit else (least, price)
    return best // FINENESS
