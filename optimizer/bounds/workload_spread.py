"""Workload bound: the least cost of spreading each group of pods by itself, with the moves that it takes.

A move takes a pod of one group from one domain to another. Where the curve of a `DomainCurve` is convex, the best ``k``
moves take a pod from the fullest domain to the emptiest one, ``k`` times, and each saves no more than the one before.
So the saving of a group is concave in its moves, and the moves of all groups together are best spent on the largest
savings first (an infimal convolution of convex functions; R. T. Rockafellar, *Convex Analysis*, 1970, §5).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import DomainCurve, Problem
from stowplan.optimizer.bounds.attraction import Attraction
from stowplan.optimizer.bounds.bound import BoundRequest, CheapBound
from stowplan.optimizer.bounds.water_filling import (
    cost_of_counts,
    counts_domains,
    least_cost,
    may_wait,
    open_domains,
    reads_moves,
    rises,
)
from stowplan.optimizer.evaluate.cost import move_prices


class WorkloadSpreadBound(CheapBound):
    """The workload bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "workload bound"

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether the number of pods in domains costs something, and moves do too or are limited."""
        return counts_domains(problem, tier) and reads_moves(problem, tier)

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        evaluator, tier = request.evaluator, request.tier
        waiting = may_wait(evaluator.problem, tier, request.reached)
        return evaluator.once(
            (self.name, tier, waiting.tobytes()),
            lambda: workload_spread_bound(evaluator.problem, request.upper, tier, waiting, Attraction(evaluator)),
        )


def workload_spread_bound(
    problem: Problem,
    upper: NDArray[np.int32],
    tier: int,
    waiting: Ints | None = None,
    attraction: Attraction | None = None,
) -> int:
    """Return a lower bound of a tier: its `DomainCurve` and `Move` terms, each group of pods by itself.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    waiting
        ``[c]`` the most pods of each class that may be unscheduled, if fewer than all that the problem lets.
    attraction
        What is known of pods that must be near others.
    """
    waiting = problem.optional if waiting is None else waiting
    terms = [
        (weighted.weight, weighted.term)
        for weighted in problem.tiers[tier].terms
        if isinstance(weighted.term, DomainCurve) and weighted.weight > 0
    ]
    price = move_prices(problem.tiers[tier], len(problem.classes))
    limit = problem.pods if problem.move_limit is None else problem.move_limit
    total, gains = 0, []
    for members, together in _groups(terms):
        most = min(limit, int(problem.size[members].sum()))
        costs = _costs_by_moves(problem, upper, waiting, together, most, attraction)
        total += int(costs[0])
        saved = -np.diff(costs) - int(price[members].min())
        gains.append(saved[saved > 0])
    largest = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *gains]))[::-1][:limit]
    return total - int(largest.sum())


def _groups(terms: list[tuple[int, DomainCurve]]) -> list[tuple[Ints, list[tuple[int, DomainCurve]]]]:
    """Return sets of classes without common members, each with the terms that are about some of them."""
    found: list[tuple[set[int], list[tuple[int, DomainCurve]]]] = []
    of_class: dict[int, int] = {}
    for weight, term in terms:
        members, listed = set(term.group.tolist()), [(weight, term)]
        for i in {of_class[c] for c in members if c in of_class}:
            members |= found[i][0]
            listed = [*found[i][1], *listed]
            found[i] = (set(), [])
        of_class |= dict.fromkeys(members, len(found))
        found.append((members, listed))
    return [(np.array(sorted(members), dtype=np.int64), listed) for members, listed in found if listed]


def _costs_by_moves(
    problem: Problem,
    upper: NDArray[np.int32],
    waiting: Ints,
    terms: list[tuple[int, DomainCurve]],
    most: int,
    attraction: Attraction | None,
) -> Ints:
    """``[k]`` a lower bound of the cost of some terms if ``k`` pods leave their node; convex and never rising."""
    costs, least = np.zeros(most + 1, dtype=np.int64), 0
    for weight, term in terms:
        least += weight * least_cost(problem, upper, term, waiting, attraction)
        if rises(term):
            costs += weight * _descent(problem, upper, term, most)
    found: Ints = np.maximum(costs, least)
    return found


def _descent(problem: Problem, upper: NDArray[np.int32], term: DomainCurve, most: int) -> Ints:
    """``[k]`` the cost of a term after the best ``k`` moves; pods that are unplaced at the start are left out."""
    here = term.topology.pods(problem.start.only(term.group))
    count = here + term.held
    # A pod that leaves may count nowhere: without a node, or on a node that is in no domain.
    outside = term.topology.domain < 0
    vanishes = bool(
        problem.optional[term.group].any() or any((upper[c] > 0)[outside].any() for c in term.group.tolist())
    )
    costs = np.full(most + 1, cost_of_counts(term, count), dtype=np.int64)
    sources = np.flatnonzero(here)
    targets = np.zeros(0, dtype=np.int64) if vanishes else _emptiest(count, open_domains(upper, term), most)
    if not len(sources) or not (len(targets) or vanishes):
        return costs
    highest = int(count.max()) + most + 1
    value = term.curves.first(np.arange(highest + 1))
    step = np.diff(value).tolist()  # of one pod more
    pods = {int(d): int(count[d]) for d in np.union1d(sources, targets)}
    leaving = {int(d): int(here[d]) for d in sources}
    fullest = [(-step[pods[d] - 1], d) for d in leaving]
    emptiest = [(step[pods[d]], d) for d in targets.tolist()]
    reachable = set(targets.tolist())
    heapify(fullest)
    heapify(emptiest)
    for k in range(most):
        while fullest and not (leaving[fullest[0][1]] and -fullest[0][0] == step[pods[fullest[0][1]] - 1]):
            heappop(fullest)
        while emptiest and emptiest[0][0] != step[pods[emptiest[0][1]]]:
            heappop(emptiest)
        paid = 0 if vanishes else emptiest[0][0]
        if not fullest or -fullest[0][0] <= paid:
            break
        saved, source = -fullest[0][0], fullest[0][1]
        costs[k + 1 :] -= saved - paid
        leaving[source] -= 1
        changes = [(source, -1)] if vanishes else [(source, -1), (emptiest[0][1], 1)]
        for d, more in changes:
            pods[d] += more
        for d, _ in changes:
            if leaving.get(d):
                heappush(fullest, (-step[pods[d] - 1], d))
            if d in reachable:
                heappush(emptiest, (step[pods[d]], d))
    return costs


def _emptiest(count: Ints, among: Bools, most: int) -> Ints:
    """Return so many of some domains, those with the fewest pods."""
    found = np.flatnonzero(among & (count == 0))[:most]
    if len(found) < most:
        found = np.flatnonzero(among)
        if len(found) > most:
            found = found[np.argpartition(count[found], most - 1)[:most]]
    return found
