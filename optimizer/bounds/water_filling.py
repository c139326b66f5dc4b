"""Water-filling bound: each group of pods spread over its domains as evenly as these allow, by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import DomainCurve, Problem, Unplaced
from stowplan.optimizer.bounds.attraction import Attraction
from stowplan.optimizer.bounds.bound import BoundRequest, CheapBound
from stowplan.optimizer.evaluate.cost import counts_moves


class WaterFillingBound(CheapBound):
    """The water-filling bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "water-filling bound"

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether the number of pods in domains costs something, and moves do not: else the workload bound is above."""
        return counts_domains(problem, tier) and not reads_moves(problem, tier)

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        evaluator, tier = request.evaluator, request.tier
        waiting = may_wait(evaluator.problem, tier, request.reached)
        return evaluator.once(
            (self.name, tier, waiting.tobytes()),
            lambda: water_filling_bound(evaluator.problem, request.upper, tier, waiting, Attraction(evaluator)),
        )


def counts_domains(problem: Problem, tier: int) -> bool:
    """Whether the number of pods in domains costs something."""
    return any(isinstance(weighted.term, DomainCurve) for weighted in problem.tiers[tier].terms)


def reads_moves(problem: Problem, tier: int) -> bool:
    """Whether moves cost something in a tier, or are limited."""
    return counts_moves(problem.tiers[tier]) or problem.move_limit is not None


def may_wait(problem: Problem, tier: int, reached: Sequence[int]) -> Ints:
    """``[c]`` the most pods of each class that may be unscheduled while no tier before one gets worse.

    Where an earlier tier leaves no room for a single pod of a class, none may; the others are not counted exactly, so
    that what is computed from this number lasts.
    """
    waiting = problem.optional.copy()
    for earlier, value in zip(problem.tiers[:tier], reached, strict=False):
        costs = [
            weighted.weight * weighted.term.cost for weighted in earlier.terms if isinstance(weighted.term, Unplaced)
        ]
        if len(costs) == len(earlier.terms):
            waiting[sum(costs, np.zeros_like(waiting)) > value] = 0
    return waiting


def water_filling_bound(
    problem: Problem,
    upper: NDArray[np.int32],
    tier: int,
    waiting: Ints | None = None,
    attraction: Attraction | None = None,
) -> int:
    """Return a lower bound of a tier: the sum of the least costs of its `DomainCurve` terms, each by itself.

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
    return sum(
        weighted.weight * least_cost(problem, upper, weighted.term, waiting, attraction)
        for weighted in problem.tiers[tier].terms
        if isinstance(weighted.term, DomainCurve) and weighted.weight > 0
    )


def least_cost(
    problem: Problem,
    upper: NDArray[np.int32],
    term: DomainCurve,
    waiting: Ints,
    attraction: Attraction | None = None,
) -> int:
    """Return a lower bound of a term, however many pods move; 0 where its curve is not convex or falls anywhere."""
    if not rises(term):
        return 0
    outside = term.topology.domain < 0
    required = sum(int(problem.size[c] - waiting[c]) for c in term.group.tolist() if not (upper[c] > 0)[outside].any())
    most = attraction.most_domains(term) if attraction else None
    empty = int(np.count_nonzero(open_domains(upper, term) & (term.held == 0)))
    if required <= (empty if most is None else min(most, empty)):
        step = int(np.diff(term.curves.first(np.arange(2)))[0])
        return cost_of_counts(term, term.held) + required * step
    limit = np.zeros(len(term.held), dtype=np.int64)
    for c in term.group.tolist():
        limit += np.minimum(problem.size[c], term.topology.total(upper[c].astype(np.int64)))
    if most is not None:
        limit = _in_few(term.held, limit, most)
    held, limit, times = _alike(term.held, limit)
    level = _level(held, limit, times, required)
    filled = np.clip(level - held, 0, limit)
    # What is left over fills some of the domains by one more, at the same cost for each.
    over = required - int((filled * times).sum())
    fillable = bool(((filled < limit) & (held <= level)).any())
    step = _at(term, np.array([level + 1])) - _at(term, np.array([level])) if fillable else 0
    return _at(term, held + filled, times) + max(0, over) * step


def _in_few(held: Ints, limit: Ints, most: int) -> Ints:
    """Return limits under which so many domains cost no more than any choice of as many: those that hold the fewest.

    Each may take as many pods as the one that may take most.
    """
    reachable = np.flatnonzero(limit)
    if len(reachable) <= most:
        return limit
    few = reachable[np.argsort(held[reachable], kind="stable")[:most]]
    found = np.zeros_like(limit)
    found[few] = limit.max()
    return found


def rises(term: DomainCurve) -> bool:
    """Whether the curve of a term is convex and falls nowhere: then pods that come in addition cost nothing below 0."""
    return bool(len(term.held)) and term.curves.convex and bool(np.all(term.curves.slope >= 0))


def open_domains(upper: NDArray[np.int32], term: DomainCurve) -> Bools:
    """``[d]`` whether a pod of the term's group can be in a domain."""
    domain = term.topology.domain
    found = np.zeros(len(term.held), dtype=np.bool_)
    for c in term.group.tolist():
        found[domain[(upper[c] > 0) & (domain >= 0)]] = True
    return found


def cost_of_counts(term: DomainCurve, count: Ints) -> int:
    """Return the cost of a term with so many pods in each domain, ``[d]``, most of which hold none."""
    holding = count[np.flatnonzero(count)]
    values = term.curves.first(np.append(holding, 0))
    return int(values.sum()) + (len(count) - len(holding) - 1) * int(values[-1])


def _alike(held: Ints, limit: Ints) -> tuple[Ints, Ints, Ints]:
    """Return each pair of what a domain holds and how many pods it may take in addition, and how many domains have it.

    There are few pairs, and thousands of domains.
    """
    width = int(limit.max()) + 1
    pairs, times = np.unique(held * width + limit, return_counts=True)
    return pairs // width, pairs % width, times


def _level(held: Ints, limit: Ints, times: Ints, pods: int) -> int:
    """Return the highest level up to which domains can be filled with so many pods."""
    low, high = 0, int((held + limit).max()) + 1
    while low < high:
        middle = (low + high + 1) // 2
        if int((np.clip(middle - held, 0, limit) * times).sum()) <= pods:
            low = middle
        else:
            high = middle - 1
    return low


def _at(term: DomainCurve, count: Ints, times: Ints | int = 1) -> int:
    """Return the sum of the curve's values at numbers of pods, each so many times."""
    return int((term.curves.first(count) * times).sum())
