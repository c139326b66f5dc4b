"""Lower bounds from a linear relaxation over kinds of classes and groups of nodes.

Nodes that look the same to every class and every term are aggregated: their capacities are summed, and a convex curve
of each node's load is replaced by the same curve of the average load (Jensen's inequality), so the relaxation can only
be lower. Rules between pods are left out, which can only lower it further.

What the relaxation reads of a term or rule is said once, in `reading_of_term` and `reading_of_rule`: its cost or its
rows, together with the arrays by which nodes must not be mixed. Kinds and groups follow from the same readings, so a
term that has a cost here cannot be forgotten where classes and nodes are aggregated.

HiGHS computes the duals of the rows; the bound that they prove is evaluated in integers, so it does not depend on its
tolerances (A. Neumaier and O. Shcherbina, "Safe bounds in linear and mixed-integer programming", 2004).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import pulp
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    FAR,
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    DomainCurve,
    GroupMoveBudget,
    Move,
    MoveBudget,
    MovePeak,
    NodeCurve,
    NodeScore,
    Occupy,
    Open,
    Pair,
    Prefer,
    Problem,
    Repel,
    Rule,
    Spread,
    Term,
    Tier,
    Unplaced,
    Violation,
    refine,
)
from stowplan.optimizer.bounds.bound import BoundRequest, CostClass
from stowplan.optimizer.bounds.curve_lines import CurveLines
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.evaluation import Evaluator
from stowplan.optimizer.kinds import alike, merged, pods_by_kind, reach

UNLIMITED, SHORTEST = 1e6, 0.1
"""Seconds that never run out, where the result must not depend on the clock, and those that a program has at least."""

FRACTION = 40
"""Bits after the binary point to which duals are rounded."""

ROUNDS, LEAST_RISE, IN_VAIN = 30, 1e-4, 3
"""How often the program is solved with more lines of curves at most, and after how many times in a row that raise the
bound by a smaller share no more (J. E. Kelley, "The cutting-plane method for solving convex programs", 1960)."""


def linear_bound(
    evaluator: Evaluator,
    upper: NDArray[np.int32],
    tier: int,
    reached: Sequence[int],
    seconds: float,
    parameters: BoundParameters | None = None,
) -> int | None:
    """Return a lower bound of one tier, or ``None`` if none was proven in time.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold; see `stowplan.optimizer.domains.upper_bounds`.
    reached
        Values of the earlier tiers, which must not get worse.
    """
    problem = evaluator.problem
    tiers = problem.tiers[: tier + 1]
    chosen = parameters or BoundParameters()
    kind = kinds_of(problem, tiers, upper)
    group = groups_of(tiers, upper, kind, chosen.linear_fine)
    variables = (int(kind.max(initial=0)) + 1) * (int(group.max(initial=0)) + 1)
    if variables > min(chosen.linear_largest, chosen.linear_rate * seconds / 2):
        return None
    model = Relaxation(evaluator, upper, kind, group)
    for earlier, value in zip(tiers, reached, strict=False):
        model.limit(earlier, value)
    return model.minimize(tiers[-1], seconds)


class LinearBound:
    """The linear relaxation as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "linear relaxation"
    cost = CostClass.EXPENSIVE

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether it reads any term of the tier."""
        return any(reading_of_term(weighted.term) is not None for weighted in problem.tiers[tier].terms)

    def dominates(self, problem: Problem, tier: int) -> bool:
        """Always: it is the last one."""
        return True

    def __call__(self, request: BoundRequest) -> int | None:
        """Return the bound."""
        seconds = UNLIMITED if request.deadline.deterministic else request.deadline.remaining
        return linear_bound(
            request.evaluator, request.upper, request.tier, request.reached, seconds, request.parameters
        )


class Relaxation:
    """The linear program over kinds of classes and groups of nodes.

    Parameters
    ----------
    kind, group
        ``[c]`` and ``[n]``: classes and nodes that the program does not tell apart.
    """

    def __init__(self, evaluator: Evaluator, upper: NDArray[np.int32], kind: Ints, group: Ints) -> None:
        self.problem = problem = evaluator.problem
        self.group = group
        self.groups = int(group.max(initial=-1)) + 1
        self.kind = kind
        _, self.representative = np.unique(kind, return_index=True)
        self.lp = pulp.LpProblem("relaxation", pulp.LpMinimize)
        self.most: dict[pulp.LpVariable, int] = {}
        aggregated = self._pool(merged(upper, self.kind))
        self.y = {(k, g): self._var(int(aggregated[k, g])) for k, g in _pairs(aggregated)}
        self.unplaced = [self._var(int(optional)) for optional in merged(problem.optional, self.kind)]
        for k, size in enumerate(merged(problem.size, self.kind).tolist()):
            here = [self.y[k, g] for g in range(self.groups) if (k, g) in self.y]
            self.lp += pulp.lpSum(here) + self.unplaced[k] == size
        self.start = self._pool(pods_by_kind(problem.start, self.kind, len(self.representative), len(problem.nodes)).T)
        self._leaving: dict[tuple[int, int], pulp.LpVariable] = {}
        self._curves: list[CurveLines] = []
        self.capacities: list[tuple[Ints, Ints]] = []
        for rule, before in zip(problem.rules, evaluator.start_violations, strict=True):
            reading = reading_of_rule(rule, before)
            if reading is not None:
                self.capacities += reading.capacities
                if reading.most_moves is not None:
                    self.lp += pulp.lpSum(self.leavers()) <= reading.most_moves
        for demand, capacity in self.capacities:
            for g, total in enumerate(self._pool(capacity).tolist()):
                self.lp += self._load(demand, g) <= total

    def limit(self, tier: Tier, value: int) -> None:
        """Keep an earlier tier at its value."""
        self.lp += self._cost(tier) <= value

    def minimize(self, tier: Tier, seconds: float) -> int | None:
        """Return the bound."""
        self.lp.setObjective(self._cost(tier))
        deadline, bound, in_vain = Deadline(max(SHORTEST, seconds)), None, 0
        for _ in range(ROUNDS):
            before, proven = bound, self._solve(max(SHORTEST, deadline.remaining))
            if proven is None:
                break
            bound = max(before or 0, proven)
            in_vain = 0 if before is None or bound - before > LEAST_RISE * bound else in_vain + 1
            if in_vain == IN_VAIN or not self._cut() or deadline.over:
                break
        return bound

    def _solve(self, seconds: float) -> int | None:
        """Return what the program with the rows as they are proves."""
        try:
            self.lp.solve(pulp.HiGHS(msg=False, timeLimit=seconds, threads=1))
        except (IndexError, pulp.PulpSolverError):
            return None  # HiGHS refuses coefficients beyond 1e15, and PuLP stumbles over the empty answer
        # At a time limit the status says optimal too; only the solution status tells a proof.
        if self.lp.sol_status != pulp.LpSolutionOptimal:
            return None
        try:
            return max(0, self._proven())
        except OverflowError:
            return None

    def _cut(self) -> bool:
        """Make rows of the lines that the solution is furthest below, one for each curve; return if there are any."""
        rows = [row for curve in self._curves if (row := curve.cut()) is not None]
        for row in rows:
            self.lp += row
        return bool(rows)

    def _proven(self) -> int:
        """Return the bound that the duals of the rows prove, exactly, however inaccurate they are.

        For duals ``π`` of the right signs, ``c·x ≥ π·b + (c − πA)·x``, and each variable is between 0 and its maximum.

        Raises
        ------
        OverflowError
            If numbers are too large to be exact.
        """
        objective = self.lp.objective
        total = _whole(objective.constant) << FRACTION
        reduced = {variable: _whole(cost) << FRACTION for variable, cost in objective.items()}
        for row in self.lp.constraints():
            dual = round((row.pi or 0.0) * 2**FRACTION)
            if row.sense != pulp.LpConstraintEQ:
                dual = max(0, dual) if row.sense == pulp.LpConstraintGE else min(0, dual)
            if dual:
                total -= dual * _whole(row.constant)
                for variable, coefficient in row.items():
                    reduced[variable] = reduced.get(variable, 0) - dual * _whole(coefficient)
        total += sum(cost * self.most[variable] for variable, cost in reduced.items() if cost < 0)
        return -(-total >> FRACTION)

    def _var(self, most: int, *, bounded: bool = True) -> pulp.LpVariable:
        """Return a variable that is never above ``most``; HiGHS is not told if rows say so where it matters."""
        variable = self.lp.add_variable(f"x{len(self.most) + 1}", 0, most if bounded else None)
        self.most[variable] = most
        return variable

    def _pool(self, per_node: Ints) -> Ints:
        """Add up ``[…, n]`` over the nodes of each group."""
        total = np.zeros((*per_node.shape[:-1], self.groups), dtype=np.int64)
        for n, g in enumerate(self.group.tolist()):
            total[..., g] += per_node[..., n]
        return total

    def _load(self, demand: Ints, g: int) -> pulp.LpAffineExpression:
        amounts = demand[self.representative]
        return pulp.lpSum(int(amounts[k]) * self.y[k, g] for k in np.flatnonzero(amounts).tolist() if (k, g) in self.y)

    def _ends(self, load: pulp.LpAffineExpression) -> tuple[int, int]:
        """Return the least and the largest value of a load."""
        each = [_whole(amount) * self.most[variable] for variable, amount in load.items()]
        held = _whole(load.constant)
        return held + sum(min(0, amount) for amount in each), held + sum(max(0, amount) for amount in each)

    def leavers(self, cost: Ints | None = None) -> Iterable[pulp.LpAffineExpression]:
        """Yield a lower bound of the pods that left each group; moves inside a group are not seen."""
        costs = np.ones(len(self.representative), dtype=np.int64) if cost is None else cost[self.representative]
        for k, g in _pairs(self.start):
            yield int(costs[k]) * self._left(k, g)

    def _left(self, k: int, g: int) -> pulp.LpVariable:
        if (k, g) not in self._leaving:
            there = int(self.start[k, g])
            var = self._leaving[k, g] = self._var(there, bounded=False)
            self.lp += var + self.y.get((k, g), 0) >= there
        return self._leaving[k, g]

    def move_peak(self, term: MovePeak) -> pulp.LpAffineExpression:
        """Return the cost of the largest number of leavers of any group of classes."""
        peak, leavers = self._var(int(self.start.sum()), bounded=False), defaultdict(list)
        for k, g in _pairs(self.start):
            leavers[int(term.group[self.representative[k]])].append(self._left(k, g))
        for group, left in leavers.items():
            if group >= 0:
                self.lp += peak >= pulp.lpSum(left)
        return term.cost * peak

    def _cost(self, tier: Tier) -> pulp.LpAffineExpression:
        """Return a lower bound of a tier; terms that are not read count 0."""
        total = pulp.LpAffineExpression()
        for weighted in tier.terms:
            reading = reading_of_term(weighted.term)
            if reading is not None:
                total += weighted.weight * reading.cost(self)
        return total

    def unplaced_cost(self, term: Unplaced) -> pulp.LpAffineExpression:
        """Return the cost of unplaced pods."""
        costs = term.cost[self.representative].tolist()
        return pulp.lpSum(k * u for k, u in zip(costs, self.unplaced, strict=True) if k)

    def preference(self, term: Prefer) -> pulp.LpAffineExpression:
        """Return the cost of preferences, the least within each group."""
        lowest = np.full((len(term.table), self.groups), np.iinfo(np.int64).max)
        for n, g in enumerate(self.group.tolist()):
            lowest[:, g] = np.minimum(lowest[:, g], term.table[:, n])
        rows = term.row[self.representative]
        return pulp.lpSum(int(lowest[rows[k], g]) * y for (k, g), y in self.y.items())

    def curve(self, term: NodeCurve) -> pulp.LpAffineExpression:
        """Return the cost of the average load of each group, by tangents of its convex curve."""
        held, nodes = self._pool(term.held), self._pool(np.ones_like(term.held))
        mean = float(term.demand @ self.problem.size + term.held.sum()) / max(1, len(term.held))
        parts = []
        for g in range(self.groups):
            k = int(term.curve[np.argmax(self.group == g)])
            if k < 0:
                continue
            load = self._load(term.demand, g) + int(held[g])
            pieces = (term.curves.start[k].tolist(), term.curves.slope[k].tolist(), term.curves.value[k].tolist())
            lines = [
                (int(nodes[g]) * (value - slope * start), slope)
                for start, slope, value in zip(*pieces, strict=True)
                if start < FAR
            ]
            ends = self._ends(load)
            cost = self._var(max(0, *(base + slope * end for base, slope in lines for end in ends)), bounded=False)
            curve = CurveLines(cost, load, lines)
            for row in curve.rows(mean * int(nodes[g])):
                self.lp += row
            self._curves.append(curve)
            parts.append(cost)
        return pulp.lpSum(parts)

    def opening(self, term: Open) -> pulp.LpAffineExpression:
        """Return the cost of nodes in use, which must hold the loads of their group."""
        shut = self._pool((term.held == 0).astype(np.int64))
        parts = [pulp.LpAffineExpression(constant=int(term.cost[term.held > 0].sum()))]
        for g in range(self.groups):
            members = self.group == g
            if not shut[g]:
                continue
            used = self._var(int(shut[g]))
            parts.append(int(term.cost[members & (term.held == 0)].min()) * used)
            for demand, capacity in self.capacities:
                largest = int(capacity[members & (term.held == 0)].max())
                already = int(capacity[members & (term.held > 0)].sum())
                self.lp += self._load(demand, g) <= largest * used + already
        return pulp.lpSum(parts)


def _pairs(table: Ints) -> Iterable[tuple[int, int]]:
    """Iterate over the indices of the positive entries of a table."""
    rows, columns = np.nonzero(table)
    return zip(rows.tolist(), columns.tolist(), strict=True)


def _whole(number: float) -> int:
    """Return a number of the program as the integer that it is; PuLP may have converted it to a float.

    Raises
    ------
    OverflowError
        If a float cannot represent it.
    """
    if isinstance(number, float) and abs(number) >= 2**53:
        raise OverflowError
    return int(number)


@dataclass(frozen=True, slots=True)
class TermReading:
    """What the relaxation reads of a term.

    Parameters
    ----------
    cost
        The term's cost in a relaxation. Of classes, it may read what the term declares by class; see
        `stowplan.models.problem.refine`.
    of_nodes
        ``[.., n]`` what it reads of nodes, other than sums over a group: nodes of a group must agree in it.
    """

    cost: Callable[[Relaxation], pulp.LpAffineExpression]
    of_nodes: tuple[Ints, ...] = ()


def reading_of_term(term: Term) -> TermReading | None:
    """Return what the relaxation reads of a term; ``None`` if it counts 0, which only lowers the bound."""
    match term:
        case Unplaced():
            return TermReading(lambda model: model.unplaced_cost(term))
        case Move():
            return TermReading(lambda model: pulp.lpSum(model.leavers(term.cost)))
        case MovePeak():
            return TermReading(lambda model: model.move_peak(term))
        case Prefer():
            return TermReading(lambda model: model.preference(term), (term.table,))
        case NodeCurve():
            if not term.curves.convex:
                return None
            return TermReading(lambda model: model.curve(term), (term.curve[None, :],))
        case Open():
            in_use = (term.held > 0).astype(np.int64)
            return TermReading(lambda model: model.opening(term), (term.cost[None, :], in_use[None, :]))
        case Violation() | DomainCurve() | NodeScore() | Pair():
            return None
        case _:
            assert_never(term)


@dataclass(frozen=True, slots=True)
class RuleReading:
    """What the relaxation reads of a rule.

    Parameters
    ----------
    capacities
        Demands ``[c]`` and capacities ``[n]`` that no legal placement exceeds on any node.
    most_moves
        Pods that may leave their nodes, if the rule limits that.
    """

    capacities: tuple[tuple[Ints, Ints], ...] = ()
    most_moves: int | None = None


def reading_of_rule(rule: Rule, before: Ints) -> RuleReading | None:
    """Return what the relaxation reads of a rule; ``None`` if nothing, which only lowers the bound.

    Parameters
    ----------
    before
        Violation at the start, which may last: it adds to capacities.
    """
    match rule:
        case Capacity():
            return RuleReading(((rule.demand, np.maximum(0, rule.free) + before),))
        case Devices():
            return RuleReading(tuple((demand, free + limit * before) for limit, demand, free in rule.sums))
        case MoveBudget():
            return RuleReading(most_moves=rule.limit)
        case Allow() | AtMost() | Repel() | Attract() | Spread() | Occupy() | Distinct() | GroupMoveBudget():
            return None
        case _:
            assert_never(rule)


def kinds_of(problem: Problem, tiers: Sequence[Tier], upper: NDArray[np.int32]) -> Ints:
    """``[c]`` the kind of each class: classes are merged if all that the relaxation reads of them is equal."""
    none = np.zeros(upper.shape[1], dtype=np.int64)
    rules = [rule for rule in problem.rules if reading_of_rule(rule, none) is not None]
    terms = [weighted.term for tier in tiers for weighted in tier.terms if reading_of_term(weighted.term) is not None]
    return refine(len(problem.classes), [*rules, *terms], [reach(upper)])


def groups_of(tiers: Sequence[Tier], upper: NDArray[np.int32], kind: Ints, fine: int) -> Ints:
    """``[n]`` the group of each node: nodes are aggregated only if all that the relaxation reads of them is equal.

    Parameters
    ----------
    fine
        Kinds times nodes up to which every node is a group of its own.
    """
    nodes = upper.shape[1]
    if (int(kind.max(initial=0)) + 1) * nodes <= fine:
        return np.arange(nodes)
    columns: list[Ints] = [alike(np.packbits(upper > 0, axis=0).T)]
    for weighted in (weighted for tier in tiers for weighted in tier.terms):
        reading = reading_of_term(weighted.term)
        if reading is not None:
            columns += reading.of_nodes
    groups: Ints = np.unique(np.vstack(columns), axis=1, return_inverse=True)[1].reshape(-1)
    return groups.astype(np.int64)
