"""Each term as a linear expression, with the variables and constraints that make it one.

A term is minimised, so a variable that stands for a cost only needs to be bounded from below.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np

from models.arrays import Ints
from models.problem import (
    POINTS,
    Curves,
    DomainCurve,
    Excess,
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
)
from optimizer.cpsat.builder import Builder, Linear
from optimizer.cpsat.rules import domains_of
from optimizer.cpsat.variables import Variables
from optimizer.evaluate.excess import roles


class Terms:
    """Makes terms into expressions of one model."""

    def __init__(self, builder: Builder, variables: Variables, excess: Linear) -> None:
        self.builder = builder
        self.variables = variables
        self.excess = excess

    def expression(self, term: Term) -> Linear:
        """Return the cost of a term."""
        variables = self.variables
        match term:
            case Excess():
                return self.excess
            case Unplaced():
                return Linear(list(variables.unplaced), term.cost.tolist())
            case Move():
                started = list(variables.started())
                return Linear([variables.leaving(c, n) for c, n in started], [int(term.cost[c]) for c, _ in started])
            case MovePeak():
                return self._move_peak(term)
            case Prefer():
                rows, columns = np.nonzero(variables.index >= 0)
                costs = term.table[term.row[rows], columns]
                kept = costs != 0
                return Linear(variables.index[rows, columns][kept].tolist(), costs[kept].tolist())
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

    def _move_peak(self, term: MovePeak) -> Linear:
        leavers: dict[int, Linear] = {}
        for c, n in self.variables.started():
            if term.group[c] >= 0:
                leavers.setdefault(int(term.group[c]), Linear()).add(self.variables.leaving(c, n))
        builder = self.builder
        if not leavers:
            return Linear()
        highest = max(builder.highest(group) for group in leavers.values())
        peak = builder.var(0, highest, max(builder.value(group) for group in leavers.values()))
        for group in leavers.values():
            builder.at_most(group.plus(peak, -1), 0)
        return Linear.of(peak, term.cost)

    # -- curves -----------------------------------------------------------------------------------------------

    def _node_curve(self, term: NodeCurve) -> Linear:
        total = Linear()
        for n in np.flatnonzero(term.curve >= 0).tolist():
            load = self.variables.on(np.flatnonzero(term.demand), [n], term.demand)
            load.constant = int(term.held[n])
            total.extend(self._curve(load, term.curves, int(term.curve[n])))
        return total

    def _domain_curve(self, term: DomainCurve) -> Linear:
        total = Linear()
        for d, nodes in domains_of(term.topology):
            count = self.variables.on(term.group, nodes)
            count.constant = int(term.held[d])
            total.extend(self._curve(count, term.curves, 0))
        return total

    def _curve(self, load: Linear, curves: Curves, k: int) -> Linear:
        """Return the value of curve ``k`` at a load."""
        builder = self.builder
        if not load.vars:
            return Linear(constant=_at(curves, k, load.constant))
        low, high = builder.lowest(load), builder.highest(load)
        reached = _reached(curves, k, low, high)
        if len(reached) == 1:
            return self._piece(load, curves, k, reached[0])
        x = builder.total(load)
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
        builder, total = self.builder, Linear()
        scored = np.flatnonzero(term.scored > 0)
        for n in range(len(self.variables.problem.nodes)):
            pods = self.variables.on(scored, [n], term.scored)
            if not pods.vars:
                continue
            missed = self._balanced(term, n) if term.kind == "balanced" else self._allocated(term, n)
            if missed is None:
                continue
            total.add(builder.product(builder.total(pods), missed), term.cost)
        return total

    def _load(self, load: Load, n: int) -> Linear:
        used = self.variables.on(np.flatnonzero(load.demand > 0), [n], load.demand)
        used.constant = int(load.held[n])
        return used

    def _allocated(self, term: NodeScore, n: int) -> int | None:
        """Return the points missed under the least or most allocated strategy."""
        builder = self.builder
        weighted = Linear()
        weights = 0
        for load in term.loads:
            if load.capacity[n]:
                missed = self._missed_part(term.kind == "least", self._load(load, n), int(load.capacity[n]))
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

    def _balanced(self, term: NodeScore, n: int) -> int | None:
        """Return ``⌈50·|f₁ − f₂|⌉``; nothing is missed on a node that lacks one of the two."""
        builder = self.builder
        first, second = term.loads
        a, b = int(first.capacity[n]), int(second.capacity[n])
        if not a or not b:
            return None
        apart = self._clipped(self._load(first, n), a, b)
        apart.extend(self._clipped(self._load(second, n), b, a), -1)
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

    # -- company and nodes in use -----------------------------------------------------------------------------

    def _pair(self, term: Pair) -> Linear:
        builder, variables = self.builder, self.variables
        both, seekers, targets = roles(term.seekers, term.targets)
        held_a, held_b, held_t = (
            term.topology.total(h) for h in (term.held.both, term.held.seekers, term.held.targets)
        )
        together = Linear()
        for d, nodes in domains_of(term.topology):
            a = variables.on(both, nodes)
            a.constant = int(held_a[d])
            seeking, sought = variables.on(seekers, nodes), variables.on(targets, nodes)
            seeking.constant, sought.constant = int(held_b[d]), int(held_t[d])
            seeking.extend(a)
            sought.extend(a)
            if not seeking.vars:
                together.extend(sought, seeking.constant)
            elif not sought.vars:
                together.extend(seeking, sought.constant)
            else:
                together.add(builder.product(builder.total(seeking), builder.total(sought)))
            together.extend(a, -1)
        cost = Linear(constant=0 if term.together else term.cost * term.pairs)
        cost.extend(together, term.cost if term.together else -term.cost)
        return cost

    def _open(self, term: Open) -> Linear:
        builder, variables = self.builder, self.variables
        total = Linear(constant=int(term.cost[term.held > 0].sum()))
        classes = range(len(variables.problem.classes))
        for n in np.flatnonzero((term.held == 0) & (term.cost > 0)).tolist():
            pods = variables.on(classes, [n])
            if pods.vars:
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
    corners = [low, high, *(x for x in curves.start[k].tolist() if low < x < high)]
    values = [_at(curves, k, x) for x in corners]
    return min(values), max(values)
