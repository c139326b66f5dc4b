"""The free part of a placement, and the contribution of the frozen rest.

A model is built for some free classes on some free nodes. Pods elsewhere are frozen: for rules and terms they count
like pods outside the problem. The whole problem is the case in which everything is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import Placement, Problem, Topology
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.mentions import ranges


@dataclass(frozen=True, slots=True, eq=False)
class Free:
    """The part of a placement that may change: pods of some classes that are on some nodes, or unplaced.

    Parameters
    ----------
    nodes, classes
        Which, sorted.
    waiting
        The classes, sorted, whose number of unplaced pods may change. Of other classes it stays as it is.
    """

    nodes: Ints
    classes: Ints
    waiting: Ints

    @classmethod
    def everything(cls, problem: Problem) -> Free:
        """Return the whole problem as the free part."""
        classes, nodes = problem.shape
        every = np.arange(classes, dtype=np.int64)
        return cls(np.arange(nodes, dtype=np.int64), every, every)


class Scope:
    """Free and frozen parts of an incumbent.

    Rows and columns are positions in the free classes and the free nodes.

    Attributes
    ----------
    now, start
        ``[row, column]`` pods of the free classes on the free nodes, in the incumbent and at the start.
    waiting
        ``[row]`` pods that have no node in the incumbent.
    elastic
        ``[row]`` whether that number may change.
    frozen
        The rest of the incumbent.
    """

    def __init__(self, index: Index, incumbent: Placement, free: Free) -> None:
        self.index = index
        self.problem = problem = index.problem
        self.incumbent = incumbent
        self.free = free
        self.classes, self.nodes = free.classes, free.nodes
        classes, nodes = problem.shape
        self.row = _positions(free.classes, classes)
        self.column = _positions(free.nodes, nodes)
        self.now, inside = self._table(incumbent)
        self.start, _ = self._table(problem.start)
        self.frozen = incumbent.where(~inside)
        self.waiting: Ints = (problem.size - incumbent.placed(classes))[free.classes]
        self.elastic: Bools = np.isin(free.classes, free.waiting)

    def _table(self, placement: Placement) -> tuple[Ints, Bools]:
        rows, columns = self.row[placement.cls], self.column[placement.node]
        inside = (rows >= 0) & (columns >= 0)
        table = np.zeros((len(self.classes), len(self.nodes)), dtype=np.int64)
        table[rows[inside], columns[inside]] = placement.count[inside]
        return table, inside

    def rows(self, group: Ints) -> Ints:
        """Return the rows of the classes of a group that are free."""
        rows = self.row[group]
        return rows[rows >= 0]

    @cached_property
    def frozen_here(self) -> Placement:
        """Frozen pods on free nodes; there are some where only some classes are free."""
        return self.frozen.where(self.column[self.frozen.node] >= 0)

    @cached_property
    def frozen_arrived(self) -> Placement:
        """Frozen pods on any node that were not there at the start."""
        return self.frozen.beyond(self.problem.start, len(self.problem.nodes))

    @cached_property
    def frozen_new(self) -> Placement:
        """Frozen pods on free nodes that were not there at the start."""
        return self.frozen_here.beyond(self.problem.start, len(self.problem.nodes))

    def load(self, pods: Placement, weight: Ints | None = None) -> Ints:
        """``[column]`` the sum of ``weight[c]`` over pods that are on free nodes."""
        amount = pods.count if weight is None else pods.count * weight[pods.cls]
        total = np.zeros(len(self.nodes), dtype=np.int64)
        np.add.at(total, self.column[pods.node], amount)
        return total

    def frozen_of(self, group: Ints) -> tuple[Ints, Ints]:
        """Return nodes and numbers of the frozen pods of a group."""
        first = self._frozen_first
        if len(group) == 1:
            c = int(group[0])
            return self.frozen.node[first[c] : first[c + 1]], self.frozen.count[first[c] : first[c + 1]]
        at = ranges(first[group], first[group + 1])
        return self.frozen.node[at], self.frozen.count[at]

    def frozen_on(self, group: Ints) -> Ints:
        """``[n]`` frozen pods of a group."""
        total = np.zeros(len(self.problem.nodes), dtype=np.int64)
        if len(group):
            nodes, count = self.frozen_of(group)
            np.add.at(total, nodes, count)
        return total

    def frozen_in(self, topology: Topology, group: Ints) -> Ints:
        """``[d]`` frozen pods of a group."""
        total = np.zeros(topology.size, dtype=np.int64)
        if len(group):
            nodes, count = self.frozen_of(group)
            domain = topology.domain[nodes]
            np.add.at(total, domain[domain >= 0], count[domain >= 0])
        return total

    @cached_property
    def _frozen_first(self) -> Ints:
        """``[c + 1]`` where the entries of each class begin in the frozen part."""
        return np.searchsorted(self.frozen.cls, np.arange(len(self.problem.classes) + 1))

    def domains(self, topology: Topology) -> list[tuple[int, Ints]]:
        """Return each domain that has free nodes, with their columns."""
        found = self._domains.get(id(topology))
        if found is None:
            domain = topology.domain[self.nodes]
            order = np.argsort(domain, kind="stable")
            order = order[domain[order] >= 0]
            names, first = np.unique(domain[order], return_index=True)
            found = list(zip(names.tolist(), np.split(order, first[1:]), strict=True)) if len(names) else []
            self._domains[id(topology)] = found
        return found

    @cached_property
    def _domains(self) -> dict[int, list[tuple[int, Ints]]]:
        return {}


def replaced(placement: Placement, free: Free, table: Ints) -> Placement:
    """Return a placement with other pods in its free part.

    Parameters
    ----------
    table
        ``[row, column]`` pods of the free classes on the free nodes.
    """
    classes = int(max(placement.cls.max(initial=-1), free.classes.max(initial=-1))) + 1
    nodes = int(max(placement.node.max(initial=-1), free.nodes.max(initial=-1))) + 1
    row, column = _positions(free.classes, classes), _positions(free.nodes, nodes)
    rest = placement.where((row[placement.cls] < 0) | (column[placement.node] < 0))
    rows, columns = np.nonzero(table)
    cls = np.concatenate([rest.cls, free.classes[rows]])
    node = np.concatenate([rest.node, free.nodes[columns]])
    count = np.concatenate([rest.count, table[rows, columns]])
    order = np.lexsort((node, cls))
    return Placement(cls[order], node[order], count[order])


def _positions(chosen: Ints, size: int) -> Ints:
    """``[size]`` the position of each index among those chosen, or -1."""
    position = np.full(size, -1, dtype=np.int64)
    position[chosen] = np.arange(len(chosen))
    return position
