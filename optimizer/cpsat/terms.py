"""Each term as a linear expression, with the variables and constraints that make it one.

A term is minimized, so a variable for a cost only needs lower bounds. What cannot change is left out: the value of a
tier is that of the incumbent plus the change of its expressions.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    POINTS,
    Curves,
    DomainCurve,
    Load,
    Move,
    MovePeak,
    NodeCurve,
    NodeScore,
    Open,
    Pair,
    Prefer,
    Term,
    Unplaced,
    Violation,
)
from stowplan.optimizer.cpsat.builder import Builder, Linear
from stowplan.optimizer.cpsat.variables import Variables
from stowplan.optimizer.domains import NONE


class Terms:
    """Translates terms into expressions of one model.

    Parameters
    ----------
    violation
        Weighted sum of all constraint violations.
    """

    def __init__(self, builder: Builder, variables: Variables, violation: Linear) -> None:
        self.builder = builder
        self.variables = variables
        self.scope = variables.scope
        self.violation = violation

    def expression(self, term: Term) -> Linear:
        """Return the cost of a term, up to a constant."""
        match term:
            case Violation():
                return self.violation
            case Unplaced():
                return self._unplaced(term)
            case Move():
                return self._move(term)
            case MovePeak():
                return self._move_peak(term)
            case Prefer():
                return self._prefer(term)
            case NodeCurve():
                return self._node_curve(term)
            case DomainCurve():
                return self._domain_curve(term)
            case NodeScore():
                return self._node_score(term)
            case Pair():
                return self._pair(term)
            case Open():
                return self._open(term)
            case _:
                assert_never(term)

    # -- sums -------------------------------------------------------------------------------------------------

    def _unplaced(self, term: Unplaced) -> Linear:
        total = Linear()
        for var, cost in zip(self.variables.unplaced, term.cost[self.scope.classes].tolist(), strict=True):
            if var != NONE:
                total.add(var, cost)
        return total

    def _move(self, term: Move) -> Linear:
        total = Linear()
        cost = term.cost[self.scope.classes]
        for r, j in self.variables.started():
            if cost[r]:
                total.add(self.variables.leaving(r, j), int(cost[r]))
        return total

    def _move_peak(self, term: MovePeak) -> Linear:
        builder, scope = self.builder, self.scope
        left = scope.problem.start.beyond(scope.incumbent, len(scope.problem.nodes))
        group = term.group[left.cls]
        closed = np.zeros(int(term.group.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(closed, group[group >= 0], left.count[group >= 0])
        leavers: dict[int, Linear] = {}
        for r, j in self.variables.started():
            g = int(term.group[scope.classes[r]])
            if g >= 0:
                leavers.setdefault(g, Linear()).add(self.variables.leaving(r, j))
        if not leavers:
            return Linear()
        for g, group_leavers in leavers.items():
            group_leavers.constant = int(closed[g]) - builder.value(group_leavers)
        lowest = int(np.delete(closed, list(leavers)).max(initial=0))
        highest = max(lowest, *(builder.highest(group_leavers) for group_leavers in leavers.values()))
        now = max(lowest, *(builder.value(group_leavers) for group_leavers in leavers.values()))
        peak = builder.var(lowest, highest, now)
        for group_leavers in leavers.values():
            builder.at_most(group_leavers.plus(peak, -1), 0)
        return Linear.of(peak, term.cost)

    def _prefer(self, term: Prefer) -> Linear:
        index = self.variables.index
        costs = term.table[np.ix_(term.row[self.scope.classes], self.scope.nodes)]
        kept = (index >= 0) & (costs != 0)
        return Linear(index[kept].tolist(), costs[kept].tolist())

    # -- curves -----------------------------------------------------------------------------------------------

    def _node_curve(self, term: NodeCurve) -> Linear:
        total = Linear()
        scope = self.scope
        demand = term.demand[scope.classes]
        asking = np.flatnonzero(demand)
        fixed = scope.load(scope.frozen_here, term.demand)
        reach = self._reach(np.maximum(0, demand))
        for j, n in enumerate(scope.nodes.tolist()):
            if term.curve[n] >= 0:
                load = self.variables.at(asking, j, demand)
                load.constant = int(term.held[n] + fixed[j])
                total.extend(self._curve(load, term.curves, int(term.curve[n]), load.constant + int(reach[j])))
        return total

    def _reach(self, demand: Ints) -> Ints:
        """``[column]`` an upper bound of ``Σ demand[row]·y[row, column]``, from the capacities.

        Where all classes with a demand also use a capacity, the sum is at most the capacity times the largest ratio.
        """
        scope, upper = self.scope, self.variables.upper
        best = (upper * demand[:, None]).sum(axis=0).astype(np.float64)
        if not best.any():
            return np.zeros(len(scope.nodes), dtype=np.int64)
        asking = np.flatnonzero((demand > 0) & (upper > 0).any(axis=1))
        for i, rule in scope.index.capacities:
            asked = rule.demand[scope.classes[asking]]
            if asked.min() <= 0:
                continue
            # Frozen pods take room, and pods of negative demand free some.
            room = np.maximum(0, rule.free[scope.nodes]) - scope.load(scope.frozen_here, rule.demand)
            room = room + (upper * np.maximum(0, -rule.demand[scope.classes])[:, None]).sum(axis=0)
            if i in scope.index.before:
                room = room + scope.index.before[i][scope.nodes]
            ratio = float((demand[asking] / asked).max())
            # One more than the product, since the ratio is rounded.
            best = np.minimum(best, np.maximum(0, room) * ratio * (1 + 1e-9) + 1)
        upper_bound: Ints = best.astype(np.int64)
        return upper_bound

    def _domain_curve(self, term: DomainCurve) -> Linear:
        total = Linear()
        rows = self.scope.rows(term.group)
        fixed = term.held + self.scope.frozen_in(term.topology, term.group)
        for d, columns in self.scope.domains(term.topology):
            count = self.variables.on(rows, columns)
            count.constant = int(fixed[d])
            total.extend(self._curve(count, term.curves, 0))
        return total

    def _curve(self, load: Linear, curves: Curves, k: int, most: int | None = None) -> Linear:
        """Return the value of curve ``k`` at a load, which is known not to exceed ``most``."""
        builder = self.builder
        if not load.vars:
            return Linear(constant=_at(curves, k, load.constant))
        low, high = builder.lowest(load), builder.highest(load)
        if most is not None:
            high = min(high, most)
        reached = _reached(curves, k, low, high)
        if len(reached) == 1:
            return self._piece(load, curves, k, reached[0])
        x = builder.total(load, high)
        cost = builder.var(*_range(curves, k, low, high), _at(curves, k, builder.hints[x]))
        if bool(np.all(np.diff(curves.slope[k, reached]) >= 0)):
            for j in reached:  # a convex curve is the highest of its pieces
                piece = self._piece(Linear.of(x), curves, k, j)
                builder.at_most(piece.plus(cost, -1), 0)
        else:
            self._pick_piece(x, cost, curves, k, reached)
        return Linear.of(cost)

    def _piece(self, load: Linear, curves: Curves, k: int, j: int) -> Linear:
        slope = int(curves.slope[k, j])
        line = Linear(constant=int(curves.value[k, j]) - slope * int(curves.start[k, j]))
        line.extend(load, slope)
        return line

    def _pick_piece(self, x: int, cost: int, curves: Curves, k: int, reached: list[int]) -> None:
        builder = self.builder
        here = builder.hints[x]
        starts = curves.start[k]
        chosen = []
        for j, following in zip(reached, [*reached[1:], None], strict=True):
            end = int(starts[following]) if following is not None else None
            begin = int(starts[j]) if j else builder.lower[x]  # the first piece goes on to the left
            literal = builder.flag(begin <= here and (end is None or here < end))
            builder.at_least(Linear.of(x), begin, [literal])
            if end is not None:
                builder.at_most(Linear.of(x), end - 1, [literal])
            builder.at_most(self._piece(Linear.of(x), curves, k, j).plus(cost, -1), 0, [literal])
            chosen.append(literal)
        builder.equal(Linear(chosen, [1] * len(chosen)), 1)

    # -- scores -----------------------------------------------------------------------------------------------

    def _node_score(self, term: NodeScore) -> Linear:
        builder, total, scope = self.builder, Linear(), self.scope
        scored = term.scored[scope.classes]
        rows = np.flatnonzero(scored > 0)
        fixed = scope.load(scope.frozen_here, term.scored)
        for j, n in enumerate(scope.nodes.tolist()):
            pods = self.variables.at(rows, j, scored)
            pods.constant = int(fixed[j])
            if not pods.vars and not pods.constant:
                continue
            missed = self._balanced(term, j, n) if term.kind == "balanced" else self._allocated(term, j, n)
            if missed is not None:
                total.add(builder.product(builder.total(pods), missed), term.cost)
        return total

    def _load(self, load: Load, j: int, n: int) -> Linear:
        scope = self.scope
        demand = load.demand[scope.classes]
        used = self.variables.at(np.flatnonzero(demand > 0), j, demand)
        frozen = scope.frozen_here
        there = frozen.node == n
        used.constant = int(load.held[n] + (load.demand[frozen.cls[there]] * frozen.count[there]).sum())
        return used

    def _allocated(self, term: NodeScore, j: int, n: int) -> int | None:
        """Return the points missed under the least or most allocated strategy."""
        builder = self.builder
        weighted = Linear()
        weights = 0
        for load in term.loads:
            if load.capacity[n]:
                missed = self._missed_part(term.kind == "least", self._load(load, j, n), int(load.capacity[n]))
                weighted.add(missed, load.weight)
                weights += load.weight
        if not weights:
            return builder.var(POINTS, POINTS, POINTS)
        points = builder.var(0, POINTS, -(-builder.value(weighted) // weights))
        builder.at_least(Linear.of(points, weights).plus_all(weighted, -1), 0)
        return points

    def _missed_part(self, least: bool, used: Linear, capacity: int) -> int:
        """Return ``⌈100·u/a⌉`` or ``⌈100 − 100·u/a⌉``, in any case between 0 and 100."""
        builder = self.builder
        fill = min(builder.value(used), capacity)
        if not least:
            missed = builder.var(0, POINTS, -(-POINTS * (capacity - fill) // capacity))
            builder.at_least(Linear.of(missed, capacity).plus_all(used, POINTS), POINTS * capacity)
            return missed
        over = builder.value(used) > capacity
        missed = builder.var(0, POINTS, POINTS if over else -(-POINTS * fill // capacity))
        line = Linear.of(missed, capacity).plus_all(used, -POINTS)
        if builder.highest(used) <= capacity:
            builder.at_least(line, 0)
        else:
            full = builder.flag(over)
            builder.at_least(line, 0, [-full - 1])
            builder.at_least(Linear.of(missed), POINTS, [full])
        return missed

    def _balanced(self, term: NodeScore, j: int, n: int) -> int | None:
        """Return ``⌈50·|f₁ − f₂|⌉``; nothing is missed on a node that lacks one of the two."""
        builder = self.builder
        first, second = term.loads
        a, b = int(first.capacity[n]), int(second.capacity[n])
        if not a or not b:
            return None
        apart = self._clipped(self._load(first, j, n), a, b)
        apart.extend(self._clipped(self._load(second, j, n), b, a), -1)
        product = a * b
        missed = builder.var(0, POINTS // 2, -(-(POINTS // 2) * abs(builder.value(apart)) // product))
        for sign in (1, -1):
            line = Linear.of(missed, product).plus_all(apart, -sign * (POINTS // 2))
            builder.at_least(line, 0)
        return missed

    def _clipped(self, used: Linear, capacity: int, factor: int) -> Linear:
        """Return ``factor · min(used, capacity)``."""
        builder = self.builder
        result = Linear()
        if builder.highest(used) <= capacity:
            result.extend(used, factor)
            return result
        value = builder.value(used)
        clipped = builder.var(min(0, capacity), capacity, min(value, capacity))
        full = builder.flag(value >= capacity)
        builder.at_most(Linear.of(clipped).plus_all(used, -1), 0)
        builder.at_least(Linear.of(clipped), capacity, [full])
        builder.at_least(Linear.of(clipped).plus_all(used, -1), 0, [-full - 1])
        result.add(clipped, factor)
        return result

    # -- pairs and nodes in use -------------------------------------------------------------------------------

    def _pair(self, term: Pair) -> Linear:
        builder, variables, scope = self.builder, self.variables, self.scope
        groups = scope.index.roles(term)
        rows = [scope.rows(group) for group in groups]
        fixed = [
            term.topology.total(held) + scope.frozen_in(term.topology, group)
            for held, group in zip((term.held.both, term.held.seekers, term.held.targets), groups, strict=True)
        ]
        together = Linear()
        for d, columns in scope.domains(term.topology):
            a, seeking, sought = (variables.on(row, columns) for row in rows)
            if not (a.vars or seeking.vars or sought.vars):
                continue
            a.constant, seeking.constant, sought.constant = (int(there[d]) for there in fixed)
            seeking.extend(a)
            sought.extend(a)
            if not seeking.vars:
                together.extend(sought, seeking.constant)
            elif not sought.vars:
                together.extend(seeking, sought.constant)
            else:
                together.add(builder.product(builder.total(seeking), builder.total(sought)))
            together.extend(a, -1)
        cost = Linear()
        cost.extend(together, term.cost if term.together else -term.cost)
        return cost

    def _open(self, term: Open) -> Linear:
        builder, total, scope = self.builder, Linear(), self.scope
        fixed = scope.load(scope.frozen_here) + term.held[scope.nodes]
        every = np.arange(len(scope.classes))
        for j, n in enumerate(scope.nodes.tolist()):
            pods = self.variables.at(every, j)
            if term.cost[n] > 0 and not fixed[j] and pods.vars:
                used = builder.flag(bool(builder.value(pods)))
                for var in pods.vars:
                    builder.at_most(Linear([var, used], [1, -builder.upper[var]]), 0)
                total.add(used, int(term.cost[n]))
        return total


def _at(curves: Curves, k: int, x: int) -> int:
    return int(curves.at(np.array([k]), np.array([x]))[0])


def _reached(curves: Curves, k: int, low: int, high: int) -> list[int]:
    """Return the pieces of a curve between two loads."""
    starts: Ints = curves.start[k]
    first = max(0, int((low >= starts).sum()) - 1)
    last = max(0, int((high >= starts).sum()) - 1)
    return list(range(first, last + 1))


def _range(curves: Curves, k: int, low: int, high: int) -> tuple[int, int]:
    """Return the lowest and the highest value of a curve between two loads: its corners and ends decide."""
    corners = curves.value[k][(curves.start[k] > low) & (curves.start[k] < high)]
    values = [_at(curves, k, low), _at(curves, k, high), *corners.tolist()]
    return min(values), max(values)
