"""Eviction bound: how many moves it takes to make room for pods that are to be placed.

If ``e`` pods leave a node, it has room for at most as many pending pods as fit where the ``e`` largest pods were,
resource by resource. The concave envelope of that number tells what an eviction on each node brings at best; the
linear relaxation takes the best ones first, until there is room for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.models.problem import Problem, Unplaced
from stowplan.optimizer.bounds.bound import BoundRequest, CheapBound
from stowplan.optimizer.evaluate.cost import counts_moves, move_prices


class EvictionBound(CheapBound):
    """The eviction bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "eviction bound"

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether moves cost something, and unplaced pods do in an earlier tier."""
        earlier = (weighted.term for before in problem.tiers[:tier] for weighted in before.terms)
        return counts_moves(problem.tiers[tier]) and any(isinstance(term, Unplaced) for term in earlier)

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        return eviction_bound(request.evaluator.problem, request.upper, request.tier, request.reached)


def eviction_bound(problem: Problem, upper: NDArray[np.int32], tier: int, reached: Sequence[int]) -> int:
    """Return a lower bound of a tier: the cost of the moves without which too many pods stay without a node.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    reached
        Values of the earlier tiers, which must not get worse.
    """
    price = move_prices(problem.tiers[tier], len(problem.classes))
    best = 0
    for earlier, value in zip(problem.tiers[:tier], reached, strict=False):
        for weighted in earlier.terms:
            if isinstance(weighted.term, Unplaced) and weighted.weight > 0:
                cost = weighted.weight * weighted.term.cost
                wanted = np.flatnonzero(cost > 0)
                if len(wanted):
                    waiting = value // int(cost[wanted].min())
                    more = int((problem.size - problem.start.placed(len(problem.classes)))[wanted].sum()) - waiting
                    most = upper[wanted].sum(axis=0).astype(np.int64)
                    best = max(best, least_cost_of_room(problem, most, wanted, more, price))
    return best


def least_cost_of_room(problem: Problem, most: Ints, wanted: Ints, more: int, price: Ints) -> int:
    """Return a lower bound of the cost of moves that make room for so many more pods of the wanted classes.

    Parameters
    ----------
    most
        ``[n]`` the most pods of these classes that a node can hold, as far as they may be there.
    """
    if more <= 0:
        return 0
    capacities = problem.plain_capacities
    loads = [problem.start.per_node(len(problem.nodes), rule.demand) for rule in capacities]
    needed = [int(rule.demand[wanted].min()) for rule in capacities]
    on_node = np.argsort(problem.start.node, kind="stable")
    first = np.searchsorted(problem.start.node[on_node], np.arange(len(problem.nodes) + 1))
    steps: list[tuple[Fraction, int]] = []
    for n in np.flatnonzero(most).tolist():
        entries = on_node[first[n] : first[n + 1]]
        cls = np.repeat(problem.start.cls[entries], problem.start.count[entries])
        room = np.full(len(cls) + 1, most[n])
        for rule, load, each in zip(capacities, loads, needed, strict=True):
            if each:
                # What leaves from an overloaded node makes room only once the overload is gone.
                gained = np.concatenate([[0], np.cumsum(np.sort(rule.demand[cls])[::-1])])
                room = np.minimum(room, (max(0, int(rule.free[n])) - int(load[n]) + gained) // each)
        room = np.maximum(0, room)
        more -= int(room[0])
        steps += _envelope(room, int(price[cls].min()) if len(cls) else 0)
    total = Fraction(0)
    for each_pod, pods in sorted(steps):
        if more <= 0:
            break
        total += each_pod * min(pods, more)
        more -= pods
    return -(-total.numerator // total.denominator)


def _envelope(room: Ints, price: int) -> Iterator[tuple[Fraction, int]]:
    """Yield the segments of the concave envelope of ``room[e]``: the cost for each further pod, and how many pods."""
    at, last = 0, len(room) - 1
    while at < last and room[at] < room.max():
        slopes = (room[at + 1 :] - room[at]) / np.arange(1, last - at + 1)
        step = int(np.flatnonzero(slopes == slopes.max())[-1]) + 1
        pods = int(room[at + step] - room[at])
        yield Fraction(price * step, pods), pods
        at += step
