"""Simple methods: each pod where it costs least, emptying of nodes, and steepest descent over dense tables.

They look at capacities and allowed nodes by themselves; the reference evaluator checks every step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stowplan.bench.baselines.marginal_costs import marginal_costs
from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    Allow,
    Capacity,
    DomainCurve,
    MoveBudget,
    NodeCurve,
    NodeScore,
    Open,
    Placement,
    Prefer,
    Unplaced,
)
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator

NEVER = np.int64(1) << 60
"""Cost of what must not be done."""

TRIALS = 40
"""Nodes that are tried for a pod, or pairs that are evaluated in vain, before a method goes on."""


class Table:
    """A placement as a dense table ``y[c, n]``, changed pod by pod."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator, self.problem = evaluator, evaluator.problem
        self.home = self.problem.start.table(*self.problem.shape)
        self.y = self.home.copy()
        self.values = evaluator.evaluate(self.placement).values
        self.limit = min((r.limit for r in self.problem.rules if isinstance(r, MoveBudget)), default=1 << 40)
        self.capacities = [rule for rule in self.problem.rules if isinstance(rule, Capacity)]
        self.allowed = np.ones(self.problem.shape, dtype=np.bool_)
        for rule in self.problem.rules:
            if isinstance(rule, Allow):
                self.allowed &= rule.mask[rule.row]

    @property
    def placement(self) -> Placement:
        """The placement."""
        return Placement.from_table(self.y)

    @property
    def moved(self) -> int:
        """Pods that have left their node."""
        return int(np.maximum(0, self.home - self.y).sum())

    def fits(self, nodes: Ints) -> Bools:
        """``[c, n]`` whether one more pod fits on a node, by capacities and allowed nodes."""
        fit = self.allowed[:, nodes]
        for rule in self.capacities:
            room = np.maximum(0, rule.free[nodes]) - rule.demand @ self.y[:, nodes]
            fit = fit & ((rule.demand[:, None] <= np.maximum(0, room)) | (rule.demand[:, None] <= 0))
        return fit

    def room(self) -> Ints:
        """``[n]`` room of each node, the capacities added up in millionths of their largest."""
        total = np.zeros(len(self.problem.nodes), dtype=np.int64)
        for rule in self.capacities:
            left = np.maximum(0, rule.free) - rule.demand @ self.y
            total += left * 1_000_000 // max(1, int(rule.free.max(initial=1)))
        return total

    def shift(self, c: int, source: int | None, target: int | None) -> None:
        """Let a pod leave a node and come to another."""
        if source is not None:
            self.y[c, source] -= 1
        if target is not None:
            self.y[c, target] += 1

    def judged(self) -> bool:
        """Whether the placement is legal and better than the last one that was; then it is the one to beat."""
        evaluation = self.evaluator.evaluate(self.placement)
        if evaluation.legal and evaluation.values < self.values:
            self.values = evaluation.values
            return True
        return False


def insert(table: Table, deadline: Deadline) -> None:
    """Place pending pods, the most urgent first, each where it costs the tiers least."""
    problem = table.problem
    every = np.arange(len(problem.nodes))
    terms = [w.term for tier in problem.tiers for w in tier.terms if isinstance(w.term, Unplaced)]
    urgency = np.lexsort([-term.cost for term in reversed(terms)]) if terms else np.zeros(0, dtype=np.int64)
    for c in urgency.tolist():
        for _ in range(int(problem.size[c] - table.y[c].sum())):
            fitting = every[table.fits(every)[c]]
            costs = [marginal_costs(problem, t, table.y, np.array([c]), fitting, 1)[0] for t in problem.tiers]
            for n in fitting[np.lexsort(costs[::-1])][:TRIALS].tolist():
                table.shift(c, None, n)
                if table.judged():
                    break
                table.shift(c, n, None)
            else:
                break
            if deadline.over:
                return


def empty(table: Table, deadline: Deadline) -> None:
    """Empty nodes, those with the fewest pods first: each pod to the tightest node in use, or all of them stay."""
    problem = table.problem
    counted = np.zeros(len(problem.nodes), dtype=np.bool_)
    for tier in problem.tiers:
        for weighted in tier.terms:
            if isinstance(weighted.term, Open):
                counted |= (weighted.term.held == 0) & (weighted.term.cost > 0)
    largest = np.array([rule.demand / max(1, int(rule.free.max(initial=1))) for rule in table.capacities])
    size = largest.max(axis=0, initial=0.0)
    waiting = counted & (table.y.sum(axis=0) > 0)
    while waiting.any() and not deadline.over:
        pods = table.y.sum(axis=0)
        source = int(np.flatnonzero(waiting)[pods[waiting].argmin()])
        waiting[source] = False
        away = np.minimum(table.y[:, source], table.home[:, source]).sum()
        if table.moved + away > table.limit:
            return
        # Most rules are of capacity: the whole node is checked at once, and pod by pod only where that fails.
        if not _emptied(table, source, size, one_by_one=False):
            _emptied(table, source, size, one_by_one=True)


def _emptied(table: Table, source: int, size: Ints, *, one_by_one: bool) -> bool:
    """Whether a node could be emptied; if not, all is as before."""
    before, values = table.y.copy(), table.values
    here = np.flatnonzero(table.y[:, source])
    for c in here[np.argsort(-size[here], kind="stable")].tolist():
        for _ in range(int(table.y[c, source])):
            used = np.flatnonzero(table.y.sum(axis=0) > 0)
            used = used[(used != source) & table.fits(np.arange(len(table.problem.nodes)))[c, used]]
            for n in used[np.argsort(table.room()[used], kind="stable")][: TRIALS if one_by_one else 1].tolist():
                table.shift(c, source, n)
                if not one_by_one or table.evaluator.evaluate(table.placement).legal:
                    break
                table.shift(c, n, source)
            else:
                table.y = before
                return False
    if table.judged():
        return True
    table.y, table.values = before, values
    return False


def descend(table: Table, deadline: Deadline) -> None:
    """Make the move that improves a tier most, again and again: for each tier that sums up curves or scores."""
    problem = table.problem
    classes, nodes = (np.arange(size) for size in problem.shape)
    for tier in problem.tiers:
        if all(isinstance(weighted.term, Unplaced) for weighted in tier.terms):
            continue
        more, less = (marginal_costs(problem, tier, table.y, classes, nodes, pods) for pods in (1, -1))
        fits, banned = table.fits(nodes), np.zeros(problem.shape, dtype=np.bool_)
        groups = [w.term.group for w in tier.terms if isinstance(w.term, DomainCurve)]
        in_vain = 0
        while in_vain < TRIALS and not deadline.over:
            found = _best_move(table, more, less, fits & ~banned)
            if found is None:
                break
            c, source, target = found
            table.shift(c, source, target)
            if not table.judged():
                table.shift(c, target, source)
                banned[c, target] = True
                in_vain += 1
                continue
            in_vain = 0
            banned[c] = False
            two = np.array([source, target])
            rows = np.unique(np.concatenate([np.array([c]), *(g for g in groups if c in g)]))
            fits[:, two] = table.fits(two)
            for table_of, pods in ((more, 1), (less, -1)):
                table_of[:, two] = marginal_costs(problem, tier, table.y, classes, two, pods)
                table_of[rows] = marginal_costs(problem, tier, table.y, rows, nodes, pods)


def _best_move(table: Table, more: Ints, less: Ints, may: Bools) -> tuple[int, int, int] | None:
    """Return the class, source and target of the move that improves most by the tables, if one does."""
    costs = np.where(may, more, NEVER)
    target = costs.argmin(axis=1)
    cls, source = np.nonzero(table.y if table.moved < table.limit else table.y > table.home)
    change = less[cls, source] + costs[cls, target[cls]]
    change[target[cls] == source] = NEVER
    if not len(change) or change.min() >= 0:
        return None
    best = int(change.argmin())
    return int(cls[best]), int(source[best]), int(target[cls[best]])


def counts_nodes(table: Table) -> bool:
    """Whether a tier counts nodes in use."""
    return any(isinstance(weighted.term, Open) for tier in table.problem.tiers for weighted in tier.terms)


def has_slopes(table: Table) -> bool:
    """Whether moves of single pods can improve a tier: one that sums up curves, scores, or costs of nodes."""
    kinds = NodeCurve | DomainCurve | NodeScore | Prefer
    return any(isinstance(weighted.term, kinds) for tier in table.problem.tiers for weighted in tier.terms)


METHODS: dict[str, tuple[Callable[[Table], bool], tuple[Callable[[Table, Deadline], None], ...]]] = {
    "descent": (has_slopes, (insert, descend)),
    "emptying": (counts_nodes, (insert, empty)),
}
"""For each simple method, when it is of use, and its steps."""


def run_method(name: str, evaluator: Evaluator, deadline: Deadline) -> Placement | None:
    """Return what a simple method comes to, or ``None`` where it is of no use."""
    table = Table(evaluator)
    suits, steps = METHODS[name]
    if not suits(table):
        return None
    for step in steps:
        if not deadline.over:
            step(table, deadline)
    return table.placement
