"""The loads of a node: those with a capacity, and those with a convex cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    FAR,
    PENALTY_WEIGHT,
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    GroupMoveBudget,
    MoveBudget,
    NodeCurve,
    Occupy,
    Problem,
    Repel,
    Rule,
    Spread,
    Term,
    Violation,
)
from stowplan.optimizer.evaluate.evaluation import Evaluator


class Row(NamedTuple):
    """A load of every node, with its curve; ``curve`` is a row of the family."""

    demand: Ints
    base: Ints
    capacity: Ints
    curve: Ints
    first: Ints
    slope: Ints
    value: Ints


def is_load(rule: Rule) -> bool:
    """Whether `load_rows` reads a rule."""
    return isinstance(rule, Capacity | Devices)


def load_rows(evaluator: Evaluator, terms: list[tuple[int, Term]], tier: int, reached: Sequence[int]) -> list[Row]:
    """Return the loads of nodes that have a capacity or a cost."""
    problem = evaluator.problem
    charge = sum(weight for weight, term in terms if isinstance(term, Violation))
    free_of_charge = np.zeros(len(problem.nodes), dtype=np.int64)
    flat = np.zeros((1, 1), dtype=np.int64)
    rows: list[Row] = []
    for rule, before in zip(problem.rules, evaluator.start_violations, strict=True):
        match rule:
            case Capacity():
                residual = np.maximum(0, rule.free)
                capacity = residual + np.minimum(before, _tolerated(problem, tier, reached, rule.penalty_weight))
                if charge:
                    nodes = len(problem.nodes)
                    slope = np.stack([free_of_charge, charge * rule.penalty_weight], axis=1)
                    first = np.stack([np.minimum(0, residual), residual], axis=1)
                    rows.append(Row(rule.demand, free_of_charge, capacity, np.arange(nodes), first, slope, 0 * slope))
                else:
                    rows.append(Row(rule.demand, free_of_charge, capacity, free_of_charge, flat, flat, flat))
            case Devices():
                penalty_weight = np.full(len(before), PENALTY_WEIGHT)
                over = np.minimum(before, _tolerated(problem, tier, reached, penalty_weight))
                for limit, demand, free in rule.sums:
                    rows.append(Row(demand, free_of_charge, free + limit * over, free_of_charge, flat, flat, flat))
            case (
                Allow()
                | AtMost()
                | Repel()
                | Attract()
                | Spread()
                | Occupy()
                | Distinct()
                | MoveBudget()
                | GroupMoveBudget()
            ):
                pass  # no load of a single node: leaving a rule out only lowers the bound
            case _:
                assert_never(rule)
    for weight, term in terms:
        if isinstance(term, NodeCurve):
            none = np.zeros((1, term.curves.start.shape[1]), dtype=np.int64)
            first = np.vstack([np.where(none == 0, FAR, none), term.curves.start])
            first[0, 0] = 0
            slope, value = (np.vstack([none, part]) * weight for part in (term.curves.slope, term.curves.value))
            capacity = np.full(len(problem.nodes), FAR)
            rows.append(Row(term.demand, term.held, capacity, term.curve + 1, first, slope, value))
    return rows


def _tolerated(problem: Problem, tier: int, reached: Sequence[int], penalty_weight: Ints) -> Ints:
    """``[p]`` how far a place may violate its rule if no earlier tier gets worse."""
    most = np.full(len(penalty_weight), FAR)
    for earlier, value in zip(problem.tiers[:tier], reached, strict=False):
        for weighted in earlier.terms:
            if isinstance(weighted.term, Violation):
                most = np.minimum(most, value // np.maximum(1, weighted.weight * penalty_weight))
    return most


def pods_row(most: Ints) -> Row:
    """Return the number of pods as a load: its capacity never binds, but lets closed nodes hold no pods."""
    nodes, kinds = most.shape
    none, flat = np.zeros(nodes, dtype=np.int64), np.zeros((1, 1), dtype=np.int64)
    return Row(np.ones(kinds, dtype=np.int64), none, most.sum(axis=1), none, flat, flat, flat)


def matters(row: Row, most: Ints) -> bool:
    """Whether a load has a cost, or its capacity could bind."""
    return bool(row.slope.any()) or bool(np.any(row.base + most @ np.maximum(0, row.demand) > row.capacity))


def implied_capacities(demand: Ints, base: Ints, capacity: Ints) -> Ints:
    """``[n, r]`` the capacities, lowered to what the capacities of other loads imply."""
    lowered = capacity.copy()
    for r, row in enumerate(demand):
        asking = row > 0
        for q, other in enumerate(demand):
            if q != r and asking.any() and (demand[[r, q]] >= 0).all() and (other[asking] > 0).all():
                most = float((row[asking] / other[asking]).max())  # of this load, for one unit of the other
                residual = np.ceil(np.maximum(0, capacity[:, q] - base[:, q]) * most * (1 + 1e-12)).astype(np.int64) + 1
                lowered[:, r] = np.minimum(lowered[:, r], base[:, r] + residual)
    return lowered
