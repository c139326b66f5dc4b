"""Groups of pods with a budget of moves of their own: annealing leaves their pods where they are.

The kernels count the moves of all pods, not those of groups. So pods of a group with a budget are kept on the nodes
that the incumbent has them on, while all others are annealed around them. The constructive heuristics, the
decomposition over changes of nodes, and CP-SAT, alone or in large neighborhood search, move them within the budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Allow, AtMost, GroupMoveBudget, Origin, Placement, Problem, Rule, Topology
from stowplan.optimizer.evaluate import Evaluator

KEPT = Origin("move budget", "pods kept")


def with_budgets_kept(evaluator: Evaluator, incumbent: Placement) -> Evaluator:
    """Return an evaluator of the problem in which pods of groups with a budget stay where an incumbent has them."""
    problem = evaluator.problem
    groups = [rule.group for rule in problem.rules if isinstance(rule, GroupMoveBudget)]
    if not groups:
        return evaluator
    kept = np.unique(np.concatenate(groups))
    rules = [rule for rule in problem.rules if not isinstance(rule, GroupMoveBudget)]
    optional = problem.optional.copy()  # preemption would let placed pods go, which takes moves too
    optional[kept] = (problem.size - incumbent.placed(len(problem.size)))[kept]
    return Evaluator(replace(problem, optional=optional, rules=(*rules, *_keeping(problem, kept, incumbent))))


def _keeping(problem: Problem, kept: Ints, incumbent: Placement) -> Iterator[Rule]:
    """Yield rules by which classes have no more pods on any node than an incumbent has there."""
    classes, nodes = problem.shape
    row = np.zeros(classes, dtype=np.int64)
    row[kept] = 1 + np.arange(len(kept))
    mask = np.ones((1 + len(kept), nodes), dtype=np.bool_)
    for i, c in enumerate(kept.tolist()):
        there = incumbent.only(np.array([c], dtype=np.int64))
        mask[1 + i] = False
        mask[1 + i, there.node] = True
        for count in np.unique(there.count).tolist():
            yield _at_most(c, there.node[there.count == count], count, nodes)
    yield Allow(KEPT, row, mask)


def _at_most(c: int, where: Ints, count: int, nodes: int) -> AtMost:
    domain = np.full(nodes, -1, dtype=np.int64)
    domain[where] = np.arange(len(where))
    topology = Topology("node", domain, tuple(str(n) for n in where.tolist()))
    return AtMost(KEPT, np.array([c], dtype=np.int64), topology, count, np.zeros(len(where), dtype=np.int64))
