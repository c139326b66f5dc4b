"""Lower bounds from a linear relaxation over classes and groups of like nodes.

Nodes that every class and every term of the tier sees alike are pooled: their capacities are added up, and a convex
curve of each node's load is replaced by the same curve of the average load (Jensen's inequality), so the relaxation
can only be lower. Rules about company are left out, which can only lower it further.

HiGHS finds the prices of the rows; what they prove is worked out in whole numbers, so that it does not rest on its
tolerances.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pulp
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    FAR,
    Capacity,
    Devices,
    Move,
    MoveBudget,
    MovePeak,
    NodeCurve,
    Open,
    Prefer,
    Problem,
    Rule,
    Tier,
    Unplaced,
    refine,
)
from stowplan.optimizer.evaluate.evaluation import Evaluator

NAME = "linear relaxation"
"""What results call this bound."""

FINE = 20_000
"""Variables up to which every node is a group of its own."""

LARGEST = 60_000
"""Variables above which the relaxation takes longer than it is worth."""

FRACTION = 40
"""Bits after the binary point to which prices are rounded."""


def linear_bound(
    evaluator: Evaluator, upper: NDArray[np.int32], tier: int, reached: Sequence[int], seconds: float
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
    kind = _kinds(problem, tiers, upper)
    group = _groups(problem, tiers, upper, kind)
    if (int(kind.max(initial=0)) + 1) * (int(group.max(initial=0)) + 1) > LARGEST:
        return None
    model = _Relaxation(evaluator, upper, kind, group)
    for earlier, value in zip(tiers, reached, strict=False):
        model.limit(earlier, value)
    return model.minimize(tiers[-1], seconds)


class _Relaxation:
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
        surrogate = self._pool(self._merge(upper))
        self.y = {(k, g): self._var(int(surrogate[k, g])) for k, g in _pairs(surrogate)}
        self.unplaced = [self._var(int(optional)) for optional in self._merge(problem.optional)]
        for k, size in enumerate(self._merge(problem.size).tolist()):
            here = [self.y[k, g] for g in range(self.groups) if (k, g) in self.y]
            self.lp += pulp.lpSum(here) + self.unplaced[k] == size
        self.start = self._pool(self._merge(problem.start.table(*problem.shape)))
        self._leaving: dict[tuple[int, int], pulp.LpVariable] = {}
        # What a node can hold: its room, and what it is overcommitted by at the start, which it may stay.
        self.residuals = [
            residual
            for rule, before in zip(problem.rules, evaluator.start_violations, strict=True)
            for residual in _residuals(rule, before)
        ]
        for demand, residual in self.residuals:
            for g, pooled_room in enumerate(self._pool(residual).tolist()):
                self.lp += self._load(demand, g) <= pooled_room
        for rule in problem.rules:
            if isinstance(rule, MoveBudget):
                self.lp += pulp.lpSum(self._leavers()) <= rule.limit

    def limit(self, tier: Tier, value: int) -> None:
        """Keep an earlier tier at its value."""
        self.lp += self._cost(tier) <= value

    def minimize(self, tier: Tier, seconds: float) -> int | None:
        """Return the bound."""
        self.lp.setObjective(self._cost(tier))
        try:
            self.lp.solve(pulp.HiGHS(msg=False, timeLimit=max(0.1, seconds), threads=1))
        except (IndexError, pulp.PulpSolverError):
            return None  # HiGHS refuses coefficients beyond 1e15, and PuLP stumbles over the empty answer
        # At a time limit the status says optimal too; only the solution status tells a proof.
        if self.lp.sol_status != pulp.LpSolutionOptimal:
            return None
        try:
            return max(0, self._proven())
        except OverflowError:
            return None

    def _proven(self) -> int:
        """Return what the prices of the rows prove, exactly, however far they are off.

        For prices ``π`` of the right signs, ``c·x ≥ π·b + (c − πA)·x``, and each variable is between 0 and its most.

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

    def _merge(self, per_class: NDArray[np.signedinteger[Any]]) -> Ints:
        """Add up ``[c, …]`` over the classes of each kind."""
        merged = np.zeros((len(self.representative), *per_class.shape[1:]), dtype=np.int64)
        np.add.at(merged, self.kind, per_class)
        return merged

    def _pool(self, per_node: Ints) -> Ints:
        """Add up ``[…, n]`` over the nodes of each group."""
        surrogate = np.zeros((*per_node.shape[:-1], self.groups), dtype=np.int64)
        for n, g in enumerate(self.group.tolist()):
            surrogate[..., g] += per_node[..., n]
        return surrogate

    def _load(self, demand: Ints, g: int) -> pulp.LpAffineExpression:
        amounts = demand[self.representative]
        return pulp.lpSum(int(amounts[k]) * self.y[k, g] for k in np.flatnonzero(amounts).tolist() if (k, g) in self.y)

    def _ends(self, load: pulp.LpAffineExpression) -> tuple[int, int]:
        """Return the least and the most that a load can be."""
        each = [_whole(amount) * self.most[variable] for variable, amount in load.items()]
        held = _whole(load.constant)
        return held + sum(min(0, amount) for amount in each), held + sum(max(0, amount) for amount in each)

    def _leavers(self, cost: Ints | None = None) -> Iterable[pulp.LpAffineExpression]:
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

    def _move_peak(self, term: MovePeak) -> pulp.LpAffineExpression:
        peak, leavers = self._var(int(self.start.sum()), bounded=False), defaultdict(list)
        for k, g in _pairs(self.start):
            leavers[int(term.group[self.representative[k]])].append(self._left(k, g))
        for group, left in leavers.items():
            if group >= 0:
                self.lp += peak >= pulp.lpSum(left)
        return term.cost * peak

    def _cost(self, tier: Tier) -> pulp.LpAffineExpression:
        """Return a lower bound of a tier; terms that have none here count 0."""
        total = pulp.LpAffineExpression()
        for weighted in tier.terms:
            match weighted.term:
                case Unplaced() as term:
                    costs = term.cost[self.representative].tolist()
                    cost = pulp.lpSum(k * u for k, u in zip(costs, self.unplaced, strict=True) if k)
                case Move() as term:
                    cost = pulp.lpSum(self._leavers(term.cost))
                case MovePeak() as term:
                    cost = self._move_peak(term)
                case Prefer() as term:
                    cost = self._prefer(term)
                case NodeCurve() as term if term.curves.convex:
                    cost = self._curve(term)
                case Open() as term:
                    cost = self._open(term)
                case _:
                    continue
            total += weighted.weight * cost
        return total

    def _prefer(self, term: Prefer) -> pulp.LpAffineExpression:
        lowest = np.full((len(term.table), self.groups), np.iinfo(np.int64).max)
        for n, g in enumerate(self.group.tolist()):
            lowest[:, g] = np.minimum(lowest[:, g], term.table[:, n])
        rows = term.row[self.representative]
        return pulp.lpSum(int(lowest[rows[k], g]) * y for (k, g), y in self.y.items())

    def _curve(self, term: NodeCurve) -> pulp.LpAffineExpression:
        held, nodes = self._pool(term.held), self._pool(np.ones_like(term.held))
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
            for base, slope in lines:
                self.lp += cost >= base + slope * load
            parts.append(cost)
        return pulp.lpSum(parts)

    def _open(self, term: Open) -> pulp.LpAffineExpression:
        shut = self._pool((term.held == 0).astype(np.int64))
        parts = [pulp.LpAffineExpression(constant=int(term.cost[term.held > 0].sum()))]
        for g in range(self.groups):
            members = self.group == g
            if not shut[g]:
                continue
            used = self._var(int(shut[g]))
            parts.append(int(term.cost[members & (term.held == 0)].min()) * used)
            for demand, residual in self.residuals:
                largest = int(residual[members & (term.held == 0)].max())
                already = int(residual[members & (term.held > 0)].sum())
                self.lp += self._load(demand, g) <= largest * used + already
        return pulp.lpSum(parts)


def _whole(number: float) -> int:
    """Return a number of the program as the whole one that it is; PuLP may have made a float of it.

    Raises
    ------
    OverflowError
        If a float cannot tell.
    """
    if isinstance(number, float) and abs(number) >= 2**53:
        raise OverflowError
    return int(number)


def _residuals(rule: Rule, before: Ints) -> Iterable[tuple[Ints, Ints]]:
    """Yield demands ``[c]`` and rooms ``[n]`` that no legal placement exceeds on any node."""
    match rule:
        case Capacity():
            yield rule.demand, np.maximum(0, rule.free) + before
        case Devices():
            for limit, demand, free in rule.sums:
                yield demand, free + limit * before
        case _:
            pass


def _pairs(table: Ints) -> Iterable[tuple[int, int]]:
    """Iterate over the indices of the positive entries of a table."""
    rows, columns = np.nonzero(table)
    return zip(rows.tolist(), columns.tolist(), strict=True)


def _kinds(problem: Problem, tiers: Sequence[Tier], upper: NDArray[np.int32]) -> Ints:
    """``[c]`` the kind of each class: classes are merged if all that the relaxation reads of them is alike."""
    pattern = np.unique(np.packbits(upper > 0, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    read = [rule for rule in problem.rules if isinstance(rule, Capacity | Devices)]
    kinds = Unplaced | Move | MovePeak | Prefer | NodeCurve
    terms = [w.term for tier in tiers for w in tier.terms if isinstance(w.term, kinds)]
    return refine(len(problem.classes), [*read, *terms], [pattern.astype(np.int64)])


def _groups(problem: Problem, tiers: Sequence[Tier], upper: NDArray[np.int32], kind: Ints) -> Ints:
    """``[n]`` the group of each node: nodes are pooled only if all that the relaxation reads of them is alike."""
    nodes = len(problem.nodes)
    if (int(kind.max(initial=0)) + 1) * nodes <= FINE:
        return np.arange(nodes)
    columns: list[Ints] = [np.packbits(upper > 0, axis=0).astype(np.int64)]
    for tier in tiers:
        for weighted in tier.terms:
            match weighted.term:
                case NodeCurve() as term:
                    columns.append(term.curve[None, :])
                case Prefer() as term:
                    columns.append(term.table)
                case Open() as term:
                    columns.append(term.cost[None, :])
                    columns.append((term.held > 0).astype(np.int64)[None, :])
                case _:
                    pass
    groups: Ints = np.unique(np.vstack(columns), axis=1, return_inverse=True)[1].reshape(-1)
    return groups.astype(np.int64)
