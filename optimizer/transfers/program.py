"""The integer program over transfers: how many pods of each kind leave each node, and how many come to it.

With ``a[n,k]`` pods that come, ``d[n,k]`` that leave, ``o[n]`` for a node in use and ``u[k]`` pods without a node:

    min Σ linear[n,k]·(a[n,k] − d[n,k]) + Σ move[k]·d[n,k] + Σ opening[n]·o[n] + Σ unplaced[k]·u[k]
    load[n,r] + Σ_k demand_r[k]·(a[n,k] − d[n,k]) ≤ max(load[n,r], capacity[n,r])·o[n]    for every node and capacity
    d[n,k] ≥ start[n,k]·(1 − o[n])
    Σ_n (a[n,k] − d[n,k]) + u[k] = size[k] − Σ_n start[n,k]                      for every kind
    Σ_k move_e[k]·Σ_n d[n,k] + Σ_k unplaced_e[k]·u[k] + Σ_n opening_e[n]·o[n] ≤ most_e
    Σ_{n,k} move_e[k]·start[n,k]·(1 − o[n]) ≤ most_e                             where that side constraint counts moves

Where using a node costs nothing, ``o[n]`` is 1. The last row is implied, but as a knapsack of the nodes that are
emptied it has cover cuts, which the solver finds. What kinds and nodes are, `node_programs` says; rules between nodes
are left out, so that the value is a lower bound.

Demands are whole numbers up to `FINEST`, larger ones are divided and rounded so that no placement is excluded: one such
number is far more than the tolerances of a solver in floating point. Its bounds are trusted with that, not verified.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.optimizer.bounds.node_programs import Programs
from stowplan.optimizer.transfers.solver import INFINITE, IntegerProgram, Row

FINEST = 1 << 14
"""The largest demand or capacity in the rows of the program."""

LARGEST_VALUE = 10**8
"""The largest value, in steps of the tier, that floating point tells apart from the next one with much to spare."""

LARGEST_COST = 10**5
"""The largest cost, in steps of the tier, beside which a row of costs still tells one step."""

TOLERANCE = 1e-3
"""What a bound may be above a whole number and count as that number."""


class TransferProgram:
    """The program of a tier that is linear in the numbers of pods.

    Parameters
    ----------
    programs
        The programs of all nodes, without costs of loads; see `suits`.
    among
        ``[m, k]`` which pods may come to a node of each program, and which may leave it; by default all. With less the
        program bounds nothing.

    Attributes
    ----------
    variables
        Number of columns.
    complete
        Whether all pods that may come or leave are in it, so that its bounds are bounds.
    start
        ``[n, k]`` the pods of each kind on each node at the start.
    whole
        The program as a solver has it; values are costs in steps of the tier, without what is constant.
    """

    @staticmethod
    def suits(programs: Programs) -> bool:
        """Whether no load has a cost, using a node costs nothing less than nothing, and numbers are small enough."""
        tables, limits = programs.tables, programs.limits
        used = np.unique(tables.curve)
        linear = not tables.slope[used].any() and not tables.value[used].any()
        closed = (tables.opening >= 0).all() and (limits.opening >= 0).all()
        amounts = (limits.most, limits.move, limits.unplaced, limits.opening)
        largest = max(int(np.abs(part).max(initial=0)) for part in amounts)
        return bool(linear and closed and largest < LARGEST_VALUE and _highest(programs) < LARGEST_VALUE)

    @staticmethod
    def size(programs: Programs) -> int:
        """Return how many variables for pods that come or leave a program has, without making it."""
        tables = programs.tables
        pairs = (tables.upper > tables.start).sum(axis=1) + (tables.start > 0).sum(axis=1)
        return int(programs.times @ pairs)

    def __init__(self, programs: Programs, among: tuple[Bools, Bools] | None = None) -> None:
        self.programs = programs
        tables, limits, each = programs.tables, programs.limits, programs.program
        self.start, upper = tables.start[each], tables.upper[each]
        self._room = (tables.capacity - tables.base)[each]
        opening = tables.opening[each]
        come, leave = upper > self.start, self.start > 0
        if among is not None:
            come, leave = come & among[0][each], leave & among[1][each]
        self._come, self._leave = np.argwhere(come), np.argwhere(leave)
        self.complete = len(self._come) + len(self._leave) == self.size(programs)
        self._used = np.flatnonzero((opening > 0) | limits.opening[each].any(axis=1))
        self._waiting = np.flatnonzero(programs.optional > 0)
        first = np.cumsum([0, len(self._come), len(self._leave), len(self._used), len(self._waiting)])
        self.variables = int(first[-1])
        self._first_leave, self._first_used, self._first_waiting = (int(i) for i in first[1:4])
        linear, (a, b), (c, d) = tables.linear[each], self._come.T, self._leave.T
        cost = [linear[a, b], tables.move[d] - linear[c, d], opening[self._used], programs.unplaced[self._waiting]]
        costs = np.concatenate(cost) // programs.scale
        self._step = max(1, int(np.gcd.reduce(costs)))
        self._cost: Ints = costs // self._step  # in steps
        upmost = [(upper - self.start)[a, b], self.start[c, d], np.ones(len(self._used), dtype=np.int64)]
        most = np.concatenate([*upmost, programs.optional[self._waiting]])
        self._constant = (programs.constant + int((linear * self.start).sum())) // programs.scale
        rows = tuple(self._all_rows())
        self.whole = IntegerProgram(self._cost.astype(np.float64), most.astype(np.float64), rows)

    def below(self, value: int) -> IntegerProgram | None:
        """Return the program of what has a lower value, or ``None`` if a row cannot tell that.

        Proofs that there is nothing are often quicker with it.
        """
        if int(np.abs(self._cost).max(initial=0)) > LARGEST_COST:
            return None
        columns, highest = np.flatnonzero(self._cost), (value - 1 - self._constant) // self._step
        row = Row.of(-INFINITE, float(highest), columns, self._cost[columns])
        return replace(self.whole, rows=(*self.whole.rows, row))

    def bound(self, objective: float, below: int | None) -> int | None:
        """Return the bound of the tier that a bound of a solver's objective is, or ``None`` if it is none.

        Parameters
        ----------
        below
            What the solver searched was below this value.
        """
        if not math.isfinite(objective):
            return below if objective > 0 else None
        value = self._constant + self._step * math.ceil(objective - TOLERANCE)
        return value if below is None else min(value, below)

    def worth(self, solution: Floats) -> int:
        """Return the value of the tier that a solution has, rules between nodes left aside."""
        return self._constant + self._step * int(self._cost @ np.rint(solution).astype(np.int64))

    def pods(self, solution: Floats) -> Ints:
        """``[n, k]`` the pods of each kind on each node in a solution."""
        found, whole = self.start.copy(), np.rint(solution).astype(np.int64)
        found[tuple(self._come.T)] += whole[: self._first_leave]
        found[tuple(self._leave.T)] -= whole[self._first_leave : self._first_used]
        return found

    def columns(self, patterns: Ints) -> Floats:
        """``[i]`` the variables of a placement with ``patterns[n, k]`` pods of each kind on each node."""
        change = patterns - self.start
        (a, b), (c, d) = self._come.T, self._leave.T
        used = patterns[self._used].any(axis=1)
        waiting = (self.programs.size - patterns.sum(axis=0))[self._waiting]
        parts = [np.maximum(0, change[a, b]), np.maximum(0, -change[c, d]), used, waiting]
        return np.concatenate(parts).astype(np.float64)

    def emptied(self, changes: Sequence[tuple[int, Ints]]) -> Ints:
        """Return which nodes that cost something have pods at the start, and none after changes ``(node, [k])``."""
        nodes = [n for n, change in changes if self.start[n].any() and not (self.start[n] + change).any()]
        return np.intersect1d(np.array(nodes, dtype=np.int64), self._used)

    def in_use(self, nodes: Ints) -> Row:
        """Return the row that at least one of some nodes that cost something is in use."""
        columns = self._first_used + np.searchsorted(self._used, nodes)
        return Row.of(1.0, INFINITE, columns, np.ones(len(nodes), dtype=np.int64))

    def fewer_leave(self, changes: Sequence[tuple[int, Ints]]) -> Row | None:
        """Return the row that not all pods leave that do so by changes ``(node, [k])``; ``None`` if none does."""
        left = np.zeros_like(self.start)
        for n, change in changes:
            left[n] = np.maximum(0, -change)
        pods = left[tuple(self._leave.T)]
        columns = np.flatnonzero(pods)
        if not columns.size:
            return None
        return Row.of(-INFINITE, float(pods.sum() - 1), self._first_leave + columns, np.ones_like(columns))

    def order(self, come: Floats, leave: Floats) -> tuple[Ints, int]:
        """``[i]`` the variables by rank, those first that count no pods of a node; and how many these are.

        Parameters
        ----------
        come, leave
            ``[m, k]`` ranks of a pod that comes to a node of each program, and of one that leaves it.
        """
        each = self.programs.program
        (a, b), (c, d) = self._come.T, self._leave.T
        rank = np.concatenate([come[each[a], b], leave[each[c], d]])
        # Of those that rank the same, none comes first by its number, which is that of its node.
        shuffled = np.random.default_rng(0).permutation(len(rank))
        others = np.arange(self._first_used, self.variables)
        return np.concatenate([others, np.lexsort((shuffled, rank))]), len(others)

    def _all_rows(self) -> list[Row]:
        programs, nodes = self.programs, np.arange(len(self.start) + 1)
        come, leave = (np.searchsorted(pairs[:, 0], nodes) for pairs in (self._come, self._leave))
        used = {n: self._first_used + i for i, n in enumerate(self._used.tolist())}
        rows: list[Row] = []
        for n in range(len(self.start)):
            arriving = np.arange(come[n], come[n + 1])
            leaving = self._first_leave + np.arange(leave[n], leave[n + 1])
            rows += self._rows_of_node(n, arriving, leaving, used.get(n))
        for k, missing in enumerate((programs.size - self.start.sum(axis=0)).tolist()):
            coming = np.flatnonzero(self._come[:, 1] == k)
            going = self._first_leave + np.flatnonzero(self._leave[:, 1] == k)
            waiting = self._first_waiting + np.flatnonzero(self._waiting == k)
            amounts = np.repeat([1, -1, 1], [len(coming), len(going), len(waiting)])
            rows.append(Row.of(float(missing), float(missing), np.concatenate([coming, going, waiting]), amounts))
        return rows + self._side_rows()

    def _rows_of_node(self, n: int, arriving: Ints, leaving: Ints, used: int | None) -> list[Row]:
        """Return the rows of a node: its capacities, and that it is in use where it has pods."""
        rows: list[Row] = []
        here, there = self._come[arriving, 1], self._leave[leaving - self._first_leave, 1]
        for demand, room in zip(self.programs.tables.demand, self._room[n].tolist(), strict=True):
            load = int(demand @ self.start[n])
            largest = max(
                abs(room), int(np.abs(demand[here]).max(initial=0)), int(np.abs(demand[there]).max(initial=0))
            )
            unit = -(-max(largest, 1) // FINEST)
            down, up = demand // unit, -(-demand // unit)
            if demand[here].any():
                columns = np.concatenate([arriving, leaving])
                amounts = np.concatenate([down[here], -up[there]])
                most, away = max(0, room - load) // unit, 0
                if used is not None:  # a node that is not has lost all its pods, and nothing comes
                    away = int(up[there] @ self.start[n, there])
                    columns, amounts = np.append(columns, used), np.append(amounts, -(most + away))
                rows.append(Row.of(-INFINITE, float(most if used is None else -away), columns, amounts))
        if used is not None:
            for column, k in zip(leaving.tolist(), there.tolist(), strict=True):
                pods = int(self.start[n, k])
                rows.append(Row.of(float(pods), INFINITE, np.array([column, used]), np.array([1, pods])))
            if self.start[n].sum() > self.start[n, there].sum():  # pods of which none may leave
                rows.append(Row.of(1.0, INFINITE, np.array([used]), np.array([1])))
        return rows

    def _side_rows(self) -> list[Row]:
        programs, limits = self.programs, self.programs.limits
        rows: list[Row] = []
        for e, most in enumerate(limits.most.tolist()):
            opening = limits.opening[programs.program, e][self._used]
            amounts = np.zeros(self.variables, dtype=np.int64)
            amounts[self._first_leave : self._first_used] = limits.move[e, self._leave[:, 1]]
            amounts[self._first_used : self._first_waiting] = opening
            amounts[self._first_waiting :] = limits.unplaced[e, self._waiting]
            columns = np.flatnonzero(amounts)
            rows.append(Row.of(-INFINITE, float(most), columns, amounts[columns]))
            away = (self.start @ limits.move[e])[self._used]
            if (away > 0).any() and (limits.move[e] >= 0).all() and (amounts >= 0).all():
                some = np.flatnonzero(away)
                rows.append(Row.of(float(away.sum() - most), INFINITE, self._first_used + some, away[some]))
        return rows


def _highest(programs: Programs) -> int:
    """Return at least what any placement costs, in units of the tier."""
    tables, pods = programs.tables, int(programs.size.sum())
    each = max(int(np.abs(part).max(initial=0)) for part in (tables.linear, tables.move, programs.unplaced))
    opened: int = sum(tables.opening[programs.program].tolist())  # as Python's numbers, which have no end
    return (2 * each * pods + opened + abs(int(programs.constant))) // int(programs.scale)
