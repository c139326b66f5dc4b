"""Convex curves in a linear program: which of their lines are rows.

A curve of a node's load has a line for each of up to a thousand loads. A program is a relaxation with any of them, and
nearly as sharp with those at the loads that its solutions have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pulp

FIRST = 16
"""Lines of each curve that are rows from the beginning, beside those around its likely load."""


class CurveLines:
    """The cost of a load: as much as the highest of lines ``(base, slope)``, of which few need to be rows.

    Parameters
    ----------
    cost
        The variable that none of them may be above.
    load
        Where on the curve the nodes are, in the units of its slopes.
    """

    def __init__(self, cost: pulp.LpVariable, load: pulp.LpAffineExpression, lines: Sequence[tuple[int, int]]) -> None:
        self._cost, self._load, self._lines = cost, load, lines
        self._base, self._slope = np.array(lines, dtype=np.float64).reshape(-1, 2).T

    def rows(self, likely: float) -> Iterable[pulp.LpConstraint]:
        """Yield the first ones: some at the same distance from each other, and those around a load that is likely."""
        last, highest = len(self._lines) - 1, self._highest(likely)
        chosen = {round(last * step / (FIRST - 1)) for step in range(FIRST)} | {highest - 1, highest, highest + 1}
        for i in sorted(chosen):
            if 0 <= i <= last:
                yield self._row(i)

    def cut(self) -> pulp.LpConstraint | None:
        """Return the row of the highest line at the load of the solution, if the cost is below it."""
        load = float(self._load.value() or 0.0)
        highest = self._highest(load)
        height = float(self._base[highest] + self._slope[highest] * load)
        below = height - float(self._cost.value() or 0.0)
        return self._row(highest) if below > 1e-6 * max(1.0, abs(height)) else None

    def _highest(self, load: float) -> int:
        return int(np.argmax(self._base + self._slope * load))

    def _row(self, line: int) -> pulp.LpConstraint:
        base, slope = self._lines[line]
        return self._cost >= base + slope * self._load
