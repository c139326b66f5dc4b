"""Lower bounds by taking the nodes apart: every node answers to prices by itself, in whole pods.

The equations that tie nodes together, ``Σ_n y[k,n] + u[k] = size[k]``, are moved into the objective with a multiplier
for each kind of pods (Lagrangian relaxation). What remains falls into one small program for each node. For any
multipliers the sum of the nodes' minima is a lower bound, so nothing that is inexact in finding them can make the bound
wrong; it is evaluated in whole numbers. Good multipliers come from the linear relaxation. Small groups of nodes that
have nothing to do with the others are solved as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.models.problem import MovePeak, NodeCurve, Prefer, Problem
from stowplan.optimizer.bounds.components import Component, components, jointly, separately
from stowplan.optimizer.bounds.interior_point import CLOSE, Dual, RelaxedPrograms
from stowplan.optimizer.bounds.node_programs import LARGEST_NUMBER, Programs, node_programs
from stowplan.optimizer.bounds.node_search import search_nodes
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.evaluation import Evaluator

NAME = "Lagrangian relaxation"
"""What results call this bound."""

LARGEST = 4_000_000
"""Kinds times nodes above which this is not tried."""

KINDS = 2_000
"""Kinds of pods above which this is not tried: a step towards multipliers solves dense equations over them."""

CLOSENESS = (5e-3, CLOSE)
"""How close to solved the linear relaxation is when its multipliers are tried.

Those of the middle of the optimal face often do better in whole pods than those of a corner, and are had earlier.
"""

FIRST_BUDGET, LAST_BUDGET = 2_000, 20_000
"""Choices that the search of one node may look into, for every multipliers tried, and then for the best."""

RAY_TRIALS, FIRST_RAY_STEP = 8, 0.1
"""Trials along the ray of all multipliers, and by how much the first one is longer."""

SHARE = 0.25
"""Share of the time that is left for solving components as a whole."""

CHUNK = 16
"""Nodes between two looks at the clock."""


def lagrangian_bound(
    evaluator: Evaluator,
    upper: NDArray[np.int32],
    tier: int,
    reached: Sequence[int],
    deadline: Deadline,
    value: int | None = None,
) -> int | None:
    """Return a lower bound of one tier, or ``None`` if none was found.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold; see `stowplan.optimizer.domains.upper_bounds`.
    reached
        Values of the earlier tiers, which must not get worse.
    value
        A value of this tier that is known to be reachable: a bound that meets it ends the search.
    """
    programs = node_programs(evaluator, upper, tier, reached, LARGEST, KINDS)
    if programs is None or deadline.over:
        return None
    linear = RelaxedPrograms(programs)
    best: LagrangianDual | None = None
    for close in CLOSENESS:
        lagrangian = LagrangianDual(programs, linear.solve(close, deadline.share(0.5)))
        lagrangian.search(FIRST_BUDGET, deadline)
        lagrangian = scaled_dual(lagrangian, deadline)
        if best is None or lagrangian.worth > best.worth:
            best = lagrangian
        if deadline.over or (value is not None and best.bound >= value):
            return best.bound
    assert best is not None
    best.join(deadline)
    if value is not None and best.bound >= value:
        return best.bound
    best.search(LAST_BUDGET, deadline)
    return best.bound


def reads_all(problem: Problem, tier: int) -> bool:
    """Whether the relaxation reads nothing of a tier that is not read here, so that it cannot bound it better."""
    this = [weighted.term for weighted in problem.tiers[tier].terms]
    earlier = [weighted.term for before in problem.tiers[:tier] for weighted in before.terms]
    return not any(isinstance(term, MovePeak) for term in this) and not any(
        isinstance(term, MovePeak | Prefer | NodeCurve) for term in earlier
    )


class LagrangianDual:
    """Multipliers and prices, and what the nodes answer to them. At first, prices alone give the bound."""

    def __init__(self, programs: Programs, dual: Dual) -> None:
        self.unpenalized, self.dual = programs, dual = fitted(programs, dual)
        self.programs = programs.penalized(side_duals(programs, dual))
        self.multipliers, self.load_duals = whole(self.programs, dual)
        self.typical = typical_loads(programs)
        self.bounds = np.full(len(programs.times), -(1 << 62), dtype=np.int64)
        self.solutions = np.zeros(programs.tables.upper.shape, dtype=np.int64)
        self.whole: list[tuple[Component, int]] = []
        self._search(0, 0, len(self.bounds))

    @property
    def total(self) -> int:
        """What nodes and waiting pods cost at least, in grains."""
        gained = sum(
            max(0, cost - separately(self.programs, component, self.multipliers, self.bounds))
            for component, cost in self.whole
        )
        return total(self.programs, self.multipliers, self.bounds) + gained

    @property
    def worth(self) -> Fraction:
        """The bound in units of the tier, not rounded, by which multipliers compare though their grains differ."""
        return Fraction(self.total, self.programs.scale)

    @property
    def bound(self) -> int:
        """What no legal placement can be below, in units of the tier."""
        return max(0, -(-self.total // self.programs.scale))

    def search(self, budget: int, deadline: Deadline) -> None:
        """Search every node, as long as there is time; ``budget`` limits the choices looked into for one."""
        for begin in range(0, len(self.bounds), CHUNK):
            if deadline.over:
                break
            self._search(budget, begin, min(len(self.bounds), begin + CHUNK))

    def join(self, deadline: Deadline) -> None:
        """Solve components as a whole, as far as they are small and time allows."""
        for component in components(self.programs):
            cost = jointly(self.programs, component, deadline.share(SHARE))
            if cost is not None:
                self.whole.append((component, cost))

    def _search(self, budget: int, begin: int, end: int) -> None:
        search_nodes(
            self.programs.tables,
            self.multipliers,
            self.load_duals,
            self.typical,
            budget,
            begin,
            end,
            self.bounds,
            self.solutions,
        )


def scaled_dual(lagrangian: LagrangianDual, deadline: Deadline) -> LagrangianDual:
    """Return what is best along the ray of all multipliers and prices: whole pods leave room that fractions fill.

    Where nodes or waiting pods cost something, a node full of whole pods earns less than its linear program says, so
    all can earn more before it pays to open one node more.
    """
    best, programs = lagrangian, lagrangian.unpenalized
    if not programs.tables.opening.any() and not programs.unplaced.any():
        return best
    dual, factor, step = lagrangian.dual, 1.0, FIRST_RAY_STEP
    for _ in range(RAY_TRIALS):
        if deadline.over:
            break
        longer = factor + step
        trial = LagrangianDual(
            programs, Dual(dual.multipliers * longer, dual.load_duals * longer, dual.side_duals * longer)
        )
        trial.search(FIRST_BUDGET, deadline)
        if trial.worth > best.worth:
            best, factor, step = trial, longer, 2 * step
        else:
            step /= -4
    return best


def total(programs: Programs, multipliers: Ints, bounds: Ints) -> int:
    """Add up what nodes and waiting pods cost at least, in grains. No sum here can overflow."""
    waiting = np.minimum(0, programs.unplaced - multipliers).tolist()
    total = programs.constant
    total += sum(count * bound for count, bound in zip(programs.times.tolist(), bounds.tolist(), strict=True))
    total += sum(size * each for size, each in zip(programs.size.tolist(), multipliers.tolist(), strict=True))
    total += sum(optional * each for optional, each in zip(programs.optional.tolist(), waiting, strict=True))
    return int(total)


def typical_loads(programs: Programs) -> Ints:
    """``[r]`` the load of a typical pod."""
    asked = np.abs(programs.tables.demand)
    number = np.maximum(1, ((asked > 0) * programs.size).sum(axis=1))
    typical: Ints = np.maximum(1, (asked * programs.size).sum(axis=1) // number)
    return typical


def fitted(programs: Programs, dual: Dual) -> tuple[Programs, Dual]:
    """Return programs and a dual in grains so large that none of its numbers has to be cut, as far as they can be.

    Where a limit leaves next to no choice, its fine and all that it drives can be far above what anything costs.
    """
    multipliers, load_duals, side_duals = largest(programs)
    with np.errstate(invalid="ignore", over="ignore"):
        over = [
            np.abs(dual.multipliers) / multipliers,
            np.abs(dual.load_duals) / load_duals,
            np.abs(dual.side_duals) / side_duals,
        ]
    highest = max(float(np.nan_to_num(part).max(initial=0.0)) for part in over)
    factor = 1
    while factor < programs.scale and factor < highest:
        factor *= 2
    if factor == 1:
        return programs, dual
    return programs.coarser(factor), Dual(dual.multipliers / factor, dual.load_duals / factor, dual.side_duals / factor)


def largest(programs: Programs) -> tuple[int, Ints, Ints]:
    """Return the largest multipliers, prices ``[r]`` and fines ``[e]`` with which no product can overflow."""
    tables, limits = programs.tables, programs.limits
    pods = max(1, int(tables.upper.sum(axis=1).max(initial=1)))
    reach = np.maximum(np.abs(tables.floor), np.abs(tables.capacity)).max(axis=0, initial=1)
    heaviest = np.abs(tables.demand).max(axis=1, initial=0) * pods
    highest = np.hstack([limits.move * pods, limits.unplaced * pods, limits.opening.T]).max(axis=1, initial=1)
    return LARGEST_NUMBER // pods, LARGEST_NUMBER // np.maximum(reach, heaviest), LARGEST_NUMBER // highest


def side_duals(programs: Programs, dual: Dual) -> Ints:
    """``[e]`` the fines in whole grains, kept where no product can overflow."""
    kept: Ints = np.rint(np.clip(np.nan_to_num(dual.side_duals), 0, largest(programs)[2])).astype(np.int64)
    return kept


def whole(programs: Programs, dual: Dual) -> tuple[Ints, Ints]:
    """Round multipliers ``[k]`` and prices ``[m, r]`` to whole grains, kept where no product can overflow."""
    most, highest, _ = largest(programs)
    multipliers = np.clip(np.nan_to_num(dual.multipliers), -most, most)
    load_duals = np.clip(np.nan_to_num(dual.load_duals), -highest, highest)
    return np.rint(multipliers).astype(np.int64), np.ascontiguousarray(np.rint(load_duals).astype(np.int64))
