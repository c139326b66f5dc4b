"""Bounds of one line each, which the bounds of the product must not be behind."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Capacity, DomainCurve, MoveBudget, Open, Problem


def one_line_bounds(problem: Problem) -> dict[int, tuple[int, str]]:
    """Return for tiers that have one a lower bound above 0, and what it is called."""
    found: dict[int, tuple[int, str]] = {}
    for t, tier in enumerate(problem.tiers):
        spread, nodes, emptied = 0, 0, 0
        for weighted in tier.terms:
            match weighted.term:
                case DomainCurve() as term:
                    spread += weighted.weight * _evenly(problem, term)
                case Open() as term if len(np.unique(term.cost)) == 1:
                    cost = weighted.weight * int(term.cost[0])
                    nodes += cost * _fewest_by_capacity(problem, term)
                    emptied += cost * _fewest_by_moves(problem, term)
                case _:
                    pass
        named = [(spread, "each workload evenly"), (nodes, "total capacity"), (emptied, "smallest pod counts")]
        if max(named)[0]:
            found[t] = max(named)
    return found


def _evenly(problem: Problem, term: DomainCurve) -> int:
    """Return the cost of the pods of a group spread evenly over all domains, whatever holds them back."""
    domains = len(term.held)
    if not domains or (term.topology.domain < 0).any() or not term.curves.convex:
        return 0
    pods = int((problem.size - problem.optional)[term.group].sum() + term.held.sum())
    even: Ints = np.full(domains, pods // domains) + (np.arange(domains) < pods % domains)
    return int(term.curves.at(np.zeros(domains, dtype=np.int64), even).sum())


def _fewest_by_capacity(problem: Problem, term: Open) -> int:
    """Return how many of the largest nodes hold the total demand, for the capacity that asks for most nodes."""
    fewest = int((term.held > 0).sum())
    required = problem.size - problem.optional
    for rule in problem.rules:
        if isinstance(rule, Capacity) and (rule.demand >= 0).all():
            today = problem.start.per_node(len(problem.nodes), rule.demand)  # what is overloaded may stay so
            room = np.cumsum(np.sort(np.maximum(today, rule.free))[::-1])
            fewest = max(fewest, int(np.searchsorted(room, int(rule.demand @ required))) + 1 if required.any() else 0)
    return min(fewest, len(problem.nodes))


def _fewest_by_moves(problem: Problem, term: Open) -> int:
    """Return how many nodes stay in use if the moves go to those with the fewest pods."""
    pods = problem.start.per_node(len(problem.nodes))
    limit = min((rule.limit for rule in problem.rules if isinstance(rule, MoveBudget)), default=problem.pods)
    movable = np.sort(pods[(term.held == 0) & (pods > 0)])
    return int(((pods > 0) | (term.held > 0)).sum()) - int((np.cumsum(movable) <= limit).sum())
