"""A linear program whose bounds do not rest on its precision.

Duals prove a bound: what rows come to at the sides that they are at, and for every column the cheaper end of its range.
A ray of duals proves that nothing is within the ranges. Both are computed here from the coefficients, and have to hold
by more than what rounding can amount to; all columns have finite ranges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from stowplan.models.arrays import Floats
from stowplan.optimizer.highs import limit_time, linear_program

SAFETY = 1e-12
"""Share of the sum of all amounts by which bounds are lowered, and by which a proof has to hold, against rounding."""

PRECISION = 1e-9
"""How far from its ranges a solution may be, and how far from the best."""

Ranges = tuple[Floats, Floats]
"""``[j]`` and ``[j]``: the least and the greatest value of each column."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The solution of a program.

    Parameters
    ----------
    bound
        What nothing within the ranges costs less; minus infinity if nothing is known.
    columns
        ``[j]`` the values of its columns; any within their ranges if nothing is known.
    reduced
        ``[j]`` what a unit more of each column costs more at least.
    """

    bound: float
    columns: Floats
    reduced: Floats


class SafeProgram:
    """A linear program, solved for one set of ranges after the other.

    Parameters
    ----------
    scale
        What all costs are multiplied with for the solver; bounds and reduced costs are what they are without it.
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._cost: list[float] = []
        self._range: list[tuple[float, float]] = []
        self._rows: list[tuple[float, float, list[int], list[float]]] = []

    def column(self, cost: float, lower: float, upper: float) -> int:
        """Add a column, and return its number."""
        self._cost.append(cost * self._scale)
        self._range.append((lower, upper))
        return len(self._cost) - 1

    def range_of(self, column: int) -> tuple[float, float]:
        """Return the range of a column."""
        return self._range[column]

    def row(self, lower: float, upper: float, columns: Iterable[int], amounts: Iterable[float]) -> int:
        """Add a row, and return its number."""
        self._rows.append((lower, upper, list(columns), [float(a) for a in amounts]))
        return len(self._rows) - 1

    def begin(self) -> Ranges:
        """Hand the program over to the solver once all columns are there; return their ranges."""
        lower, upper = (np.array(ends, dtype=np.float64) for ends in zip(*self._range, strict=True))
        self._costs, self._every = np.array(self._cost), np.arange(len(self._cost), dtype=np.int32)
        self._matrix = np.zeros((len(self._rows), len(self._cost)))
        for i, (_, _, columns, amounts) in enumerate(self._rows):
            np.add.at(self._matrix[i], columns, amounts)
        self._low = np.array([low for low, _, _, _ in self._rows])
        self._high = np.array([high for _, high, _, _ in self._rows])
        self._lp = lp = linear_program()
        lp.setOptionValue("presolve", "off")  # each program differs little from the last one
        lp.setOptionValue("dual_feasibility_tolerance", PRECISION)
        lp.setOptionValue("primal_feasibility_tolerance", PRECISION)
        empty, none = np.zeros(0, dtype=np.int32), np.zeros(0)
        lp.addCols(len(self._cost), self._costs, lower, upper, 0, empty, empty, none)
        for row, low, high in zip(self._matrix, self._low, self._high, strict=True):
            self._hand_over(row, low, high)
        return lower, upper

    def _hand_over(self, row: Floats, low: float, high: float) -> None:
        used = np.flatnonzero(row).astype(np.int32)
        self._lp.addRow(low, high, len(used), used, row[used])

    def add_rows(self, rows: Sequence[tuple[Floats, float]]) -> None:
        """Add rows, each with its amounts ``[j]`` and what it is at least."""
        if not rows:
            return
        self._matrix = np.vstack([self._matrix, *(row for row, _ in rows)])
        self._low = np.append(self._low, [low for _, low in rows])
        self._high = np.append(self._high, [math.inf] * len(rows))
        for row, low in rows:
            self._hand_over(row, low, math.inf)

    def change_row(self, row: int, amounts: Mapping[int, float], low: float) -> None:
        """Change some amounts of a row, and what it is at least."""
        for column, amount in amounts.items():
            self._lp.changeCoeff(row, column, amount)
            self._matrix[row, column] = amount
        self._low[row] = low
        self._lp.changeRowBounds(row, low, math.inf)

    def solve(self, ranges: Ranges, seconds: float | None = None) -> Solution | None:
        """Minimize within ranges; ``None`` if nothing is within them."""
        lower, upper = ranges
        self._lp.changeColsBounds(len(self._every), self._every, lower, upper)
        limit_time(self._lp, seconds)
        self._lp.run()
        status = self._lp.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible and self._is_empty(lower, upper):
            return None
        found = self._lp.getSolution()
        dual = np.asarray(found.row_dual)
        if status != highspy.HighsModelStatus.kOptimal or len(dual) != len(self._matrix):
            return Solution(-math.inf, (lower + upper) / 2, np.zeros(len(lower)))
        dual, rows = self._opened(dual)
        reduced = self._costs - dual @ self._matrix
        ends = np.minimum(reduced * lower, reduced * upper)
        bound = _total(rows) + _total(ends) - SAFETY * (_total(np.abs(rows)) + _total(np.abs(ends)))
        return Solution(bound / self._scale, np.asarray(found.col_value), reduced / self._scale)

    def _is_empty(self, lower: Floats, upper: Floats) -> bool:
        """Whether a ray of duals proves that no columns in the ranges fulfill all rows."""
        _, known, ray = self._lp.getDualRay()
        if not known:
            return False
        for signed in (np.asarray(ray), -np.asarray(ray)):
            dual, needed = self._opened(signed)
            amounts = dual @ self._matrix
            most = np.maximum(amounts * lower, amounts * upper)
            if _total(most) < _total(needed) - SAFETY * (_total(np.abs(most)) + _total(np.abs(needed))):
                return True
        return False

    def _opened(self, dual: Floats) -> tuple[Floats, Floats]:
        """Return duals without those of sides of rows that are open, and what each row comes to at least."""
        side = np.where(dual > 0, self._low, self._high)
        dual = np.where(np.isfinite(side), dual, 0.0)
        return dual, dual * np.where(dual != 0, side, 0.0)


def _total(amounts: Floats) -> float:
    return float(amounts.sum())
