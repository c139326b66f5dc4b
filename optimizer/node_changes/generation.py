"""Generation of changes: master and pricing in turns, with a Lagrangian bound from every pricing.

Every multiplier of a move that was tried bounds the tier for every limit on moves: the dual function is linear in the
limit, with minus that multiplier as its slope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import FAR, Placement
from stowplan.optimizer.bounds.interior_point import Dual, RelaxedPrograms
from stowplan.optimizer.bounds.lagrangian import LagrangianDual, side_duals
from stowplan.optimizer.bounds.node_programs import Programs, Tables
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.kinds import pods_by_kind
from stowplan.optimizer.node_changes.master import ChangeMaster, MasterDuals
from stowplan.optimizer.node_changes.parameters import NodeChangeParameters

TINY = 1e-6
"""Pods by which rows of the master may be violated through rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Duals:
    """Multipliers ``[k]`` of the kinds and duals ``[e]`` of the side constraints, in units of the tier."""

    multipliers: Floats
    side_duals: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A bound of the tier for every limit on moves: ``bound − multiplier·(limit − at)``, in units of the tier.

    Parameters
    ----------
    at
        The limit for which it was computed.
    duals, load_duals
        The duals that were priced; no load duals if those of each node's relaxation were taken.
    """

    at: int
    bound: Fraction
    multiplier: Fraction
    duals: Duals
    load_duals: Floats | None

    def for_limit(self, limit: int) -> Fraction:
        """Return the bound for a limit."""
        return self.bound - self.multiplier * (limit - self.at)


class ChangeGeneration:
    """Changes of nodes and bounds for one tier.

    Parameters
    ----------
    programs
        Of the tier, with the limit on moves as its last side constraint.
    """

    def __init__(
        self, programs: Programs, nodes: int, placement: Placement, parameters: NodeChangeParameters | None = None
    ) -> None:
        self.programs, self.parameters = programs, parameters or NodeChangeParameters()
        self.limit = int(programs.limits.most[-1])
        self.lines: list[Line] = []
        self.master = ChangeMaster(programs)
        patterns = patterns_of(programs, nodes, placement)
        self.master.add(programs.program, patterns)
        load_duals = slopes(programs.tables, patterns_by_program(programs, patterns))
        self._center = self._first_duals(load_duals)
        # The relaxation of a node knows no openings: there, load duals come from the relaxation of the whole alone.
        opens = bool(programs.tables.opening.any() or programs.limits.opening.any())
        self._load_duals = load_duals if opens else None
        self._begun: set[int] = set()
        self._centers: dict[int, tuple[Duals, Floats | None]] = {}
        self.solution: MasterDuals | None = None

    def set_limit(self, limit: int) -> None:
        """Continue with another limit on moves: changes and lines that were found stay."""
        if limit == self.limit:
            return
        limits = self.programs.limits
        most = limits.most.copy()
        most[-1] = limit
        self.programs = replace(self.programs, limits=limits._replace(most=most))
        self.master.limit(len(most) - 1, limit)
        self.limit, self.solution = limit, None

    def bound(self, limit: int | None = None) -> int:
        """Return the best bound for a limit on moves, by default that of the problem, rounded up."""
        limit = self.limit if limit is None else limit
        best = max((line.for_limit(limit) for line in self.lines), default=Fraction(0))
        return max(0, -(-best.numerator // best.denominator))

    def run(
        self, deadline: Deadline, value: int | None = None, found: Callable[[int], object] = lambda bound: None
    ) -> None:
        """Generate changes until the bound is as good as the master, meets ``value``, or time is up.

        Parameters
        ----------
        found
            Called with each better bound, the first one long before the last.
        """
        if self.limit in self._centers:
            self._center, self._load_duals = self._centers[self.limit]
            self._solve_master(self.parameters.drawn, deadline)
            return
        self._generate(deadline, value, found)
        if not deadline.over:
            self._centers[self.limit] = self._center, self._load_duals

    def settle(self, deadline: Deadline) -> None:
        """Solve the master, if changes were priced and there was no time for that."""
        if self.lines and self.solution is None and not deadline.over:
            self._solve_master(self.parameters.drawn, deadline)

    def _solve_master(self, share: float, deadline: Deadline) -> MasterDuals | None:
        """Solve the master with its duals drawn to the best ones, by a share of the price of a move."""
        center = self._center
        self.master.draw(center.multipliers, center.side_duals, share * max(float(center.side_duals[-1]), 1.0))
        found = self.master.solve(None if deadline.deterministic else deadline.remaining)
        self.solution = found or self.solution
        return found

    def _generate(self, deadline: Deadline, value: int | None, found: Callable[[int], object]) -> None:
        """Generate from the duals of the placement; if that does not end, from those of the linear relaxation too.

        Where many pods may move, a placement says little of the best duals.
        """
        best, few = -np.inf, self.limit <= self.parameters.few * int(self.programs.size.sum())
        if self.limit not in self._begun:
            best = self._bisected(self._center, self._load_duals, best, deadline)
            if self.lines:
                found(self.bound())
        line = max(self.lines, key=lambda line: line.for_limit(self.limit), default=None)
        if line is not None and (gain := float(line.for_limit(self.limit)) - self.master.start_cost) > best:
            best, self._center, self._load_duals = gain, line.duals, line.load_duals
        if few and self._load_duals is None:
            best, ended = self._rounds(best, deadline, value, found)
            if ended or deadline.over:
                return
        if self.limit not in self._begun:
            best = self._relaxed(best, deadline)
            if not deadline.over:
                self._begun.add(self.limit)
        self._rounds(best, deadline, value, found)

    def _rounds(
        self, best: float, deadline: Deadline, value: int | None, found: Callable[[int], object]
    ) -> tuple[float, bool]:
        """Let master and pricing take turns; return the best bound, and whether no better one is to be had."""
        chosen, every = self.parameters, np.arange(len(self.programs.tables.upper))
        share, budget = chosen.drawn, chosen.budget
        for _ in range(chosen.rounds):
            if value is not None and self.bound() >= value:
                return best, True
            master = None if deadline.over else self._solve_master(share, deadline)
            if master is None:
                return best, False
            trial = Duals(master.multipliers, master.side_duals)
            lagrangian = self._priced(trial, self._load_duals, deadline, budget)
            if lagrangian is None:
                return best, False
            added = self.master.add(every, lagrangian.solutions)
            bound = float(lagrangian.worth) - self.master.start_cost
            expected, gained = master.value - best, bound - best
            if gained > 0:
                best, self._center = bound, trial
                found(self.bound())
            closed = master.value - best <= chosen.close * max(1.0, abs(master.value))
            if closed and master.violation < TINY:
                return best, True
            if closed or 2 * gained > expected:
                share *= chosen.loosening
            elif not added and budget < chosen.largest_budget:
                # What the master expects was not refuted: searches of nodes were cut off.
                budget *= chosen.more_budget
            elif not added or gained < -expected:
                share *= chosen.tightening
            if share < chosen.tightest:
                return best, False
        return best, False

    def _relaxed(self, best: float, deadline: Deadline) -> float:
        """Price at the duals of the linear relaxation, which take long to find; return the best bound so far.

        The bound of the start counts as 0.
        """
        chosen, scale = self.parameters, self.programs.scale
        relaxed = RelaxedPrograms(self.programs, BoundParameters()).solve(chosen.relaxed, deadline.share(chosen.begin))
        duals = Duals(relaxed.multipliers / scale, relaxed.side_duals / scale)
        return self._bisected(duals, relaxed.load_duals, best, deadline)

    def _bisected(self, duals: Duals, load_duals: Floats | None, best: float, deadline: Deadline) -> float:
        """Bisect for the price of a move at which the cheapest changes spend the limit; return the best bound so far.

        The bound is concave in that price, and its slope is what is spent beyond the limit. Duals that are far from
        the best ones, such as slopes of curves, mostly have a price that is too high or too low.
        """
        every = np.arange(len(self.programs.tables.upper))
        low, high, price = 0.0, np.inf, float(duals.side_duals[-1])
        for _ in range(1 + self.parameters.bisections):
            tried = replace(duals, side_duals=np.append(duals.side_duals[:-1], price))
            lagrangian = self._priced(tried, load_duals, deadline, self.parameters.first_budget)
            if lagrangian is None:
                break
            self.master.add(every, lagrangian.solutions)
            bound = float(lagrangian.worth) - self.master.start_cost
            if bound > best:
                best, self._center, self._load_duals = bound, tried, load_duals
            spent = int(self.programs.times @ self.master.use(every, lagrangian.solutions)[:, -1])
            if spent == self.limit:
                break
            low, high = (price, high) if spent > self.limit else (low, price)
            price = 2 * price if np.isinf(high) else (low + high) / 2
            if high - low <= 1e-3 * high or price <= 0:
                break
        return best

    def _priced(
        self, duals: Duals, load_duals: Floats | None, deadline: Deadline, budget: int
    ) -> LagrangianDual | None:
        """Search all nodes at some duals, and keep the bound that results; ``None`` if there was no time for all.

        Without load duals, those of each node's relaxation at these duals are taken.
        """
        scale, relaxing = self.programs.scale, load_duals is None
        loads = np.zeros(self.programs.tables.base.shape) if load_duals is None else load_duals
        dual = Dual(duals.multipliers * scale, loads, duals.side_duals * scale)
        lagrangian = LagrangianDual(self.programs, dual, relaxing=relaxing)
        lagrangian.search(budget, deadline)
        if deadline.over:
            return None
        multiplier = int(side_duals(lagrangian.unpenalized, lagrangian.dual)[-1])
        self.lines.append(
            Line(self.limit, lagrangian.worth, Fraction(multiplier, lagrangian.unpenalized.scale), duals, load_duals)
        )
        return lagrangian

    def _first_duals(self, load_duals: Floats) -> Duals:
        """Return the duals of a placement that no move of a pod improves, if loads change by little.

        A pod of a kind is worth what it costs on the node where it costs least, and a move what the best one gains.
        """
        tables, scale = self.programs.tables, self.programs.scale
        costs = (tables.linear + load_duals @ tables.demand) / scale
        open_nodes = tables.upper > tables.start
        least = np.where(open_nodes, costs, np.inf).min(axis=0)
        multipliers = np.where(np.isfinite(least), least, costs.max(axis=0))
        gain = np.where(tables.start > 0, costs - multipliers - tables.move / scale, 0.0).max(initial=0.0)
        side_duals = np.zeros(len(self.programs.limits.most))
        side_duals[-1] = gain
        return Duals(multipliers, side_duals)


def patterns_of(programs: Programs, nodes: int, placement: Placement) -> Ints:
    """``[n, k]`` pods of each kind on each node."""
    return pods_by_kind(placement, programs.kind, len(programs.size), nodes)


def patterns_by_program(programs: Programs, patterns: Ints) -> Ints:
    """``[m, k]`` the pattern of one node of each program."""
    first = np.unique(programs.program, return_index=True)[1]
    chosen: Ints = patterns[first]
    return chosen


def slopes(tables: Tables, patterns: Ints) -> Floats:
    """``[m, r]`` the slope of each curve to the right of the load of a pattern."""
    load = tables.base + patterns @ tables.demand.T
    found = np.zeros(load.shape)
    for r in range(load.shape[1]):
        first = tables.first[tables.curve[:, r]]
        slope = tables.slope[tables.curve[:, r]]
        piece = np.maximum(0, ((first <= load[:, [r]]) & (first < FAR)).sum(axis=1) - 1)
        found[:, r] = slope[np.arange(len(piece)), piece]
    return found
