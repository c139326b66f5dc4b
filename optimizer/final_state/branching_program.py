"""The linear program of a box: the least cost of a final state, with the numbers of pods on nodes within ranges.

    min Σ table·y + Σ missing·u + Σ move·gone + Σ cost_j·z_j + Σ cost_q·w_{q,n} + Σ v_{t,n}
    Σ_n y_{c,n} + u_c = size_c                          for every class
    gone_{c,n} + y_{c,n} ≥ start_{c,n}                  where pods of a class start;   Σ gone ≤ limit
    Σ_c demand_{r,c}·y_{c,n} ≤ free_{r,n}               for every capacity
    k_n = Σ_c y_{c,n}
    p_{q,i,n} ≥ each line of the piece                  what pods miss by the load of the node
    m_{q,n} ≥ rest_{q,n} + Σ_i share_{q,i,n}·p_{q,i,n}
    w_{q,n} ≥ k⁻·m + m⁻·k − k⁻·m⁻                       below w = k·m, for k⁻ ≤ k_n ≤ k⁺ and m⁻ ≤ m_{q,n} ≤ m⁺
    w_{q,n} ≥ k⁺·m + m⁺·k − k⁺·m⁺
    y_{c,n} = Σ_j pods_{j,c,n}·z_j,  Σ_j z_j = 1        for every group of classes that is listed
    v_{t,n} ≥ tangents of the curve at the load         added where a solution is below the curve

The two rows of ``w`` are the convex envelope of the product (G. P. McCormick, "Computability of global solutions to
factorable nonconvex programs", 1976), and exact where ``k`` is at an end of its range. Costs are in shares of the
incumbent's. Duals of the program give a bound that holds whatever its precision: rows times duals, and for every
column the cheaper end of its range. So does a ray of duals that proves a box empty; without one, it is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import Detail, NodeCurve, NodePoints, Problem, Tier
from stowplan.optimizer.final_state.pod_costs import PodCosts, convex_curves, pod_costs, rooms
from stowplan.optimizer.final_state.safe_program import Ranges, SafeProgram, Solution

COST = 1000.0
"""What the incumbent costs in the program."""

NEAR = 1e-6
"""How far a number may be from a whole one to count as such."""

APART = 1e-9
"""Share by which ranges of what is not rounded are widened: the same sum in another order may differ."""


Change = tuple[int, float, float]
"""A column, and the range that it is cut to."""


@dataclass(slots=True, eq=False)
class _Product:
    """Columns of one `NodePoints` on one node.

    Parameters
    ----------
    lines
        Of each piece, constant, and least and greatest sums of the largest or smallest ``0, 1, …`` pods.
    rows
        The two rows of the envelope.
    """

    points: NodePoints
    node: int
    pieces: list[int]
    m: int
    w: int
    rows: tuple[int, int]
    lines: list[list[tuple[float, Floats, Floats]]]


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """A curve's column on one node, in shares of `COST`, and the pieces whose tangents the program has."""

    term: NodeCurve
    weight: int
    node: int
    column: int
    known: set[int]


class BranchingProgram:
    """The program of a tier, solved for one box after the other.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    waiting
        ``[c]`` the most pods of each class that may have no node.
    value
        Cost of the incumbent.

    Attributes
    ----------
    lower, upper
        ``[j]`` ranges of the columns, before any branching.
    pods
        ``[c, n]`` the column that counts the pods of a class on a node, -1 where none can be.
    number
        ``[n]`` the column that counts the pods on a node.
    """

    def __init__(
        self, problem: Problem, tier: Tier, details: Sequence[Detail], upper: Ints, waiting: Ints, value: int
    ) -> None:
        self._problem, self._scale = problem, COST / max(1, value)
        _, self._nodes = problem.shape
        self._most = np.minimum(upper, problem.size[:, None])
        self._program = SafeProgram(self._scale)
        self.pods = np.full(problem.shape, -1, dtype=np.int64)
        costs = pod_costs(problem, tier, details)
        self._place(costs, waiting)
        self._move(costs)
        self._limit_loads()
        self.number = [self._count(n) for n in range(self._nodes)]
        for detail in details:
            self._list(detail)
        self._products = [
            self._score(detail.points, n) for detail in details if detail.points for n in range(self._nodes)
        ]
        self._curves = [
            self._bend(weight, term, n)
            for weight, term in convex_curves(tier)
            for n in np.flatnonzero(term.curve >= 0).tolist()
        ]
        self._set_up()

    # -- columns and rows -----------------------------------------------------------------------------------------

    def _here(self, n: int) -> tuple[list[int], list[int]]:
        """Return the classes that may be on a node, and their columns."""
        classes = np.flatnonzero(self.pods[:, n] >= 0)
        return classes.tolist(), self.pods[classes, n].tolist()

    def _place(self, costs: PodCosts, waiting: Ints) -> None:
        for c, n in np.argwhere(self._most > 0).tolist():
            self.pods[c, n] = self._program.column(float(costs.table[c, n]), 0.0, float(self._most[c, n]))
        for c, size in enumerate(self._problem.size.tolist()):
            columns = self.pods[c][self.pods[c] >= 0].tolist()
            if waiting[c]:
                columns.append(self._program.column(float(costs.missing[c]), 0.0, float(waiting[c])))
            self._program.row(size, size, columns, [1.0] * len(columns))

    def _move(self, costs: PodCosts) -> None:
        start, limit = self._problem.start.table(*self._problem.shape), self._problem.move_limit
        gone = []
        for c, n in np.argwhere((start > 0) & (self.pods >= 0)).tolist():
            gone.append(self._program.column(float(costs.move[c]), 0.0, float(start[c, n])))
            self._program.row(float(start[c, n]), math.inf, [gone[-1], int(self.pods[c, n])], [1.0, 1.0])
        if limit is not None and gone:
            # Pods on nodes where they cannot stay leave in any case.
            self._program.row(-math.inf, float(limit - start[self.pods < 0].sum()), gone, [1.0] * len(gone))

    def _limit_loads(self) -> None:
        for demand, room in rooms(self._problem):
            for n in range(self._nodes):
                classes, columns = self._here(n)
                if demand[classes].any():
                    self._program.row(-math.inf, float(room[n]), columns, demand[classes])

    def _count(self, n: int) -> int:
        _, columns = self._here(n)
        number = self._program.column(0.0, 0.0, float(self._most[:, n].sum()))
        self._program.row(0.0, 0.0, [number, *columns], [-1.0] + [1.0] * len(columns))
        return number

    def _list(self, detail: Detail) -> None:
        """Add the ways to place the pods of listed groups."""
        for group in detail.workloads:
            ways = [self._program.column(float(cost), 0.0, 1.0) for cost in group.cost]
            self._program.row(1.0, 1.0, ways, [1.0] * len(ways))
            for g, c in enumerate(group.classes.tolist()):
                for n in np.flatnonzero(self.pods[c] >= 0).tolist():
                    self._program.row(0.0, 0.0, [int(self.pods[c, n]), *ways], [-1.0, *group.pods[:, g, n].tolist()])

    def _score(self, points: NodePoints, n: int) -> _Product:
        classes, columns = self._here(n)
        copies = self._most[classes, n]
        pieces, lines = [], []
        for piece in points.pieces:
            known = []
            for line in piece:
                each = np.sort(np.repeat(line.per_pod[classes, n], copies))
                least, most = (np.concatenate([[0.0], np.cumsum(some)]) for some in (each, each[::-1]))
                known.append((float(line.constant[n]), least, most))
            lines.append(known)
            pieces.append(self._program.column(0.0, *_extent(known, 0, len(each), points.whole)))
            for line in piece:
                amounts = [1.0, *(-line.per_pod[classes, n])]
                self._program.row(float(line.constant[n]), math.inf, [pieces[-1], *columns], amounts)
        low, high = self._mean(points, n, [self._program.range_of(p) for p in pieces])
        m = self._program.column(0.0, low, high)
        self._program.row(float(points.rest[n]), math.inf, [m, *pieces], [1.0, *(-points.share[:, n])])
        all_of_them = float(copies.sum())
        w = self._program.column(points.cost, min(0.0, all_of_them * low), max(0.0, all_of_them * high))
        rows = tuple(self._program.row(-math.inf, math.inf, [w, m, self.number[n]], [1.0, 1.0, 1.0]) for _ in range(2))
        return _Product(points, n, pieces, m, w, (rows[0], rows[1]), lines)

    @staticmethod
    def _mean(points: NodePoints, n: int, ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """Return the range of ``m`` where pieces have ranges."""
        low, high = (
            float(points.rest[n])
            + sum(s * ends[i] for s, ends in zip(points.share[:, n].tolist(), ranges, strict=True))
            for i in (0, 1)
        )
        return (math.ceil(low - NEAR), math.ceil(high)) if points.whole else (low, high)

    def _bend(self, weight: int, term: NodeCurve, n: int) -> _Curve:
        curves, k, held = term.curves, int(term.curve[n]), int(term.held[n])
        classes, _ = self._here(n)
        each = term.demand[classes] * self._most[classes, n]
        reach = np.array([held + int(np.minimum(0, each).sum()), held + int(np.maximum(0, each).sum())])
        corners = curves.start[k][(curves.start[k] > reach[0]) & (curves.start[k] < reach[1])]
        values = weight * curves.at(np.full(len(corners) + 2, k), np.concatenate([reach, corners])) * self._scale
        column = self._program.column(1.0 / self._scale, float(values.min()), float(values.max()))
        return _Curve(term, weight, n, column, set())

    # -- solving --------------------------------------------------------------------------------------------------

    def _set_up(self) -> None:
        self.lower, self.upper = self._program.begin()
        self._reading: dict[int, list[_Product]] = {}
        for product in self._products:
            for column in (self.number[product.node], product.m, *product.pieces):
                self._reading.setdefault(column, []).append(product)
        self._loads = np.zeros((len(self._curves), len(self.lower)))
        for load, curve in zip(self._loads, self._curves, strict=True):
            classes, pods = self._here(curve.node)
            load[pods] = curve.term.demand[classes]
        self._held = np.array([float(curve.term.held[curve.node]) for curve in self._curves])
        self._shown: list[tuple[float, float, float, float] | None] = [None] * len(self._products)

    def ranges(self, changes: Sequence[Change]) -> Ranges | None:
        """Return the ranges of the columns in a box, or ``None`` if one is empty.

        Parameters
        ----------
        changes
            Columns with what their ranges are cut to.
        """
        every = self.lower.copy(), self.upper.copy()
        return self._cut(*every, changes, self._products)

    def narrowed(self, ranges: Ranges, change: Change) -> Ranges | None:
        """Return the same for a part of a box of which the ranges are known."""
        return self._cut(ranges[0].copy(), ranges[1].copy(), [change], self._reading.get(change[0], ()))

    def _cut(
        self, lower: Floats, upper: Floats, changes: Sequence[Change], products: Sequence[_Product]
    ) -> Ranges | None:
        for column, low, high in changes:
            lower[column], upper[column] = max(lower[column], low), min(upper[column], high)
        for product in products:
            least, most = (int(ends[self.number[product.node]]) for ends in (lower, upper))
            if least > most:
                return None
            for p, lines in zip(product.pieces, product.lines, strict=True):
                low, high = _extent(lines, least, most, product.points.whole)
                lower[p], upper[p] = max(lower[p], low), min(upper[p], high)
            ends = [(float(lower[p]), float(upper[p])) for p in product.pieces]
            low, high = self._mean(product.points, product.node, ends)
            lower[product.m], upper[product.m] = max(lower[product.m], low), min(upper[product.m], high)
        return None if bool((lower > upper).any()) else (lower, upper)

    def tightened(self, ranges: Ranges, solution: Solution, value: int) -> Ranges | None:
        """Return the ranges of a box without what would cost as much as a value, by reduced costs.

        A column that costs ``r`` more a unit can be ``(value - bound) / r`` units away from its cheaper end.
        """
        lower, upper = ranges[0].copy(), ranges[1].copy()
        if not math.isfinite(solution.bound):
            return lower, upper
        left = max(0.0, value - solution.bound)
        pods = self.pods[self.pods >= 0]
        r = solution.reduced[pods]
        reach = np.floor(left / np.maximum(np.abs(r), 1e-9) + NEAR)
        upper[pods] = np.where(r > 0, np.minimum(upper[pods], lower[pods] + reach), upper[pods])
        lower[pods] = np.where(r < 0, np.maximum(lower[pods], ranges[1][pods] - reach), lower[pods])
        for n, number in enumerate(self.number):
            _, columns = self._here(n)
            lower[number] = max(lower[number], lower[columns].sum())
            upper[number] = min(upper[number], upper[columns].sum())
        return self._cut(lower, upper, (), self._products)

    def solve(self, ranges: Ranges, seconds: float | None = None) -> Solution | None:
        """Solve the program of a box; ``None`` if it is empty.

        Parameters
        ----------
        seconds
            Time after which whatever is known is returned, at worst that nothing is.
        """
        self._envelop(*ranges)
        while True:
            found = self._program.solve(ranges, seconds)
            if found is None or not math.isfinite(found.bound) or not self._add_tangents(found.columns):
                return found

    def _envelop(self, lower: Floats, upper: Floats) -> None:
        """Set the rows below products to the ranges of their factors."""
        for i, product in enumerate(self._products):
            number, m = self.number[product.node], product.m
            ends = float(lower[number]), float(upper[number]), float(lower[m]), float(upper[m])
            if self._shown[i] == ends:
                continue
            self._shown[i] = ends
            for row, k, other in zip(product.rows, ends[:2], ends[2:], strict=True):
                self._program.change_row(row, {m: -k, number: -other}, -k * other)

    def _add_tangents(self, columns: Floats) -> bool:
        """Add the tangents of curves that a solution is below; return whether there are any."""
        rows = []
        for i, (curve, load) in enumerate(
            zip(self._curves, (self._held + self._loads @ columns).tolist(), strict=True)
        ):
            curves, k = curve.term.curves, int(curve.term.curve[curve.node])
            piece = max(0, int(np.searchsorted(curves.start[k], load + NEAR, side="right")) - 1)
            if piece in curve.known:
                continue
            steep, there = (curve.weight * self._scale * int(part[k, piece]) for part in (curves.slope, curves.value))
            if there + steep * (load - int(curves.start[k, piece])) > columns[curve.column]:
                curve.known.add(piece)
                row = -steep * self._loads[i]
                row[curve.column] = 1.0
                rows.append((row, there + steep * (float(self._held[i]) - int(curves.start[k, piece]))))
        self._program.add_rows(rows)
        return bool(rows)

    # -- what is left to decide -----------------------------------------------------------------------------------

    def products(self, columns: Floats) -> Floats:
        """``[n]`` what the program underrates the products of a node, in shares of `COST`."""
        gap = np.zeros(self._nodes)
        for product in self._products:
            exact = columns[self.number[product.node]] * columns[product.m]
            gap[product.node] += max(0.0, exact - columns[product.w]) * product.points.cost * self._scale
        return gap

    def rounded(self, columns: Floats) -> tuple[int, float]:
        """Return the column that is to be whole, and is not, with the most at stake, and what that is."""
        best = (-1, 0.0)
        for product in self._products:
            if not product.points.whole:
                continue
            pods = columns[self.number[product.node]] * product.points.cost * self._scale
            shares = product.points.share[:, product.node].tolist()
            for column, share in ((product.m, 1.0), *zip(product.pieces, shares, strict=True)):
                lacks = math.ceil(columns[column] - NEAR) - columns[column]
                best = max(best, (column, float(lacks * pods * share)), key=lambda one: one[1])
        return best

    def placed(self, columns: Floats) -> Floats:
        """``[c, n]`` pods of a solution."""
        found = np.zeros(self._problem.shape)
        there = self.pods >= 0
        found[there] = columns[self.pods[there]]
        return found

    @property
    def is_pod(self) -> Bools:
        """``[j]`` whether a column counts pods of a class on a node."""
        found = np.zeros(len(self.lower), dtype=np.bool_)
        found[self.pods[self.pods >= 0]] = True
        return found


def _extent(lines: Sequence[tuple[float, Floats, Floats]], least: int, most: int, whole: bool) -> tuple[float, float]:
    """Return the range of the highest of some lines for a number of pods in a range."""
    low = max(constant + float(some[least : most + 1].min()) for constant, some, _ in lines)
    high = max(constant + float(some[least : most + 1].max()) for constant, _, some in lines)
    if whole:
        return max(0, math.ceil(low - NEAR)), max(0, math.ceil(high))
    apart = APART * max(1.0, abs(low), abs(high))
    return low - apart, high + apart
