"""Leaving bound: how many moves it takes to free nodes of the pods that an earlier tier charges there.

All charged pods but those that the value of that tier allows leave their nodes, which is a move each. Where the others
have no room for so many pods, it takes evictions there, too: see `stowplan.optimizer.bounds.evictions`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Bools
from stowplan.models.problem import Prefer, Problem, Tier
from stowplan.optimizer.bounds.bound import BoundRequest, CostClass
from stowplan.optimizer.bounds.evictions import least_cost_of_room
from stowplan.optimizer.evaluate.cost import counts_moves, move_prices


class LeavingBound:
    """The leaving bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "leaving bound"
    cost = CostClass.CHEAP

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether moves cost something, and an earlier tier only charges pods on nodes."""
        return counts_moves(problem.tiers[tier]) and any(map(_charges, problem.tiers[:tier]))

    def dominates(self, problem: Problem, tier: int) -> bool:
        """Never: it reads one node at a time."""
        return False

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
    best = 0
    for earlier, value in zip(problem.tiers[:tier], reached, strict=False):
        if not _charges(earlier):
            continue
        charge = np.zeros(upper.shape, dtype=np.int64)
        for weighted in earlier.terms:
            if isinstance(weighted.term, Prefer):
                charge += weighted.weight * weighted.term.table[weighted.term.row]
        start = problem.start
        of_start = charge[start.cls, start.node]
        here = of_start > 0
        if not here.any():
            continue
        charged = np.flatnonzero((charge > 0).any(axis=1))
        # So many may stay; those that remain charged may be others, of any class that is charged somewhere.
        stay = value // int(charge[charge > 0].min())
        leave = int(start.count[here].sum()) - stay
        if leave <= 0:
            continue
        each = np.sort(np.repeat(price[start.cls[here]], start.count[here]))
        best = max(
            best, int(each[:leave].sum()) + _for_room(problem, upper, charge > 0, charged.tolist(), leave, price)
        )
    return best


def _for_room(
    problem: Problem, upper: NDArray[np.int32], charged: Bools, classes: list[int], leave: int, price: NDArray[np.int64]
) -> int:
    """Return a lower bound of what it costs that other pods make room for those that leave."""
    unscheduled = problem.size - problem.start.placed(len(problem.classes))
    if (problem.optional > unscheduled)[classes].any():
        return 0  # they may lose their nodes and get none
    nodes = charged.any(axis=0)
    open_pairs = np.where(charged, 0, upper)
    # A node that charges some classes only counts as if the others had all its room.
    leave -= int(open_pairs[classes][:, nodes].sum())
    open_pairs[:, nodes] = 0
    return least_cost_of_room(problem, open_pairs, np.array(classes), leave, price)


def _charges(tier: Tier) -> bool:
    """Whether a tier consists of charges of pods on nodes, none of them negative."""
    terms = [weighted.term for weighted in tier.terms]
    positive = all(weighted.weight > 0 for weighted in tier.terms)
    return bool(terms) and positive and all(isinstance(term, Prefer) and (term.table >= 0).all() for term in terms)
