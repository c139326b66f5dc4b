"""Emptying bound: how many nodes a limit on moves allows to empty.

A node is empty in the end only if all its pods left it, and each of them is a move. So the nodes that are emptied have
no more pods at the start than there are moves: a 0-1 knapsack, whose linear relaxation has a greedy optimum
(G. Dantzig, "Discrete-variable extremum problems", 1957); where all nodes cost the same, the greedy choice is best.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import MoveBudget, Open, Problem
from stowplan.optimizer.bounds.bound import BoundRequest, CostClass


class EmptyingBound:
    """The emptying bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "emptying bound"
    cost = CostClass.CHEAP

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether moves are limited and nodes in use cost something."""
        limited = any(isinstance(rule, MoveBudget) for rule in problem.rules)
        return limited and any(isinstance(weighted.term, Open) for weighted in problem.tiers[tier].terms)

    def dominates(self, problem: Problem, tier: int) -> bool:
        """Never: it does not ask where pods could go."""
        return False

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        return emptying_bound(request.evaluator.problem, request.tier)


def emptying_bound(problem: Problem, tier: int) -> int:
    """Return a lower bound of a tier: the cost of the nodes in use that a limit on moves leaves.

    Terms other than `Open` count 0, which only lowers the bound. Each `Open` term is bounded by itself.
    """
    limits = [rule.limit for rule in problem.rules if isinstance(rule, MoveBudget)]
    if not limits:
        return 0
    pods = problem.start.per_node(len(problem.nodes))
    total = 0
    for weighted in problem.tiers[tier].terms:
        if isinstance(weighted.term, Open) and weighted.weight > 0:
            term = weighted.term
            cost = np.maximum(0, term.cost)
            fixed = int(cost[term.held > 0].sum())
            here = (term.held <= 0) & (pods > 0)
            total += weighted.weight * (
                fixed + int(cost[here].sum()) - _most_saved(cost[here], pods[here], min(limits))
            )
    return total


def _most_saved(saved: Ints, pods: Ints, moves: int) -> int:
    """Return at least the most that emptying nodes saves, if node ``i`` with ``pods[i] > 0`` saves ``saved[i]``."""
    order = sorted(range(len(saved)), key=lambda i: Fraction(int(saved[i]), int(pods[i])), reverse=True)
    total, left = 0, moves
    for i in order:
        if pods[i] > left:
            # Among nodes of equal savings the smallest are chosen first; no other fits, and a part saves nothing.
            alike = len(np.unique(saved[saved > 0])) <= 1
            return total if alike else total + left * int(saved[i]) // int(pods[i])
        total += int(saved[i])
        left -= int(pods[i])
    return total
