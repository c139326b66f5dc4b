"""The Lagrangian bound: linking equations are relaxed with multipliers, and every node is solved by itself.

The linking equations ``Σ_n y[k,n] + u[k] = size[k]`` are moved into the objective with a multiplier for each kind of
pods (Lagrangian relaxation; A. Geoffrion, 1974). What remains decomposes into one small integer program for each node.
For any multipliers the sum of the nodes' minima is a lower bound, so nothing inexact in finding them can make the bound
wrong; it is evaluated in integers. Good multipliers come from the linear relaxation. Small connected components of
kinds and nodes are solved exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.models.problem import MovePeak, NodeCurve, Prefer, Problem
from stowplan.optimizer.bounds.bound import BoundRequest, CostClass
from stowplan.optimizer.bounds.components import Component, components, jointly, separately
from stowplan.optimizer.bounds.interior_point import Dual, RelaxedPrograms
from stowplan.optimizer.bounds.node_programs import LARGEST_NUMBER, Programs, node_programs, separable_terms
from stowplan.optimizer.bounds.node_relaxation import relaxed_load_duals
from stowplan.optimizer.bounds.node_search import search_nodes
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.evaluation import Evaluator


class LagrangianBound:
    """The Lagrangian bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "Lagrangian relaxation"
    cost = CostClass.EXPENSIVE

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether a term is a sum over nodes."""
        return bool(separable_terms(problem.tiers[tier]))

    def dominates(self, problem: Problem, tier: int) -> bool:
        """Whether the linear relaxation cannot be better."""
        return reads_all(problem, tier)

    def __call__(self, request: BoundRequest) -> int | None:
        """Return the bound."""
        return lagrangian_bound(
            request.evaluator,
            request.upper,
            request.tier,
            request.reached,
            request.deadline,
            request.value,
            request.parameters,
            request.cpsat.symmetry_variables,
        )


def lagrangian_bound(
    evaluator: Evaluator,
    upper: NDArray[np.int32],
    tier: int,
    reached: Sequence[int],
    deadline: Deadline,
    value: int | None = None,
    parameters: BoundParameters | None = None,
    symmetry_variables: int = CpSatParameters().symmetry_variables,
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
    chosen = parameters or BoundParameters()
    programs = node_programs(evaluator, upper, tier, reached, chosen.alike_variables, chosen.lagrangian_kinds)
    if programs is None or deadline.stop.is_set():
        return None
    # Where stating the programs took all the time, multipliers that take next to none are still worth their bound.
    first = Deadline(chosen.alike_seconds, stop=deadline.stop) if deadline.over else deadline
    best = dual_without_moves(programs, first, chosen)
    if deadline.over or programs.tables.upper.size > chosen.lagrangian_variables:
        return None if best is None else best.bound
    if best is not None and value is not None and best.bound >= value:
        return best.bound
    relaxed = RelaxedPrograms(programs, chosen)
    for close in chosen.closeness:
        lagrangian = LagrangianDual(programs, relaxed.solve(close, deadline.share(0.5)))
        if best is not None and deadline.over and lagrangian.worth <= best.worth:
            return best.bound
        lagrangian.search(chosen.first_budget, deadline, chosen.chunk)
        lagrangian = scaled_dual(lagrangian, deadline, chosen)
        if best is None or lagrangian.worth > best.worth:
            best = lagrangian
        if deadline.over or (value is not None and best.bound >= value):
            return best.bound
    assert best is not None
    best.solve_components(deadline, chosen, symmetry_variables)
    if value is not None and best.bound >= value:
        return best.bound
    best.search(chosen.last_budget, deadline, chosen.chunk)
    return best.bound


def dual_without_moves(programs: Programs, deadline: Deadline, parameters: BoundParameters) -> LagrangianDual | None:
    """Return the dual at multipliers found as if moves cost nothing; ``None`` if that makes few nodes alike.

    Then clusters of a few kinds of nodes have as few programs, whose relaxation is solved at once. The dual function
    itself counts moves, and any multipliers bound it.
    """
    alike, became = programs.without_moves()
    if len(alike.times) * parameters.alike > len(became):
        return None
    dual = RelaxedPrograms(alike, parameters).solve(parameters.closeness[0], deadline.share(0.5))
    found = LagrangianDual(programs, Dual(dual.multipliers, dual.load_duals[became], dual.side_duals))
    found.search(parameters.first_budget, deadline.share(parameters.alike_share), parameters.chunk)
    return found


def reads_all(problem: Problem, tier: int) -> bool:
    """Whether the linear relaxation reads nothing of a tier that is not read here, so that it cannot be better."""
    this = [weighted.term for weighted in problem.tiers[tier].terms]
    earlier = [weighted.term for before in problem.tiers[:tier] for weighted in before.terms]
    return not any(isinstance(term, MovePeak) for term in this) and not any(
        isinstance(term, MovePeak | Prefer | NodeCurve) for term in earlier
    )


class LagrangianDual:
    """The Lagrangian dual function at some multipliers; before nodes are searched, load duals bound them.

    Parameters
    ----------
    relaxing
        Whether the load duals are those of each node's relaxation at these multipliers, and not those of ``dual``.
    """

    def __init__(self, programs: Programs, dual: Dual, *, relaxing: bool = False) -> None:
        self.unpenalized, self.dual = programs, dual = fitted(programs, dual)
        self.programs = programs.penalized(side_duals(programs, dual))
        self.multipliers, self.load_duals = whole(self.programs, dual)
        if relaxing:
            highest = largest(self.programs)[1]
            self.load_duals = np.clip(relaxed_load_duals(self.programs, self.multipliers), -highest, highest)
        self.typical = typical_loads(programs)
        self.bounds = np.full(len(programs.times), -(1 << 62), dtype=np.int64)
        self.solutions = np.zeros(programs.tables.upper.shape, dtype=np.int64)
        self.whole: list[tuple[Component, int]] = []
        self._search(0, 0, len(self.bounds))

    @property
    def total(self) -> int:
        """The bound, in scaled units."""
        gained = sum(
            max(0, cost - separately(self.programs, component, self.multipliers, self.bounds))
            for component, cost in self.whole
        )
        return total(self.programs, self.multipliers, self.bounds) + gained

    @property
    def worth(self) -> Fraction:
        """The bound in units of the tier, not rounded: multipliers on different scales compare by it."""
        return Fraction(self.total, self.programs.scale)

    @property
    def bound(self) -> int:
        """The bound in units of the tier, rounded up."""
        return max(0, -(-self.total // self.programs.scale))

    def search(self, budget: int, deadline: Deadline, chunk: int = BoundParameters().chunk) -> None:
        """Search every node, as long as there is time; ``budget`` limits the branching decisions for one node."""
        for begin in range(0, len(self.bounds), chunk):
            if deadline.over:
                break
            self._search(budget, begin, min(len(self.bounds), begin + chunk))

    def solve_components(self, deadline: Deadline, parameters: BoundParameters, symmetry_variables: int) -> None:
        """Solve connected components exactly, as far as they are small and time allows."""
        for component in components(self.programs):
            cost = jointly(
                self.programs,
                component,
                deadline.share(parameters.component_share),
                parameters.component_patterns,
                symmetry_variables,
            )
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


def scaled_dual(lagrangian: LagrangianDual, deadline: Deadline, parameters: BoundParameters) -> LagrangianDual:
    """Return the best dual on the ray of scaled multipliers, by a line search.

    Where nodes or unplaced pods cost something, a node full of whole pods gains less than its linear program says, so
    larger multipliers are needed before it pays to open one more node.
    """
    best, programs = lagrangian, lagrangian.unpenalized
    if not programs.tables.opening.any() and not programs.unplaced.any():
        return best
    dual, factor, step = lagrangian.dual, 1.0, parameters.first_ray_step
    for _ in range(parameters.ray_trials):
        if deadline.over:
            break
        longer = factor + step
        trial = LagrangianDual(
            programs, Dual(dual.multipliers * longer, dual.load_duals * longer, dual.side_duals * longer)
        )
        trial.search(parameters.first_budget, deadline, parameters.chunk)
        if trial.worth > best.worth:
            best, factor, step = trial, longer, 2 * step
        else:
            step /= -4
    return best


def total(programs: Programs, multipliers: Ints, bounds: Ints) -> int:
    """Return the Lagrangian dual function, in scaled units. Python integers cannot overflow."""
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
    """Return programs and a dual on a scale so coarse that no dual has to be clipped, as far as possible.

    Where a side constraint leaves next to no choice, its dual and others that it affects can be far above all costs.
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
    """Return the largest multipliers, load duals ``[r]`` and side duals ``[e]`` with which no product can overflow."""
    tables, limits = programs.tables, programs.limits
    pods = max(1, int(tables.upper.sum(axis=1).max(initial=1)))
    reach = np.maximum(np.abs(tables.floor), np.abs(tables.capacity)).max(axis=0, initial=1)
    heaviest = np.abs(tables.demand).max(axis=1, initial=0) * pods
    highest = np.hstack([limits.move * pods, limits.unplaced * pods, limits.opening.T]).max(axis=1, initial=1)
    return LARGEST_NUMBER // pods, LARGEST_NUMBER // np.maximum(reach, heaviest), LARGEST_NUMBER // highest


def side_duals(programs: Programs, dual: Dual) -> Ints:
    """``[e]`` the side duals as scaled integers, clipped so that no product can overflow."""
    kept: Ints = np.rint(np.clip(np.nan_to_num(dual.side_duals), 0, largest(programs)[2])).astype(np.int64)
    return kept


def whole(programs: Programs, dual: Dual) -> tuple[Ints, Ints]:
    """Round multipliers ``[k]`` and load duals ``[m, r]`` to integers, clipped so that no product can overflow."""
    most, highest, _ = largest(programs)
    multipliers = np.clip(np.nan_to_num(dual.multipliers), -most, most)
    load_duals = np.clip(np.nan_to_num(dual.load_duals), -highest, highest)
    return np.rint(multipliers).astype(np.int64), np.ascontiguousarray(np.rint(load_duals).astype(np.int64))
