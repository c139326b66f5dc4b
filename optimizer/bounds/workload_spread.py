"""Workload bound: the least cost of spreading each group of pods by itself, with the moves that it takes.

A move takes a pod of one group from one domain to another. Where the curve of a `DomainCurve` is convex, the best ``k``
moves take a pod from the fullest domain to the emptiest one, ``k`` times, and each saves no more than the one before.
So the saving of a group is concave in its moves, and the moves of all groups together are best spent on the largest
savings first (an infimal convolution of convex functions; R. T. Rockafellar, *Convex Analysis*, 1970, §5).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import DomainCurve, Problem
from stowplan.optimizer.bounds.bound import BoundRequest, CostClass
from stowplan.optimizer.bounds.water_filling import counts_domains, least_cost, reads_moves
from stowplan.optimizer.evaluate.cost import domain_cost, move_prices


class WorkloadSpreadBound:
    """The workload bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "workload bound"
    cost = CostClass.CHEAP

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether the number of pods in domains costs something, and moves do too or are limited."""
        return counts_domains(problem, tier) and reads_moves(problem, tier)

    def dominates(self, problem: Problem, tier: int) -> bool:
        """Never: it reads one group at a time."""
        return False

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        evaluator, tier = request.evaluator, request.tier
        return evaluator.once((self.name, tier), lambda: workload_spread_bound(evaluator.problem, request.upper, tier))


def workload_spread_bound(problem: Problem, upper: NDArray[np.int32], tier: int) -> int:
    """Return a lower bound of a tier: its `DomainCurve` and `Move` terms, each group of pods by itself.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    """
    terms = [
        (weighted.weight, weighted.term)
        for weighted in problem.tiers[tier].terms
        if isinstance(weighted.term, DomainCurve) and weighted.weight > 0
    ]
    price = move_prices(problem.tiers[tier], len(problem.classes))
    limit = problem.pods if problem.move_limit is None else problem.move_limit
    total, gains = 0, []
    for members, together in _groups(terms):
        costs = _costs_by_moves(problem, upper, together, min(limit, int(problem.size[members].sum())))
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
    problem: Problem, upper: NDArray[np.int32], terms: list[tuple[int, DomainCurve]], most: int
) -> Ints:
    """``[k]`` a lower bound of the cost of some terms if ``k`` pods leave their node; convex and never rising."""
    costs, least = np.zeros(most + 1, dtype=np.int64), 0
    for weight, term in terms:
        least += weight * least_cost(problem, upper, term)
        if _suits(term):
            costs += weight * _descent(problem, upper, term, most)
    found: Ints = np.maximum(costs, least)
    return found


def _suits(term: DomainCurve) -> bool:
    """Whether the curve is convex and falls nowhere: then pods that come in addition cost nothing less than 0."""
    return bool(len(term.held)) and term.curves.convex and bool(np.all(term.curves.slope >= 0))


def _descent(problem: Problem, upper: NDArray[np.int32], term: DomainCurve, most: int) -> Ints:
    """``[k]`` the cost of a term after the best ``k`` moves; pods that are unplaced at the start are left out."""
    here = term.topology.pods(problem.start.only(term.group))
    count = here + term.held
    reached = (upper[term.group] > 0).sum(axis=0, dtype=np.int64)
    open_domains: Bools = term.topology.total(reached) > 0
    # A pod that leaves may count nowhere: without a node, or on a node that is in no domain.
    vanishes = bool(problem.optional[term.group].any() or reached[term.topology.domain < 0].any())
    costs = np.zeros(most + 1, dtype=np.int64)
    costs[0] = domain_cost(term, count)
    kept = _sources_and_targets(here, count, open_domains, most)
    here, count, open_domains = here[kept], count[kept], open_domains[kept]
    if not len(kept):
        costs[:] = costs[0]
        return costs
    zero = np.zeros(len(kept), dtype=np.int64)
    at, above, below = (term.curves.at(zero, count + shift) for shift in (0, 1, -1))
    for k in range(most):
        saved = np.where(here > 0, at - below, -1)
        added = np.where(open_domains, above - at, np.iinfo(np.int64).max)
        source, target = int(saved.argmax()), int(added.argmin())
        paid = 0 if vanishes else int(added[target])
        if saved[source] - paid <= 0:
            costs[k + 1 :] = costs[k]
            return costs
        costs[k + 1] = costs[k] - (saved[source] - paid)
        changes = [(source, -1)] if vanishes else [(source, -1), (target, 1)]
        for d, pods in changes:
            here[d] += min(0, pods)
            count[d] += pods
            around = term.curves.at(np.zeros(3, dtype=np.int64), count[d] + np.array([-1, 0, 1]))
            below[d], at[d], above[d] = around
    return costs


def _sources_and_targets(here: Ints, count: Ints, open_domains: Bools, most: int) -> Ints:
    """Return the domains that pods may leave, and as many of the emptiest others that are open as pods may move."""
    targets = np.flatnonzero(open_domains & (here == 0))
    if len(targets) > most:
        targets = targets[np.argpartition(count[targets], most - 1)[:most]]
    return np.append(np.flatnonzero(here > 0), targets)
