"""The restricted master: a linear program over the patterns found so far."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Floats, Ints
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.parameters import ColumnGenerationParameters
from stowplan.optimizer.column_generation.structure import Structure
from stowplan.optimizer.highs import limit_time, linear_program

INFINITE = highspy.kHighsInf


class PatternPool:
    """Patterns found so far, without repetition.

    Attributes
    ----------
    pattern, group
        ``[p, k]`` pods of each kind, and ``[p]`` the group of nodes the pattern fits on.
    """

    def __init__(self, structure: Structure) -> None:
        self._pattern = np.zeros((256, structure.kinds), dtype=np.int16)
        self._group = np.zeros(256, dtype=np.int64)
        self._known: dict[tuple[int, bytes], int] = {}
        self.size = 0

    @property
    def pattern(self) -> NDArray[np.int16]:
        """``[p, k]`` pods of each kind."""
        return self._pattern[: self.size]

    @property
    def group(self) -> Ints:
        """``[p]`` the group of nodes each pattern fits on."""
        return self._group[: self.size]

    def add(self, group: int, patterns: NDArray[np.int16]) -> int:
        """Add patterns of a group, all but known and empty ones; return how many are new."""
        before = self.size
        for row in patterns:
            key = (group, row.tobytes())
            if key in self._known or not row.any():
                continue
            self._known[key] = self.size
            if self.size == len(self._group):
                self._pattern = np.concatenate([self._pattern, np.zeros_like(self._pattern)])
                self._group = np.concatenate([self._group, np.zeros_like(self._group)])
            self._pattern[self.size], self._group[self.size] = row, group
            self.size += 1
        return self.size - before

    def indices(self, group: int, patterns: NDArray[np.int16]) -> Ints:
        """``[i]`` where in the pool patterns are that were added before, empty ones left out."""
        return np.array([self._known[group, row.tobytes()] for row in patterns if row.any()], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Duals:
    """Dual prices: ``cover[k]`` of a pod of each kind, ``tier[s]`` of a unit of each earlier tier; none is negative."""

    cover: Floats
    tier: Floats

    def toward(self, other: Duals, share: float) -> Duals:
        """Return a convex combination of these duals and others."""
        return Duals(
            (1 - share) * self.cover + share * other.cover,
            (1 - share) * self.tier + share * other.tier,
        )


@dataclass(frozen=True, slots=True, eq=False)
class MasterSolution:
    """An optimal solution of the restricted master.

    Parameters
    ----------
    value
        Without the tier's constant.
    count
        ``[p]`` how often each pattern is used.
    duals, node
        Its duals; ``[g]`` that of a node.
    """

    value: float
    count: Floats
    duals: Duals
    node: Floats


class RestrictedMaster:
    """Minimizes one tier over the patterns of a pool, with earlier tiers held at their values.

    Rows are the kinds (every pod has a node or is without one), the groups (no more patterns than nodes) and the
    earlier tiers. Columns are the pods without a node, then the patterns.
    """

    def __init__(
        self,
        structure: Structure,
        tier: int,
        reached: tuple[int, ...],
        pool: PatternPool,
        parameters: ColumnGenerationParameters,
    ) -> None:
        self.parameters = parameters
        self.structure = s = structure
        self.tier = tier
        self.pool = pool
        self.limits = np.array(reached, dtype=np.int64) - s.constant[:tier]
        self._taken = 0
        self._lp = lp = linear_program()
        lp.setOptionValue("presolve", "off")
        lp.setOptionValue("simplex_strategy", 4)  # new columns leave the last basis primal feasible
        kinds, groups = s.kinds, s.groups
        self._rows = rows = kinds + groups + tier
        lower = np.concatenate([s.size * 1.0, np.full(groups + tier, -INFINITE)])
        upper = np.concatenate([np.full(kinds, INFINITE), s.nodes * 1.0, self.limits * 1.0])
        empty = np.zeros(0, dtype=np.int32)
        lp.addRows(rows, lower, upper, 0, empty, empty, np.zeros(0))
        for k in range(kinds):
            tiers = np.flatnonzero(s.missing[:tier, k])
            index = np.concatenate([[k], kinds + groups + tiers]).astype(np.int32)
            amount = np.concatenate([[1.0], s.missing[tiers, k]])
            lp.addCol(float(s.missing[tier, k]), 0.0, float(s.optional[k]), len(index), index, amount)

    def solve(self, budget: Budget) -> MasterSolution | None:
        """Solve over all patterns of the pool; ``None`` if the fixed patterns leave none, or time is up."""
        self._take()
        lp, s = self._lp, self.structure
        limit_time(lp, None if budget.deterministic else budget.seconds, self.parameters.shortest_solve)
        lp.run()
        budget.spend(
            2000 + lp.getInfo().simplex_iteration_count * (self._rows + self._taken) * self.parameters.simplex_work
        )
        if lp.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = lp.getSolution()
        row_duals = np.asarray(solution.row_dual)
        cover = np.maximum(0.0, row_duals[: s.kinds])
        node = np.maximum(0.0, -row_duals[s.kinds : s.kinds + s.groups])
        tier = np.maximum(0.0, -row_duals[s.kinds + s.groups :])
        count = np.asarray(solution.col_value)[s.kinds :]
        return MasterSolution(lp.getInfo().objective_function_value, count, Duals(cover, tier), node)

    def fix(self, pattern: int, count: int) -> None:
        """Use a pattern at least ``count`` times."""
        self._lp.changeColBounds(self.structure.kinds + pattern, float(count), INFINITE)

    def release(self) -> None:
        """Release all fixed patterns."""
        for p in range(self._taken):
            self._lp.changeColBounds(self.structure.kinds + p, 0.0, INFINITE)

    def _take(self) -> None:
        """Add new patterns of the pool as columns."""
        s, pool = self.structure, self.pool
        first, last = self._taken, pool.size
        if first == last:
            return
        group = pool.group[first:last]
        row, kind = np.nonzero(pool.pattern[first:last])
        new = last - first
        index = [kind, s.kinds + group]
        owner = [row, np.arange(new)]
        amount = [pool.pattern[first:last][row, kind] * 1.0, np.ones(new)]
        for t in range(self.tier):
            paying = np.flatnonzero(s.opening[t, group])
            index.append(np.full(len(paying), s.kinds + s.groups + t))
            owner.append(paying)
            amount.append(s.opening[t, group[paying]] * 1.0)
        owners = np.concatenate(owner)
        order = np.argsort(owners, kind="stable")
        begins = np.searchsorted(owners[order], np.arange(new)).astype(np.int32)
        self._lp.addCols(
            new,
            s.opening[self.tier, group] * 1.0,
            np.zeros(new),
            np.full(new, INFINITE),
            len(order),
            begins,
            np.concatenate(index)[order].astype(np.int32),
            np.concatenate(amount)[order],
        )
        self._taken = last
