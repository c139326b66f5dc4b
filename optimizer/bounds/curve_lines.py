"""Convex curves in a linear program: which of their lines are rows.

A curve of a node's load has a line for each of up to a thousand loads. A program is a relaxation with any of them, and
nearly as sharp with those at the loads that its solutions have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pulp

FIRST = 16
"""Lines of each curve that are rows from the beginning."""


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

    def rows(self) -> Iterable[pulp.LpConstraint]:
        """Yield the first ones, the same distance from each other."""
        last = len(self._lines) - 1
        for i in sorted({round(last * step / (FIRST - 1)) for step in range(FIRST)}):
            yield self._row(i)

    def cut(self) -> pulp.LpConstraint | None:
        """Return the row of the highest line at the load of the solution, if the cost is below it."""
        heights = self._base + self._slope * float(self._load.value() or 0.0)
        highest = int(np.argmax(heights))
        below = heights[highest] - float(self._cost.value() or 0.0)
        return self._row(highest) if below > max(1.0, 1e-6 * abs(heights[highest])) else None

    def _row(self, line: int) -> pulp.LpConstraint:
        base, slope = self._lines[line]
        return self._cost >= base + slope * self._load
