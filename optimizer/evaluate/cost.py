"""What a placement costs, term by term."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    POINTS,
    DomainCurve,
    Move,
    MovePeak,
    NodeCurve,
    NodeScore,
    Open,
    Origin,
    Pair,
    Placement,
    Prefer,
    Problem,
    Term,
    Tier,
    Unplaced,
    Violation,
    Weighted,
)
from stowplan.optimizer.evaluate.violations import pods_by_role


def cost(term: Term, problem: Problem, placement: Placement, violation: int) -> int:
    """Return the cost of one term.

    Parameters
    ----------
    violation
        Weighted sum of all constraint violations; see `stowplan.optimizer.evaluate.Evaluator`.
    """
    nodes = len(problem.nodes)
    match term:
        case Violation():
            return violation
        case Unplaced():
            missing = problem.size - placement.placed(len(problem.classes))
            return int((term.cost * missing).sum())
        case Move():
            left = problem.start.beyond(placement, nodes)
            return int((term.cost[left.cls] * left.count).sum())
        case MovePeak():
            left = problem.start.beyond(placement, nodes)
            group = term.group[left.cls]
            leavers = np.bincount(group[group >= 0], weights=left.count[group >= 0])
            return term.cost * int(leavers.max(initial=0))
        case Prefer():
            return int((term.table[term.row[placement.cls], placement.node] * placement.count).sum())
        case NodeCurve():
            load = placement.per_node(nodes, term.demand) + term.held
            here = term.curve >= 0
            return int(term.curves.at(term.curve[here], load[here]).sum())
        case DomainCurve():
            return domain_cost(term, term.topology.pods(placement.only(term.group)) + term.held)
        case NodeScore():
            pods = placement.per_node(nodes, term.scored)
            return term.cost * int((pods * missed_points(term, usage(term, placement, nodes))).sum())
        case Pair():
            return _pairs(term, placement)
        case Open():
            used = (placement.per_node(nodes) + term.held) > 0
            return int(term.cost[used].sum())
        case _:
            assert_never(term)


def domain_cost(term: DomainCurve, count: Ints) -> int:
    """Return the cost of a term with ``count[d]`` pods in each domain."""
    some = count[count != 0]  # few domains have any
    costs = term.curves.at(np.zeros(len(some) + 1, dtype=np.int64), np.append(some, 0))
    return int(costs[:-1].sum()) + (len(count) - len(some)) * int(costs[-1])


def move_prices(tier: Tier, classes: int) -> Ints:
    """``[c]`` what it costs a tier that a pod of each class leaves its node."""
    price = np.zeros(classes, dtype=np.int64)
    for weighted in tier.terms:
        if isinstance(weighted.term, Move):
            price += weighted.weight * weighted.term.cost
    return price


def node_prices(tier: Tier, classes: int, nodes: int) -> tuple[Ints, Ints]:
    """Return a row for each class, and ``[row, n]`` what a pod costs a tier on a node by itself."""
    terms = [(weighted.weight, weighted.term) for weighted in tier.terms if isinstance(weighted.term, Prefer)]
    if not terms:
        return np.zeros(classes, dtype=np.int64), np.zeros((1, nodes), dtype=np.int64)
    rows = np.stack([term.row for _, term in terms], axis=1)
    distinct, row = np.unique(rows, axis=0, return_inverse=True)
    tables = (weight * term.table[distinct[:, i]] for i, (weight, term) in enumerate(terms))
    return row.reshape(-1), np.ascontiguousarray(sum(tables, np.zeros((len(distinct), nodes), dtype=np.int64)))


def constant(tier: Tier) -> bool:
    """Whether nothing that a tier counts changes where pods move and all rules are kept."""
    return all(isinstance(weighted.term, Violation | Unplaced) for weighted in tier.terms)


def moves_tier(classes: int) -> Tier:
    """Return a tier that counts moves and nothing else."""
    return Tier("moves", (Weighted(1, Move(Origin("moves"), np.ones(classes, dtype=np.int64))),))


def counts_moves(tier: Tier) -> bool:
    """Whether a tier counts moves."""
    return any(isinstance(weighted.term, Move) for weighted in tier.terms)


def usage(term: NodeScore, placement: Placement, nodes: int) -> Ints:
    """``[r, n]`` what the nodes' pods use of each resource of a score."""
    return np.array([placement.per_node(nodes, load.demand) + load.held for load in term.loads])


def missed_points(term: NodeScore, used: Ints) -> Ints:
    """``[n]`` points that each pod on a node misses, given the usage ``[r, n]``."""
    capacity = np.array([load.capacity for load in term.loads])
    there = capacity > 0
    room = np.maximum(capacity, 1)
    if term.kind == "balanced":
        full = np.minimum(used, capacity)
        apart = np.abs(full[0] * capacity[1] - full[1] * capacity[0])
        product = np.maximum(1, capacity[0] * capacity[1])
        missed: Ints = np.where(there.all(axis=0), -(-(POINTS // 2) * apart // product), 0)
        return missed
    if term.kind == "least":
        part = np.where(used > capacity, 0, (capacity - used) * POINTS // room)
    else:
        part = np.minimum(used, capacity) * POINTS // room
    weight = np.array([load.weight for load in term.loads])[:, None] * there
    total = weight.sum(axis=0)
    scored = (part * weight).sum(axis=0) // np.maximum(1, total)
    points: Ints = np.where(total > 0, POINTS - scored, POINTS)
    return points


def _pairs(term: Pair, placement: Placement) -> int:
    a, b, t = pods_by_role(term, placement)
    together = int(((a + b) * (a + t) - a).sum())
    return term.cost * (together if term.together else term.pairs - together)
