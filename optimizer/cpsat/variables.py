"""The decision variables: how many free pods of each class stand on each node, how many nowhere, how many left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from models.arrays import Ints
from models.problem import Allow, AtMost, Capacity, Devices, Distinct, Placement, Problem, Repel, Rule
from optimizer.cpsat.builder import Builder, Linear
from optimizer.cpsat.scope import Scope, replaced

NONE = -1

ROWS_AT_ONCE = 4096
"""Rows of a table that are computed together, so that temporary tables stay small."""


def most(
    problem: Problem,
    classes: Ints | None = None,
    nodes: Ints | None = None,
    rules: Iterable[Rule] | None = None,
) -> NDArray[np.int32]:
    """``[class, node]`` the most pods of each class that a node can hold by itself.

    Where a rule is exceeded at the start, what stands there may stay.

    Parameters
    ----------
    classes, nodes
        Those to tell it for, sorted; all of them if not given.
    rules
        Those that name any of the classes; all of them if not given.
    """
    classes = np.arange(len(problem.classes), dtype=np.int64) if classes is None else classes
    nodes = np.arange(len(problem.nodes), dtype=np.int64) if nodes is None else nodes
    row = np.full(len(problem.classes), NONE, dtype=np.int64)
    row[classes] = np.arange(len(classes))
    upper = np.repeat(problem.size[classes].astype(np.int32)[:, None], len(nodes), axis=1)
    every = problem.pods

    def fit(room: Ints, demand: Ints) -> None:
        """Let classes fit only as often as their demand goes into the room."""
        asking = np.flatnonzero(demand[classes] > 0)
        amount, which = np.unique(demand[classes[asking]], return_inverse=True)
        times = np.minimum(np.maximum(0, room[nodes]) // amount[:, None], every).astype(np.int32)
        for some in np.split(np.arange(len(asking)), range(ROWS_AT_ONCE, len(asking), ROWS_AT_ONCE)):
            upper[asking[some]] = np.minimum(upper[asking[some]], times[which[some]])

    for rule in problem.rules if rules is None else rules:
        match rule:
            case Allow():
                upper[~rule.mask[np.ix_(rule.row[classes], nodes)]] = 0
            case Capacity():
                # Who asks for less than nothing may make room, all of them on one node at most.
                made = int((np.maximum(0, -rule.demand) * problem.size).sum())
                fit(np.maximum(0, rule.free) + made, rule.demand)
            case Distinct():
                fit(rule.limit, rule.own)
            case Devices():
                # Whole devices cannot be shared; shares have to fit the room that is left, and a device at a time.
                fit(rule.count - rule.held_whole, rule.whole)
                for _, demand, free in rule.sums:
                    fit(free, demand)
                for part in np.unique(rule.part[classes][rule.part[classes] > 0]).tolist():
                    alike = np.where(rule.part == part, 1, 0)
                    fit(np.maximum(0, rule.count - rule.held_whole) * (rule.size // part), alike)
            case AtMost():
                inside = np.flatnonzero(rule.topology.domain[nodes] >= 0)
                room = np.maximum(0, rule.limit - rule.held[rule.topology.domain[nodes[inside]]])
                _lower(upper, row[rule.group], inside, room)
            case Repel():
                inside = np.flatnonzero(rule.topology.domain[nodes] >= 0)
                _lower(upper, row[np.intersect1d(rule.seekers, rule.targets)], inside, np.ones(len(inside)))
            case _:
                pass  # what other rules forbid depends on company, not on the node alone
    start = problem.start
    column = np.full(len(problem.nodes), NONE, dtype=np.int64)
    column[nodes] = np.arange(len(nodes))
    here = (row[start.cls] >= 0) & (column[start.node] >= 0)
    at = row[start.cls[here]], column[start.node[here]]
    upper[at] = np.maximum(upper[at], start.count[here])
    return upper


def _lower(upper: NDArray[np.int32], rows: Ints, columns: Ints, room: NDArray[np.generic]) -> None:
    at = np.ix_(rows[rows >= 0], columns)
    upper[at] = np.minimum(upper[at], room[None, :])


class Variables:
    """Variables of a model, and sums over them; by row and column of the scope.

    Attributes
    ----------
    upper
        ``[row, column]`` the most free pods of a class that the node can hold.
    index
        ``[row, column]`` the variable that counts the pods of a class on a node, or `NONE`.
    unplaced
        ``[row]`` the variable that counts the pods without a node, or `NONE` where their number is settled.
    """

    def __init__(self, builder: Builder, scope: Scope, rules: Sequence[Rule]) -> None:
        self.builder = builder
        self.scope = scope
        self.now, self.start = scope.now, scope.start
        size = scope.now.sum(axis=1) + np.where(scope.elastic, scope.waiting, 0)
        self.upper: Ints = np.minimum(most(scope.problem, scope.classes, scope.nodes, rules), size[:, None])
        self.index = np.full(self.upper.shape, NONE, dtype=np.int64)
        open_pairs = self.upper > 0
        self.index[open_pairs] = builder.counts(self.upper[open_pairs], scope.now[open_pairs])
        self.unplaced: list[int] = [NONE] * len(size)
        spare = scope.problem.spare[scope.classes].tolist()
        for r, (free, waiting, elastic) in enumerate(
            zip(size.tolist(), scope.waiting.tolist(), scope.elastic.tolist(), strict=True)
        ):
            if not free:
                continue
            row = self.index[r]
            variables = row[row >= 0].tolist()
            everyone = Linear(variables, [1] * len(variables))
            if elastic:
                self.unplaced[r] = builder.var(0, spare[r], waiting)
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
        """Return the pairs of row and column where pods stood at the start and may stand."""
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
