"""The restricted master: a linear program over the changes of nodes found so far.

    min Σ_j cost_j·x_j + Σ_k unplaced_k·u_k
    Σ_j Δ_j[k]·x_j + u_k = size_k − Σ_n start_n[k]       for every kind                    (multiplier)
    Σ_j use_j[e]·x_j + Σ_k unplaced[e,k]·u_k ≤ most_e    for every side constraint         (minus a side dual)
    Σ_{j of m} x_j ≤ times_m                             for every program of nodes

``Δ_j``, ``cost_j`` and ``use_j`` are differences to the node as it starts, which needs no column.

The duals of few columns are anything. So each dual is drawn to the best one so far, by columns that violate the row at
a price that grows with the violation, step by step, as the square of it does: a proximal bundle method (C. Lemaréchal,
"Nonsmooth optimization and descent methods", 1978), with steps for squares so that the program stays linear.
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Floats, Ints
from stowplan.optimizer.bounds.node_programs import Programs
from stowplan.optimizer.bounds.node_search import costs_of
from stowplan.optimizer.highs import limit_time, linear_program

INFINITE = highspy.kHighsInf

STEPS = np.array([0.25, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, INFINITE])
"""Violations of a row that have one price each, in pods, or in what the largest use of a side constraint is."""

PRICES = np.array([0.125, 0.375, 0.75, 1.5, 3.0, 6.0, 12.0, 20.0])
"""Those prices, in multiples of that of one pod: slopes of half the square in the middle of each step."""


@dataclass(frozen=True, slots=True, eq=False)
class MasterDuals:
    """An optimal solution of the master, in units of the tier.

    Parameters
    ----------
    value
        Its value, that of the start counting as 0.
    multipliers, side_duals
        ``[k]`` of the kinds, ``[e]`` of the side constraints, which are not negative.
    violation
        By how much rows are violated, at a price.
    used, reduced
        ``[j]`` how often each change is made, and its reduced cost.
    """

    value: float
    multipliers: Floats
    side_duals: Floats
    violation: float
    used: Floats
    reduced: Floats


class ChangeMaster:
    """The master, to which changes are added.

    Attributes
    ----------
    program
        ``[j]`` the program whose nodes make each change.
    change
        ``[j]`` arrays ``[k]``: pods of each kind that come, or leave where negative.
    """

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        tables, limits = programs.tables, programs.limits
        self.program: list[int] = []
        self.change: list[Ints] = []
        self._columns: list[tuple[float, NDArray[np.int32], Floats]] = []
        self._known: set[tuple[int, bytes]] = set()
        self._every = np.arange(tables.upper.shape[1])
        self._start_cost = [
            int(costs_of(tables, m, self._every, tables.start[[m]])[0]) for m in range(len(tables.start))
        ]
        self.kinds, self.sides = len(self._every), len(limits.most)
        placed = programs.times @ tables.start
        spent = programs.times @ (limits.opening * (tables.start.sum(axis=1) > 0)[:, None])
        self._spent = spent
        missing = (programs.size - placed) * 1.0
        lower = np.concatenate([missing, np.full(self.sides + len(tables.upper), -INFINITE)])
        upper = np.concatenate([missing, (limits.most - spent) * 1.0, programs.times * 1.0])
        self._limits = lower, upper
        self._lp = lp = self._with_rows()
        lp.setOptionValue("presolve", "off")
        # Where no change costs anything, the primal simplex of HiGHS 1.14 has corrupted memory.
        if any(table.any() for table in (tables.linear, tables.move, tables.opening, tables.slope, tables.value)):
            lp.setOptionValue("simplex_strategy", 4)  # new columns leave the last basis primal feasible
        self._unit = np.concatenate([np.ones(self.kinds), limits.largest_use])
        for row in range(self.kinds + self.sides):
            for sign in (1.0, -1.0):
                for step in (STEPS * self._unit[row]).tolist():
                    lp.addCol(0.0, 0.0, step, 1, np.array([row], dtype=np.int32), np.array([sign]))

    def _with_rows(self) -> highspy.Highs:
        """Return a program with all rows, and the columns of unplaced pods."""
        programs, limits = self.programs, self.programs.limits
        lp = linear_program()
        lower, upper = self._limits
        empty = np.zeros(0, dtype=np.int32)
        lp.addRows(len(lower), lower, upper, 0, empty, empty, np.zeros(0))
        for k in range(self.kinds):
            sides = np.flatnonzero(limits.unplaced[:, k])
            index = np.concatenate([[k], self.kinds + sides]).astype(np.int32)
            amount = np.concatenate([[1.0], limits.unplaced[sides, k] * 1.0])
            cost = float(programs.unplaced[k]) / programs.scale
            lp.addCol(cost, 0.0, float(programs.optional[k]), len(index), index, amount)
        return lp

    def whole(self, seconds: float | None, nodes: int) -> Ints | None:
        """``[j]`` how often to make each change, in whole numbers; ``None`` if none was found.

        Parameters
        ----------
        seconds, nodes
            Limits of branch and bound: the time, or where the clock must not count, the nodes of its tree.
        """
        lp = self._with_rows()
        for cost, index, amount in self._columns:
            lp.addCol(cost, 0.0, INFINITE, len(index), index, amount)
        for column in range(self.kinds + len(self._columns)):
            lp.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        if seconds is not None:
            lp.setOptionValue("time_limit", max(0.05, seconds))
        lp.setOptionValue("mip_max_nodes", nodes)
        lp.run()
        if lp.getInfo().primal_solution_status != highspy.kSolutionStatusFeasible:
            return None
        found: Ints = np.rint(np.asarray(lp.getSolution().col_value)[self.kinds :]).astype(np.int64)
        return found

    def draw(self, multipliers: Floats, side_duals: Floats, price: float) -> None:
        """Draw the duals to these: a row that is violated by one pod has one that is this price away, or less."""
        center = np.concatenate([multipliers, -side_duals])[:, None]
        away = price * PRICES / self._unit[:, None]
        above, below = center + away, center - away
        above[self.kinds :] = np.minimum(0.0, above[self.kinds :])
        costs = np.stack([above, -below], axis=1).reshape(-1)
        columns = np.arange(self.kinds, self.kinds + len(costs), dtype=np.int32)
        self._lp.changeColsCost(len(costs), columns, costs)

    @property
    def start_cost(self) -> float:
        """The value of the tier at the start, unplaced pods not counted."""
        nodes = sum(times * cost for times, cost in zip(self.programs.times.tolist(), self._start_cost, strict=True))
        return float(self.programs.constant + int(nodes)) / self.programs.scale

    def limit(self, side: int, most: int) -> None:
        """Change what a side constraint allows."""
        self._limits[1][self.kinds + side] = most - self._spent[side]
        self._lp.changeRowBounds(self.kinds + side, -INFINITE, float(most - self._spent[side]))

    def add(self, program: Ints, patterns: Ints) -> int:
        """Add the changes to patterns ``[j, k]`` of nodes of programs ``[j]``, as far as new; return how many."""
        tables = self.programs.tables
        uses = self.use(program, patterns) - self.use(program, tables.start[program])
        added = 0
        for m, pattern, use in zip(program.tolist(), patterns, uses, strict=True):
            change = pattern - tables.start[m]
            key = (m, change.tobytes())
            if key in self._known or not change.any():
                continue
            self._known.add(key)
            cost = int(costs_of(tables, m, self._every, pattern[None])[0]) - self._start_cost[m]
            kinds, sides = np.flatnonzero(change), np.flatnonzero(use)
            index = np.concatenate([kinds, self.kinds + sides, [self.kinds + self.sides + m]]).astype(np.int32)
            amount = np.concatenate([change[kinds], use[sides], [1]]) * 1.0
            self._lp.addCol(cost / self.programs.scale, 0.0, INFINITE, len(index), index, amount)
            self._columns.append((cost / self.programs.scale, index, amount))
            self.program.append(m)
            self.change.append(change)
            added += 1
        return added

    def use(self, program: Ints, patterns: Ints) -> Ints:
        """``[j, e]`` what patterns ``[j, k]`` of nodes of programs ``[j]`` use of each side constraint."""
        limits = self.programs.limits
        left = np.maximum(0, self.programs.tables.start[program] - patterns)
        used: Ints = left @ limits.move.T + limits.opening[program] * patterns.any(axis=1, keepdims=True)
        return used

    def solve(self, seconds: float | None) -> MasterDuals | None:
        """Solve the linear program; ``None`` if it has no solution, or time is up."""
        lp = self._lp
        limit_time(lp, seconds)
        lp.run()
        if lp.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = lp.getSolution()
        row_duals = np.asarray(solution.row_dual)
        first = self.kinds + 2 * len(STEPS) * (self.kinds + self.sides)
        return MasterDuals(
            float(lp.getInfo().objective_function_value),
            row_duals[: self.kinds],
            np.maximum(0.0, -row_duals[self.kinds : self.kinds + self.sides]),
            float(np.abs(np.asarray(solution.col_value)[self.kinds : first]).sum()),
            np.asarray(solution.col_value)[first:],
            np.asarray(solution.col_dual)[first:],
        )
