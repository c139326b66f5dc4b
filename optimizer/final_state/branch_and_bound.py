"""Branch and bound for a tier with a cost of the final state, on small clusters: how many pods each node holds.

Most of the cost of a final state is a sum over nodes of the number of pods times the points that each of them misses.
With the numbers known, it is linear in where pods are, and what is left is a small linear program. So boxes of numbers
are halved, the one with the least bound first, until the product is exact; then what has to be whole is rounded up or
down; then pods. A box with a single placement is asked for its exact cost.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import Placement
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.final_state.bound import whole
from stowplan.optimizer.final_state.branching_program import COST, NEAR, BranchingProgram, Change
from stowplan.optimizer.final_state.safe_program import Ranges, Solution

DIVE = 0.25
"""How far above the least bound a part may be, as a share of what is left to the best value, to be divided at once."""

KEPT = 25_000_000
"""Numbers in the boxes that are kept, of 8 bytes each."""


@dataclass(frozen=True, slots=True, eq=False)
class _Box:
    """A part of the placements, by what its columns are cut to, with a lower bound and the solution that has it."""

    bound: int
    ranges: Ranges
    solution: Solution


class BranchAndBound:
    """Branch and bound on one tier.

    Parameters
    ----------
    program
        Of the tier.
    cost
        Returns the tier's value of a placement, or ``None`` if it is not legal or makes an earlier tier worse.
    value
        Value of the incumbent.
    step
        A number of which all values are multiples.

    Attributes
    ----------
    value, placement
        The best value, and a placement that has it if it is better than the incumbent.
    """

    def __init__(
        self, program: BranchingProgram, cost: Callable[[Placement], int | None], value: int, step: int
    ) -> None:
        self._program, self._cost, self._step = program, cost, step
        self.value = value
        self.placement: Placement | None = None
        self._open: list[tuple[int, int, _Box]] = []
        self._made = self._number = 0
        self._is_pod = program.is_pod
        self._asked: dict[bytes, int | None] = {}

    def run(self, deadline: Deadline, most: int | None = None) -> int:
        """Branch until time or memory is used up, or nothing is left, or so many boxes are made; return the bound."""
        seconds = None if deadline.deterministic else deadline.remaining
        root = self._solved(self._program.ranges(()), 0, seconds)
        if root is None:
            return 0  # the incumbent is no solution of the program: it cannot be trusted
        self._keep(root)
        fitting = KEPT // (4 * len(self._program.lower))
        while 0 < len(self._open) <= fitting and not deadline.over and (most is None or self._made < most):
            _, _, box = heapq.heappop(self._open)
            self._dive(box, deadline, most)
        return min((bound for bound, _, _ in self._open), default=self.value)

    def _dive(self, box: _Box | None, deadline: Deadline, most: int | None) -> None:
        """Divide a box, and go on with its best part as long as that is about as promising as any.

        Programs of boxes that are parts of each other differ little, and the next one is solved from the last.
        """
        least = box.bound if box else 0
        while box is not None and box.bound < self.value:
            ranges = self._program.tightened(box.ranges, box.solution, self.value)
            if ranges is None:
                return
            if deadline.over or (most is not None and self._made >= most):
                self._keep(box)
                return
            seconds = None if deadline.deterministic else deadline.remaining
            parts = []
            for change in self._halves(box.solution.columns, *ranges):
                part = self._solved(self._program.narrowed(ranges, change), box.bound, seconds)
                if part is not None:
                    parts.append(part)
            parts.sort(key=lambda part: part.bound)
            box = None
            if parts and parts[0].bound <= least + DIVE * (self.value - least):
                box, *parts = parts
            for part in parts:
                self._keep(part)

    def _solved(self, ranges: Ranges | None, least: int, seconds: float | None) -> _Box | None:
        """Return a box with the solution of its program, ``None`` if it is empty."""
        self._made += 1
        solution = None if ranges is None else self._program.solve(ranges, seconds)
        if solution is None or ranges is None:
            return None
        return _Box(max(least, whole(solution.bound, self.value, self._step)), ranges, solution)

    def _keep(self, box: _Box) -> None:
        """Keep a box for later if it may hold something better."""
        if box.bound < self.value:
            self._number += 1
            heapq.heappush(self._open, (box.bound, -self._number, box))

    def _halves(self, columns: Floats, lower: Floats, upper: Floats) -> Iterator[Change]:
        """Yield what a column is cut to in the parts that a box is divided into, by the solution that it has."""
        columns = np.clip(columns, lower, upper)
        gap = self._program.products(columns)
        if gap.max(initial=0.0) > NEAR * COST:
            for n in np.argsort(-gap, kind="stable").tolist():
                number = self._program.number[n]
                if lower[number] < upper[number]:
                    at = float(np.clip(math.floor(columns[number] + NEAR), lower[number], upper[number] - 1))
                    yield from ((number, lower[number], at), (number, at + 1, upper[number]))
                    return
        column, _ = self._program.rounded(columns)
        if column >= 0 and math.ceil(columns[column] - NEAR) - columns[column] > NEAR:
            yield from _rounded(column, columns, lower, upper)
            return
        yield from self._parts(columns, lower, upper)

    def _parts(self, columns: Floats, lower: Floats, upper: Floats) -> Iterator[Change]:
        """Divide by the pods of a class on a node; where all are whole, ask for the exact cost of the placement."""
        free = np.flatnonzero(self._is_pod & (lower < upper))
        apart = np.abs(columns - np.rint(columns))[free]
        if apart.max(initial=0.0) > NEAR:
            yield from _rounded(int(free[apart.argmax()]), columns, lower, upper)
            return
        self._ask(np.rint(self._program.placed(columns if len(free) else lower)).astype(np.int64))
        if not len(free):
            return
        column = int(free[0])
        at = float(round(columns[column]))
        for low, high in ((lower[column], at - 1), (at, at), (at + 1, upper[column])):
            if low <= high:
                yield column, low, high

    def _ask(self, pods: Ints) -> None:
        """Ask for the exact cost of a placement, and keep it if it is the best one."""
        key = pods.astype(np.int16).tobytes()
        if key not in self._asked:
            placement = Placement.from_table(pods)
            cost = self._asked[key] = self._cost(placement)
            if cost is not None and cost < self.value:
                self.value, self.placement = cost, placement


def _rounded(column: int, columns: Floats, lower: Floats, upper: Floats) -> tuple[Change, Change]:
    """Return what is left of a column below its value, and above it."""
    at = float(math.floor(columns[column]))
    return (column, lower[column], at), (column, at + 1, upper[column])
