"""HiGHS on an integer program in plain data: here, or in a process of its own, which can be ended.

The solver does not ask whether to go on while it simplifies a program, nor in much of its first node, which is seconds
where there are thousands of variables. A process imports this module alone, so it begins in half a second.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import highspy
import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.stop import Stop
from stowplan.optimizer.highs import limit_time, linear_program

INFINITE = highspy.kHighsInf

ENDED = (
    highspy.HighsModelStatus.kOptimal,
    highspy.HighsModelStatus.kTimeLimit,
    highspy.HighsModelStatus.kInterrupt,
)
"""How runs end whose bound counts."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a program: ``low ≤ Σ amount·column ≤ high``."""

    low: float
    high: float
    column: NDArray[np.int32]
    amount: Floats

    @classmethod
    def of(cls, low: float, high: float, column: Ints, amount: Ints) -> Self:
        """Return a row as a solver takes it: times a power of two, so that no amount is above 2, none loses a digit."""
        scale = 2.0 ** -math.floor(math.log2(max(1, int(np.abs(amount).max(initial=1)))))
        return cls(low * scale, high * scale, column.astype(np.int32), amount.astype(np.float64) * scale)


@dataclass(frozen=True, slots=True, eq=False)
class IntegerProgram:
    """``min Σ cost·x`` over whole numbers ``0 ≤ x ≤ most``, within rows.

    Parameters
    ----------
    cost, most
        ``[i]`` of each variable.
    """

    cost: Floats
    most: Floats
    rows: tuple[Row, ...]

    def restricted(self, kept: Bools) -> IntegerProgram:
        """Return the program of the variables ``[i]`` that are kept, in their order; the others are 0."""
        number = np.cumsum(kept, dtype=np.int32) - 1
        rows = []
        for row in self.rows:
            here = kept[row.column]
            if here.any() or not row.low <= 0.0 <= row.high:
                rows.append(replace(row, column=number[row.column[here]], amount=row.amount[here]))
        return IntegerProgram(self.cost[kept], self.most[kept], tuple(rows))


def solve_beside(stop: Stop, tell: Callable[[float | Floats], object], program: IntegerProgram, until: float) -> bool:
    """Solve a program in a worker process, as `solve` does."""
    return solve(program, until, stop.is_set, tell)


def solve(
    program: IntegerProgram,
    until: float,
    over: Callable[[], bool],
    tell: Callable[[float | Floats], object],
    begin: Floats | None = None,
) -> bool:
    """Solve a program; return whether nothing better than what was told is left.

    Parameters
    ----------
    until
        When to end, as `time.monotonic` counts.
    over
        Whether to end before, which is asked often, but not always.
    tell
        Called with lower bounds of the objective, infinite if the program has no solution; and with solutions, each
        better than those before.
    begin
        A solution to begin with.
    """
    lp = linear_program()
    limit_time(lp, until - time.monotonic())
    lp.setOptionValue("mip_rel_gap", 0.0)
    variables = len(program.cost)
    every = np.arange(variables, dtype=np.int32)
    lp.addVars(variables, np.zeros(variables), program.most)
    lp.changeColsCost(variables, every, program.cost)
    lp.changeColsIntegrality(variables, every, np.full(variables, highspy.HighsVarType.kInteger))
    for row in program.rows:
        lp.addRow(row.low, row.high, len(row.column), row.column, row.amount)
    if begin is not None:
        lp.setSolution(variables, every, begin)

    told = -math.inf

    def bounded(bound: float) -> None:
        nonlocal told
        if bound > told and math.isfinite(bound):
            told = bound
            tell(bound)

    def look(event: highspy.HighsCallbackEvent) -> None:
        if over() or time.monotonic() > until:
            event.interrupt()

    def look_at_bound(event: highspy.HighsCallbackEvent) -> None:
        bounded(float(event.data_out.mip_dual_bound))
        look(event)

    def better(event: highspy.HighsCallbackEvent) -> None:
        tell(np.array(event.data_out.mip_solution, dtype=np.float64))

    lp.cbMipInterrupt.subscribe(look_at_bound)
    lp.cbSimplexInterrupt.subscribe(look)
    lp.cbMipImprovingSolution.subscribe(better)
    lp.run()
    status, info = lp.getModelStatus(), lp.getInfo()
    if info.primal_solution_status == highspy.kSolutionStatusFeasible:
        tell(np.array(lp.getSolution().col_value))  # of the last one it may have said nothing
    if status == highspy.HighsModelStatus.kInfeasible:
        tell(math.inf)
        return True
    if status in ENDED:
        bounded(float(info.mip_dual_bound))
    return bool(status == highspy.HighsModelStatus.kOptimal)
