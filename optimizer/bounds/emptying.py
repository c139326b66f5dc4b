"""Emptying bounds: how many nodes a limit on moves allows to empty, and how many moves it takes to empty nodes.

A node is empty in the end only if all its pods left it, and each of them is a move. So the nodes that are emptied have
no more pods at the start than there are moves: a 0-1 knapsack, whose linear relaxation has a greedy optimum
(G. Dantzig, "Discrete-variable extremum problems", 1957); where all nodes cost the same, the greedy choice is best.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Open, Problem
from stowplan.optimizer.bounds.bound import BoundRequest, CheapBound
from stowplan.optimizer.evaluate.cost import counts_moves, move_prices


class EmptyingBound(CheapBound):
    """The emptying bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "emptying bound"

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether moves are limited and nodes in use cost something."""
        return problem.move_limit is not None and any(
            isinstance(weighted.term, Open) for weighted in problem.tiers[tier].terms
        )

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        return emptying_bound(request.evaluator.problem, request.tier)


def emptying_bound(problem: Problem, tier: int) -> int:
    """Return a lower bound of a tier: the cost of the nodes in use that a limit on moves leaves.

    Terms other than `Open` count 0, which only lowers the bound. Each `Open` term is bounded by itself.
    """
    limit = problem.move_limit
    if limit is None:
        return 0
    pods = problem.start.per_node(len(problem.nodes))
    total = 0
    for weighted in problem.tiers[tier].terms:
        if isinstance(weighted.term, Open) and weighted.weight > 0:
            term = weighted.term
            cost = np.maximum(0, term.cost)
            fixed = int(cost[term.held > 0].sum())
            here = (term.held <= 0) & (pods > 0)
            total += weighted.weight * (fixed + int(cost[here].sum()) - _most_saved(cost[here], pods[here], limit))
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


class EmptyingMovesBound(CheapBound):
    """How many moves it takes to empty nodes, as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "moves to empty nodes"

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether moves cost something, and nodes in use do in an earlier tier."""
        earlier = (weighted.term for before in problem.tiers[:tier] for weighted in before.terms)
        return counts_moves(problem.tiers[tier]) and any(isinstance(term, Open) for term in earlier)

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        return emptying_moves_bound(request.evaluator.problem, request.tier, request.reached)


def emptying_moves_bound(problem: Problem, tier: int, reached: Sequence[int]) -> int:
    """Return a lower bound of a tier: the cost of moving all pods off as many nodes as an earlier tier has emptied.

    This is a knapsack problem too, in its covering form: the linear relaxation takes the nodes with the least cost of
    moves for what they save, the last one in part. Where all save the same, the last one is taken whole.

    Parameters
    ----------
    reached
        Values of the earlier tiers, which must not get worse.
    """
    nodes = len(problem.nodes)
    price = move_prices(problem.tiers[tier], len(problem.classes))
    away = problem.start.per_node(nodes, price)
    pods = problem.start.per_node(nodes)
    best = 0
    for earlier, value in zip(problem.tiers[:tier], reached, strict=False):
        saved, today = np.zeros(nodes, dtype=np.int64), 0
        for weighted in earlier.terms:
            if isinstance(weighted.term, Open):
                term = weighted.term
                cost = weighted.weight * np.maximum(0, term.cost)
                today += int(cost[(term.held > 0) | (pods > 0)].sum())
                saved += np.where((term.held <= 0) & (pods > 0), cost, 0)
        best = max(best, _least_paid(saved, away, today - value))
    return best


def _least_paid(saved: Ints, paid: Ints, wanted: int) -> int:
    """Return at most the least that it costs to save ``wanted``, if node ``i`` saves ``saved[i]`` for ``paid[i]``."""
    some = np.flatnonzero(saved > 0).tolist()
    alike = len(np.unique(saved[some])) <= 1
    total = 0
    for i in sorted(some, key=lambda i: Fraction(int(paid[i]), int(saved[i]))):
        if wanted <= 0:
            break
        if wanted < saved[i] and not alike:
            return total - (-wanted * int(paid[i]) // int(saved[i]))
        total += int(paid[i])
        wanted -= int(saved[i])
    return total
