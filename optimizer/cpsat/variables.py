"""The decision variables: free pods of each class on each node, unplaced pods, and pods that left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement, Rule
from stowplan.optimizer.cpsat.builder import Builder, Linear
from stowplan.optimizer.domains import NONE, upper_bounds
from stowplan.optimizer.subproblem.scope import Scope, replaced


class Variables:
    """Variables of a model, and sums over them; by row and column of the scope.

    Attributes
    ----------
    upper
        ``[row, column]`` the most free pods of a class that the node can hold.
    index
        ``[row, column]`` the variable that counts the pods of a class on a node, or `NONE`.
    unplaced
        ``[row]`` the variable that counts the pods without a node, or `NONE` where their number is fixed.
    """

    def __init__(self, builder: Builder, scope: Scope, rules: Sequence[Rule]) -> None:
        self.builder = builder
        self.scope = scope
        self.now, self.start = scope.now, scope.start
        size = scope.now.sum(axis=1) + np.where(scope.elastic, scope.waiting, 0)
        self.upper: Ints = np.minimum(upper_bounds(scope.problem, scope.classes, scope.nodes, rules), size[:, None])
        self.index = np.full(self.upper.shape, NONE, dtype=np.int64)
        open_pairs = self.upper > 0
        self.index[open_pairs] = builder.counts(self.upper[open_pairs], scope.now[open_pairs])
        self.unplaced: list[int] = [NONE] * len(size)
        optional = scope.problem.optional[scope.classes].tolist()
        for r, (free, waiting, elastic) in enumerate(
            zip(size.tolist(), scope.waiting.tolist(), scope.elastic.tolist(), strict=True)
        ):
            if not free:
                continue
            row = self.index[r]
            variables = row[row >= 0].tolist()
            everyone = Linear(variables, [1] * len(variables))
            if elastic:
                self.unplaced[r] = builder.var(0, optional[r], waiting)
                everyone = everyone.plus(self.unplaced[r], 1)
            builder.equal(everyone, free)
        self._leaving: dict[tuple[int, int], int] = {}
        self._entering: dict[tuple[int, int], int] = {}

    @property
    def pairs(self) -> int:
        """How many pairs of class and node have a variable."""
        return int(np.count_nonzero(self.index >= 0))

    def on(self, rows: Ints, columns: Ints, weight: Ints | None = None) -> Linear:
        """Return the number of free pods of some classes on some nodes; each counts ``weight[row]``."""
        found = self.index[np.ix_(rows, columns)]
        there = found >= 0
        variables = found[there].tolist()
        if weight is None:
            return Linear(variables, [1] * len(variables))
        coeffs = np.broadcast_to(weight[rows][:, None], found.shape)[there]
        return Linear(variables, coeffs.tolist())

    def at(self, rows: Ints, column: int, weight: Ints | None = None) -> Linear:
        """Return the number of free pods of some classes on one node; each counts ``weight[row]``."""
        found = self.index[rows, column]
        there = found >= 0
        variables = found[there].tolist()
        return Linear(variables, [1] * len(variables) if weight is None else weight[rows[there]].tolist())

    def started(self) -> list[tuple[int, int]]:
        """Return the pairs of row and column where pods were at the start and may be."""
        rows, columns = np.nonzero((self.start > 0) & (self.index >= 0))
        return list(zip(rows.tolist(), columns.tolist(), strict=True))

    def leaving(self, r: int, j: int) -> int:
        """Return the variable that is at least the number of pods of a class that left a node."""
        if (r, j) not in self._leaving:
            start, y = int(self.start[r, j]), int(self.index[r, j])
            least = max(0, start - self.builder.upper[y])
            var = self.builder.var(least, start, max(0, start - int(self.now[r, j])))
            self.builder.at_least(Linear([var, y], [1, 1]), start)
            self._leaving[r, j] = var
        return self._leaving[r, j]

    def entering(self, r: int, j: int) -> int:
        """Return the variable for at least as many pods of a class as came to a node; `NONE` if none can."""
        y, start = int(self.index[r, j]), int(self.start[r, j])
        if not start:
            return y
        upper = self.builder.upper[y] - start
        if upper <= 0:
            return NONE
        if (r, j) not in self._entering:
            var = self.builder.var(0, upper, max(0, int(self.now[r, j]) - start))
            self.builder.at_least(Linear([var, y], [1, -1]), -start)
            self._entering[r, j] = var
        return self._entering[r, j]

    def placement(self, values: Ints) -> Placement:
        """Read a solution back."""
        return replaced(self.scope.incumbent, self.scope.free, self.table(values))

    def table(self, values: Ints) -> Ints:
        """``[row, column]`` the pods of a solution."""
        table = np.zeros(self.index.shape, dtype=np.int64)
        table[self.index >= 0] = values[self.index[self.index >= 0]]
        return table
