"""All placements of a problem that has few of them: tiny clusters, and a move or two in small ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, islice

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement, Problem

Row = tuple[int, ...]


class Enumeration:
    """The placements of a problem that keep its numbers of pods, its limit on moves, and what nodes can hold.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    most
        Placements above which there are too many.
    """

    def __init__(self, problem: Problem, upper: Ints, most: int) -> None:
        self._problem, self._most = problem, most
        self._upper = np.minimum(upper, problem.size[:, None]).astype(np.int64)
        self._start = problem.start.table(*problem.shape)
        self._limit = problem.pods if problem.move_limit is None else problem.move_limit

    @cached_property
    def rows(self) -> list[list[tuple[int, Row]]] | None:
        """For each class, the ways to place its pods, each with the moves it takes; ``None`` if there are too many.

        Too many are there if the ways of the classes so far, taken together, are more placements than wanted.
        """
        if self._first_steps() > self._most:
            return None
        # Placements by the number of moves they take, class after class.
        number = np.zeros(self._limit + 1, dtype=np.float64)
        number[0] = 1
        found = []
        for c in range(len(self._problem.classes)):
            ways = list(islice(self._ways(c), self._most + 1))
            longer = np.zeros_like(number)
            for moves, _ in ways:
                longer[moves:] += number[: len(number) - moves]
            number = longer
            if number.sum() > self._most:
                return None
            found.append(ways)
        return found

    @property
    def few(self) -> bool:
        """Whether there are few enough placements to list them."""
        return self.rows is not None

    def _first_steps(self) -> int:
        """Count the placements that differ from the start by one pod, which moves or comes; there are no fewer."""
        sources, targets = self._start > 0, self._start < self._upper
        moving = sources.sum(axis=1) * targets.sum(axis=1) - (sources & targets).sum(axis=1)
        coming = np.where(self._start.sum(axis=1) < self._problem.size, targets.sum(axis=1), 0)
        return int(coming.sum()) + (int(moving.sum()) if self._limit else 0)

    def _ways(self, c: int) -> Iterator[tuple[int, Row]]:
        """Yield the rows of a class, each with its moves: pods leave some nodes, and others get pods."""
        home = self._start[c].tolist()
        size, least, held = (
            int(self._problem.size[c]),
            int(self._problem.size[c] - self._problem.optional[c]),
            sum(home),
        )
        room = np.maximum(0, self._upper[c] - self._start[c])
        for leaving in range(min(self._limit, held) + 1):
            for fewer in _spread(leaving, home):
                left = room.copy()
                left[[n for n, _ in fewer]] = 0
                for coming in range(max(0, least - held + leaving), size - held + leaving + 1):
                    for more in _spread(coming, left.tolist()):
                        row = home.copy()
                        for n, pods in fewer:
                            row[n] -= pods
                        for n, pods in more:
                            row[n] += pods
                        yield leaving, tuple(row)

    def placements(self) -> Iterator[Placement]:
        """Iterate over the placements."""
        rows = self.rows
        if rows is None:
            raise ValueError("there are too many placements")
        for table in self._tables(rows, 0, self._limit):
            yield Placement.from_table(np.array(table, dtype=np.int64).reshape(self._problem.shape))

    def _tables(self, rows: list[list[tuple[int, Row]]], c: int, left: int) -> Iterator[list[Row]]:
        if c == len(rows):
            yield []
            return
        for moves, row in rows[c]:
            if moves <= left:
                for following in self._tables(rows, c + 1, left - moves):
                    yield [row, *following]


def _spread(total: int, most: list[int]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the ways to take so many pods from nodes that have ``most`` each, as pairs of node and number."""
    room = [*accumulate(reversed(most), initial=0)][::-1]
    # A stack of the next node, of the pods still to take, and of those that are taken.
    stack: list[tuple[int, int, tuple[tuple[int, int], ...]]] = [(0, total, ())]
    while stack:
        first, left, taken = stack.pop()
        if not left:
            yield taken
            continue
        for n in range(first, len(most)):
            if room[n] < left:
                break
            for pods in range(max(1, left - room[n + 1]), min(most[n], left) + 1):
                stack.append((n + 1, left - pods, (*taken, (n, pods))))
