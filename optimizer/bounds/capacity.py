"""Lower bounds from the room on all nodes together, one capacity at a time: who cannot be placed, who needs a node.

Each is a knapsack whose items may be cut: the best of it is found by taking what is worth most for its size
(Dantzig, "Discrete-variable extremum problems", 1957).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Capacity, Open, Problem, Unplaced
from stowplan.optimizer.evaluate.evaluation import Evaluator

NAME = "capacity bound"
"""What results call this bound."""


def capacity_bound(evaluator: Evaluator, tier: int, reached: Sequence[int]) -> int:
    """Return a lower bound of a tier: what its pods without a node and its nodes in use cost at the very least.

    Parameters
    ----------
    reached
        Values of the earlier tiers, which must not get worse. Together with the cost of pods without a node, they say
        how many pods may be left out to save nodes.
    """
    problem, total = evaluator.problem, 0
    for weighted in problem.tiers[tier].terms:
        match weighted.term:
            case Unplaced() as term if weighted.weight > 0:
                total += weighted.weight * _least_unplaced(problem, term, _residuals(evaluator))
            case Open() as term if weighted.weight > 0:
                total += weighted.weight * _least_open(problem, term, reached, _residuals(evaluator))
            case _:
                pass
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
            (_most(demand, price, problem.optional, budget) for price, budget in spared),
            default=int((demand * problem.optional).sum()),
        )
        needed = int((demand * problem.size).sum()) - away
        # What is saved at most by nodes that stay closed, if those in use are to hold what is needed.
        closed = int(residual.sum()) - needed
        least = max(least, int(cost.sum()) - _most(cost, residual, np.ones_like(cost), max(0, closed)))
    return least


def _residuals(evaluator: Evaluator) -> list[tuple[Ints, Ints]]:
    """Return demands and ``[n]`` room of the capacities that no pod makes room in.

    A node that holds too much from the start may go on holding that.
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
