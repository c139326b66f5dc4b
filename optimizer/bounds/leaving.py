"""Leaving bound: how many moves it takes to free nodes of the pods that an earlier tier charges there.

All charged pods but those that the value of that tier allows leave their nodes, which is a move each. Where the others
have no room for so many pods, it takes evictions there, too: see `stowplan.optimizer.bounds.evictions`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import Prefer, Problem, Tier
from stowplan.optimizer.bounds.bound import BoundRequest, CheapBound
from stowplan.optimizer.bounds.evictions import least_cost_of_room
from stowplan.optimizer.evaluate.cost import counts_moves, move_prices, node_prices


class LeavingBound(CheapBound):
    """The leaving bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "leaving bound"

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether moves cost something, and an earlier tier only charges pods on nodes."""
        return counts_moves(problem.tiers[tier]) and any(map(_charges, problem.tiers[:tier]))

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        return leaving_bound(request.evaluator.problem, request.upper, request.tier, request.reached)


def leaving_bound(problem: Problem, upper: NDArray[np.int32], tier: int, reached: Sequence[int]) -> int:
    """Return a lower bound of a tier: the cost of the moves without which too many charged pods stay on their nodes.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    reached
        Values of the earlier tiers, which must not get worse.
    """
    price = move_prices(problem.tiers[tier], len(problem.classes))
    before = zip(problem.tiers[:tier], reached, strict=False)
    return max(
        (_after(problem, upper, earlier, value, price) for earlier, value in before if _charges(earlier)), default=0
    )


def _after(problem: Problem, upper: NDArray[np.int32], earlier: Tier, value: int, price: Ints) -> int:
    """Return what the moves cost at least without which a tier that charges pods on nodes is above a value."""
    row, charge = node_prices(earlier, *problem.shape)
    start = problem.start
    here = charge[row[start.cls], start.node] > 0
    if not here.any():
        return 0
    # So many may stay; those that remain may be others, of any class that is charged somewhere.
    stay = value // int(charge[charge > 0].min())
    leave = int(start.count[here].sum()) - stay
    if leave <= 0:
        return 0
    each = np.sort(np.repeat(price[start.cls[here]], start.count[here]))
    return int(each[:leave].sum()) + _for_room(problem, upper, charge > 0, row, leave, price)


def _for_room(problem: Problem, upper: NDArray[np.int32], charged: Bools, row: Ints, leave: int, price: Ints) -> int:
    """Return a lower bound of what it costs that other pods make room for those that leave.

    Parameters
    ----------
    charged
        ``[row, n]`` whether classes of a row are charged on a node.
    row
        ``[c]`` the row of each class.
    """
    some = np.flatnonzero(charged.any(axis=1))
    classes = np.flatnonzero(np.isin(row, some))
    unscheduled = problem.size - problem.start.placed(len(problem.classes))
    if (problem.optional > unscheduled)[classes].any():
        return 0  # they may lose their nodes and get none
    most = np.zeros(len(problem.nodes), dtype=np.int64)
    for r in some.tolist():
        most += np.where(charged[r], 0, upper[row == r].sum(axis=0, dtype=np.int64))
    # A node that charges some classes only counts as if the others had all its room.
    nodes = charged.any(axis=0)
    leave -= int(most[nodes].sum())
    return least_cost_of_room(problem, np.where(nodes, 0, most), classes, leave, price)


def _charges(tier: Tier) -> bool:
    """Whether a tier consists of charges of pods on nodes, none of them negative."""
    terms = [weighted.term for weighted in tier.terms]
    positive = all(weighted.weight > 0 for weighted in tier.terms)
    return bool(terms) and positive and all(isinstance(term, Prefer) and (term.table >= 0).all() for term in terms)
