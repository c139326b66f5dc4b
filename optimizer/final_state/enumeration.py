"""All placements of a problem that has few of them: tiny clusters, and a move or two in small ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import MoveBudget, Placement, Problem

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
        self._limit = min((r.limit for r in problem.rules if isinstance(r, MoveBudget)), default=problem.pods)

    @cached_property
    def rows(self) -> list[list[tuple[int, Row]]] | None:
        """For each class, the ways to place its pods, each with the moves it takes; ``None`` if there are too many."""
        found = []
        for c in range(len(self._problem.classes)):
            ways = self._ways(c)
            if ways is None:
                return None
            found.append(ways)
        return found

    @property
    def few(self) -> bool:
        """Whether there are few enough placements to list them."""
        if self.rows is None:
            return False
        # Placements by the number of moves they take, class after class.
        number = np.zeros(self._limit + 1, dtype=np.float64)
        number[0] = 1
        for ways in self.rows:
            longer = np.zeros_like(number)
            for moves, _ in ways:
                longer[moves:] += number[: len(number) - moves]
            number = longer
            if number.sum() > self._most:
                return False
        return True

    def _ways(self, c: int) -> list[tuple[int, Row]] | None:
        """Step from the start, pod by pod."""
        problem, upper = self._problem, self._upper[c].tolist()
        home = self._start[c].tolist()
        size, optional = int(problem.size[c]), int(problem.optional[c])
        first = tuple(home)
        seen, queue = {first}, [first]
        while queue:
            row = queue.pop()
            for changed in _neighbors(row, size, optional, upper):
                if changed not in seen and _moves(home, changed) <= self._limit:
                    seen.add(changed)
                    queue.append(changed)
                    if len(seen) > self._most:
                        return None
        return [(_moves(home, row), row) for row in sorted(seen)]

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


def _neighbors(row: Row, size: int, optional: int, upper: list[int]) -> Iterator[Row]:
    """Yield what one pod that comes, goes, or changes its node makes of a row."""
    nodes = range(len(row))
    without = size - sum(row)
    for source in nodes:
        if row[source]:
            if without < optional:
                yield _changed(row, {source: -1})
            for target in nodes:
                if target != source and row[target] < upper[target]:
                    yield _changed(row, {source: -1, target: 1})
    if without:
        for target in nodes:
            if row[target] < upper[target]:
                yield _changed(row, {target: 1})


def _changed(row: Row, changes: dict[int, int]) -> Row:
    return tuple(pods + changes.get(n, 0) for n, pods in enumerate(row))


def _moves(home: list[int], row: Row) -> int:
    return sum(max(0, before - now) for before, now in zip(home, row, strict=True))
