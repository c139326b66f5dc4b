"""Capacity bounds: from the total of one capacity at a time, which pods cannot be placed and which nodes are needed.

Each is a continuous knapsack problem: the optimum takes the items in the order of worth per size (G. Dantzig,
"Discrete-variable extremum problems", 1957).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import assert_never

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    Capacity,
    DomainCurve,
    Move,
    MovePeak,
    NodeCurve,
    NodeScore,
    Open,
    Pair,
    Prefer,
    Problem,
    Unplaced,
    Violation,
)
from stowplan.optimizer.bounds.bound import BoundRequest, CheapBound
from stowplan.optimizer.evaluate.evaluation import Evaluator


class CapacityBound(CheapBound):
    """The capacity bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "capacity bound"

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether unplaced pods or nodes in use cost something."""
        return any(isinstance(weighted.term, Unplaced | Open) for weighted in problem.tiers[tier].terms)

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        return capacity_bound(request.evaluator, request.tier, request.reached)


def capacity_bound(evaluator: Evaluator, tier: int, reached: Sequence[int]) -> int:
    """Return a lower bound of a tier: the least cost of its unplaced pods and of its nodes in use.

    Parameters
    ----------
    reached
        Values of the earlier tiers, which must not get worse. Together with the cost of unplaced pods, they limit how
        many pods may be left out to save nodes.
    """
    problem, total = evaluator.problem, 0
    for weighted in problem.tiers[tier].terms:
        match weighted.term:
            case Unplaced() as term if weighted.weight > 0:
                total += weighted.weight * _least_unplaced(problem, term, _residuals(evaluator))
            case Open() as term if weighted.weight > 0:
                total += weighted.weight * _least_open(problem, term, reached, _residuals(evaluator))
            case Unplaced() | Open():
                pass  # a negative weight: never compiled
            case Violation() | Move() | MovePeak() | Prefer() | NodeCurve() | DomainCurve() | NodeScore() | Pair():
                pass  # counts 0, which only lowers the bound
            case term:
                assert_never(term)
    return total


def _least_unplaced(problem: Problem, term: Unplaced, residuals: list[tuple[Ints, Ints]]) -> int:
    cost = np.maximum(0, term.cost)
    placed = (_most(cost, demand, problem.size, int(residual.sum())) for demand, residual in residuals)
    total = int((cost * problem.size).sum())
    return total - min(placed, default=total)


def _least_open(problem: Problem, term: Open, reached: Sequence[int], residuals: list[tuple[Ints, Ints]]) -> int:
    cost = np.where(term.held > 0, 0, np.maximum(0, term.cost))
    spared = [
        (weighted.weight * np.maximum(0, weighted.term.cost), value)
        for earlier, value in zip(problem.tiers, reached, strict=False)
        for weighted in earlier.terms
        if isinstance(weighted.term, Unplaced) and weighted.weight > 0
    ]
    least = 0
    for demand, residual in residuals:
        away = min(
            (_most(demand, cost_of_unplaced, problem.optional, budget) for cost_of_unplaced, budget in spared),
            default=int((demand * problem.optional).sum()),
        )
        needed = int((demand * problem.size).sum()) - away
        # The most that closed nodes can save if those in use are to hold what is needed.
        closed = int(residual.sum()) - needed
        least = max(least, int(cost.sum()) - _most(cost, residual, np.ones_like(cost), max(0, closed)))
    return least


def _residuals(evaluator: Evaluator) -> list[tuple[Ints, Ints]]:
    """Return ``[c]`` demands and ``[n]`` capacities, where no demand is negative.

    A node that is overloaded at the start may stay so.
    """
    return [
        (rule.demand, np.maximum(0, rule.free) + before)
        for rule, before in zip(evaluator.problem.rules, evaluator.start_violations, strict=True)
        if isinstance(rule, Capacity) and rule.demand.min(initial=0) >= 0
    ]


def _most(worth: Ints, size: Ints, copies: Ints, residual: int) -> int:
    """Return at least the worth of the best choice of items, ``copies`` of each, whose sizes add up to ``residual``."""
    free = size <= 0
    total = int((worth * copies)[free].sum())
    rest = np.flatnonzero(~free & (copies > 0))
    order = sorted(rest.tolist(), key=lambda i: Fraction(int(worth[i]), int(size[i])), reverse=True)
    for i in order:
        fit = min(int(copies[i]), residual // int(size[i]))
        total += fit * int(worth[i])
        residual -= fit * int(size[i])
        if fit < copies[i]:
            return total + residual * int(worth[i]) // int(size[i])
    return total
