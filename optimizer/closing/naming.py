"""Which nodes shall be closed next, and how many at once: those that take least of what there is, as many as may work.

A node takes room, of what all pods leave, and where moves are limited, those of the pods that started on it.
"""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import Capacity, Problem
from stowplan.optimizer.closing.parameters import ClosingParameters


class Naming:
    """Names nodes, and learns from what became of those that it named.

    Parameters
    ----------
    saved
        ``[n]`` what a tier saves if the pods of the problem leave a node.

    Attributes
    ----------
    size
        ``[c]`` what each pod counts on a node that shall be closed, at least 2.
    moves
        ``[n]`` pods that started on each node.
    """

    def __init__(self, problem: Problem, saved: Ints, parameters: ClosingParameters) -> None:
        self.problem, self.saved, self.parameters = problem, saved, parameters
        worth, self.size, slack = _worths(problem, parameters)
        self.worth = worth / slack if slack > 0 else worth
        self.moves = problem.start.per_node(len(problem.nodes))
        self.failed = np.zeros(len(problem.nodes), dtype=np.int64)
        self.price, self.number, self.too_many = 1.0, len(saved), len(saved) + 1

    def next(self, in_use: Bools, most: int) -> Ints | None:
        """Return the nodes to close: as many as are empty, and at most so many more; ``None`` if all was tried."""
        order = self._order()
        empty = int((self.saved[~in_use] > 0).sum())
        while len(order) <= empty:
            # The moves end before one more node is named than is empty: cheaper ones to leave, or those that failed.
            if self.price < self.parameters.dearest_move:
                self.price *= 2
            elif self.failed.any():
                self.price, self.failed = 1.0, self.failed // 2
            else:
                return None
            order = self._order()
        self.number = max(1, min(self.number, most, self.too_many - empty - 1))
        named = order[: empty + self.number]
        return None if self.number == 1 and self.failed[named[-1]] > 1 else named

    def learn(self, named: Ints, stuck: Ints) -> None:
        """Take notice of which of the named nodes could not be emptied."""
        if not len(stuck):
            self.number *= 2
            return
        few = len(stuck) <= self.parameters.few_stuck * self.number
        if few or self.number == 1:
            self.failed[stuck if few else named[-1:]] += 1
            self.too_many = len(self.saved) + 1  # others come first from now on
        else:
            self.too_many = len(named)
        self.number = max(1, self.number - len(stuck) if few else self.number // 2)

    def _order(self) -> Ints:
        """Return nodes that cost something, those first that were tried least and take least for what they cost.

        A node takes of the room that all pods leave, and of the moves that there may be, its share of each; moves at a
        price. Whether nodes are empty is of no account: what was emptied before may be of more use than what was not.
        Nodes behind those whose pods are all the moves that there may be are left out.
        """
        nodes = np.flatnonzero(self.saved > 0)
        takes, limit = self.worth, self.problem.move_limit
        if limit is not None:
            takes = takes + self.price * self.moves / max(1, limit)
        order: Ints = nodes[np.lexsort((nodes, takes[nodes] / self.saved[nodes], self.failed[nodes]))]
        return order if limit is None else order[np.cumsum(self.moves[order]) <= limit]


def _worths(problem: Problem, parameters: ClosingParameters) -> tuple[Floats, Ints, float]:
    """Return ``[n]`` room of each node, ``[c]`` what each pod takes, in units of what is scarce, and room that is left.

    A capacity counts by the share of it that pods ask for, to the power of `ClosingParameters.scarcity`.
    """
    worth = np.zeros(len(problem.nodes))
    size = np.zeros(len(problem.classes))
    slack = 0.0
    for rule in problem.rules:
        if isinstance(rule, Capacity):
            room = np.maximum(0, rule.free)
            asked = float(np.abs(rule.demand) @ problem.size)
            whole = float(room.sum())
            if asked <= 0 or whole <= 0:
                continue
            scarce = (asked / whole) ** parameters.scarcity
            worth += scarce * room / whole
            slack += scarce * (1 - asked / whole)
            size += scarce * np.abs(rule.demand) / asked
    mean = float(size @ problem.size) / max(1, problem.pods)
    wholes = np.ceil(parameters.unit * size / mean) if mean > 0 else np.ones(len(size))
    return worth, np.maximum(2, wholes).astype(np.int64), slack
