"""The decision variables: how many pods of each class stand on each node, how many nowhere, how many left."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from models.arrays import Ints
from models.problem import Allow, AtMost, Capacity, Devices, Distinct, Placement, Problem, Repel
from optimizer.cpsat.builder import Builder, Linear

NONE = -1


def most(problem: Problem) -> NDArray[np.int32]:
    """``[c, n]`` the most pods of each class that a node can hold by itself.

    Where a rule is exceeded at the start, what stands there may stay.
    """
    upper = np.repeat(problem.size.astype(np.int32)[:, None], len(problem.nodes), axis=1)

    def fit(room: Ints, demand: Ints) -> None:
        """Let classes fit only as often as their demand goes into the room."""
        for amount in np.unique(demand[demand > 0]).tolist():
            asking = np.flatnonzero(demand == amount)
            upper[asking] = np.minimum(upper[asking], np.minimum(np.maximum(0, room) // amount, problem.pods))

    for rule in problem.rules:
        match rule:
            case Allow():
                upper[~rule.mask[rule.row]] = 0
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
                for part in np.unique(rule.part[rule.part > 0]).tolist():
                    alike = np.where(rule.part == part, 1, 0)
                    fit(np.maximum(0, rule.count - rule.held_whole) * (rule.size // part), alike)
            case AtMost():
                inside = np.flatnonzero(rule.topology.domain >= 0)
                room = np.maximum(0, rule.limit - rule.held[rule.topology.domain[inside]])
                at = np.ix_(rule.group, inside)
                upper[at] = np.minimum(upper[at], room[None, :])
            case Repel():
                alone = np.intersect1d(rule.seekers, rule.targets)
                inside = np.flatnonzero(rule.topology.domain >= 0)
                upper[np.ix_(alone, inside)] = np.minimum(upper[np.ix_(alone, inside)], 1)
            case _:
                pass  # what other rules forbid depends on company, not on the node alone
    for c, n, k in problem.start.entries():
        upper[c, n] = max(upper[c, n], k)
    return upper


class Variables:
    """Variables of a model, and sums over them.

    Parameters
    ----------
    incumbent
        The placement that gives the hints.
    """

    def __init__(self, builder: Builder, problem: Problem, incumbent: Placement) -> None:
        self.builder = builder
        self.problem = problem
        classes, nodes = problem.shape
        self.now = incumbent.table(classes, nodes)
        self.start = problem.start.table(classes, nodes)
        self.index = np.full((classes, nodes), NONE, dtype=np.int64)
        upper = most(problem)
        for c, n in zip(*np.nonzero(upper), strict=True):
            self.index[c, n] = builder.var(0, int(upper[c, n]), int(self.now[c, n]))
        self.unplaced: list[int] = []
        for c in range(classes):
            missing = int(problem.size[c] - self.now[c].sum())
            self.unplaced.append(builder.var(0, int(problem.spare[c]), missing))
            everyone = self.on([c], range(nodes))
            everyone.add(self.unplaced[c])
            builder.equal(everyone, int(problem.size[c]))
        self._leaving: dict[tuple[int, int], int] = {}
        self._entering: dict[tuple[int, int], int] = {}

    def on(self, classes: Iterable[int], nodes: Iterable[int], weight: Ints | None = None) -> Linear:
        """Return the number of pods of some classes on some nodes; each counts ``weight[c]``."""
        rows, columns = np.array(list(classes), dtype=np.int64), np.array(list(nodes), dtype=np.int64)
        found = self.index[np.ix_(rows, columns)]
        there = found >= 0
        weights = np.ones(len(rows), dtype=np.int64) if weight is None else weight[rows]
        coeffs = np.broadcast_to(weights[:, None], found.shape)[there]
        return Linear(found[there].tolist(), coeffs.tolist())

    def started(self) -> Iterable[tuple[int, int]]:
        """Iterate over the (class, node) pairs where pods stood at the start."""
        return zip(self.problem.start.cls.tolist(), self.problem.start.node.tolist(), strict=True)

    def leaving(self, c: int, n: int) -> int:
        """Return the variable that is at least the number of pods of a class that left a node."""
        if (c, n) not in self._leaving:
            start = int(self.start[c, n])
            var = self.builder.var(0, start, max(0, start - int(self.now[c, n])))
            self.builder.at_least(Linear([var, int(self.index[c, n])], [1, 1]), start)
            self._leaving[c, n] = var
        return self._leaving[c, n]

    def entering(self, c: int, n: int) -> int:
        """Return the variable that is at least the number of pods of a class that came to a node."""
        y, start = int(self.index[c, n]), int(self.start[c, n])
        if not start:
            return y
        if (c, n) not in self._entering:
            upper = max(0, self.builder.upper[y] - start)
            var = self.builder.var(0, upper, max(0, int(self.now[c, n]) - start))
            self.builder.at_least(Linear([var, y], [1, -1]), -start)
            self._entering[c, n] = var
        return self._entering[c, n]

    def moves(self) -> Linear:
        """Return the number of pods that left their node."""
        return Linear([self.leaving(c, n) for c, n in self.started()], [1] * len(self.problem.start.cls))

    def placement(self, values: Ints) -> Placement:
        """Read a solution back."""
        y = np.where(self.index >= 0, values[self.index], 0)
        return Placement.from_table(y)
