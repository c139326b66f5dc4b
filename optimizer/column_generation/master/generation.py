"""Column generation: prices from the master, patterns from pricing, until neither helps the other.

Prices are smoothed towards those of the best bound so far (Wentges, 1997), since the master's own swing widely.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Floats, Ints
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.master.lagrangian import Prices, rounded
from stowplan.optimizer.column_generation.master.restricted import Duals, Master, Pool, Solution
from stowplan.optimizer.column_generation.pricing.pricer import Pricer
from stowplan.optimizer.column_generation.structure import Structure

SMOOTHING = 0.5
"""Share of the best prices so far in the prices at which patterns are looked for."""

AT_ONCE = 40
"""Greedy patterns taken into the master at once, for each group."""

SHORT = 3_000_000
"""Candidates that pricing looks at when patterns are wanted."""

LONG = 40_000_000
"""Candidates that pricing looks at when a bound is wanted."""

CERTIFIED = 0.3
"""Part of the time left that pricing all groups for a bound may take; else none might be left to find patterns."""

LARGEST_POOL = 60_000
"""Patterns up to which more are generated."""

EPSILON = 1e-7
"""Smallest reduced cost that counts, relative to the highest price."""


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """A proven bound with its prices.

    Parameters
    ----------
    value
        The bound, exactly.
    prices, share
        It is the Lagrangian bound at this share of the prices.
    best
        ``[g]`` the most that a pattern of each group is worth at the prices; proven.
    """

    value: Fraction
    prices: Prices
    share: Fraction
    best: list[int]
    duals: Duals


class Generation:
    """Column generation for one tier."""

    def __init__(
        self, structure: Structure, tier: int, reached: tuple[int, ...], pool: Pool, pricers: list[Pricer]
    ) -> None:
        self.structure = structure
        self.tier = tier
        self.reached = reached
        self.pool = pool
        self.pricers = pricers
        self.master = Master(structure, tier, reached, pool)
        self.certificate: Certificate | None = None
        self.solution: Solution | None = None
        self.converged = False
        self.rounds = 0

    @property
    def bound(self) -> int:
        """The best bound, rounded up to what the tier can be."""
        if self.certificate is None:
            return 0
        value = self.certificate.value
        return max(0, self.structure.attainable(self.tier, -(-value.numerator // value.denominator)))

    def dual_value(self, value: int) -> Ints:
        """``[t + 1]`` what may be paid in the earlier tiers, and in this one if it is to be at most ``value``."""
        return np.append(self.master.limits, value - int(self.structure.constant[self.tier]))

    def run(self, start: Duals, target: int, budget: Budget, proven: int = 0) -> None:
        """Generate patterns until the bound reaches ``target``, or cannot be raised to another whole number.

        Parameters
        ----------
        proven
            A bound that is known otherwise.
        """
        self.certify(start, LONG, budget)
        smoothing = SMOOTHING
        while not budget.over and self.bound < target and self.pool.size < LARGEST_POOL:
            self.rounds += 1
            solution = self.master.solve(budget)
            if solution is None:
                return
            self.solution = solution
            if max(self.bound, proven) >= solution.value + float(self.structure.constant[self.tier]) - 1e-6:
                self.converged = True
                return
            at = solution.duals
            if self.certificate is not None and smoothing:
                at = solution.duals.toward(self.certificate.duals, smoothing)
            new = self._greedy(at, solution, budget)
            more, raised, complete = self.certify(at, SHORT, budget, solution)
            new += more
            if not (new or complete):
                new, raised, complete = self.certify(at, LONG, budget, solution)
            if new or (smoothing and raised):
                smoothing = min(0.9, smoothing + 0.05) if raised else max(0.0, smoothing - 0.1)
            elif smoothing:
                smoothing = 0.0  # mispriced: ask at the master's own prices
            else:
                self.converged = complete
                return

    def _greedy(self, at: Duals, solution: Solution, budget: Budget) -> int:
        """Add greedy patterns that the master wants; return how many."""
        prices = rounded(self.structure, self.tier, self.master.limits, at)
        added = 0
        for g, pricer in enumerate(self.pricers):
            patterns, _ = pricer.greedy(prices.cover)
            budget.spend(len(patterns) ** 2)
            added += self.want(g, patterns, solution)
        return added

    def want(self, g: int, patterns: NDArray[np.int16], solution: Solution) -> int:
        """Add the patterns of a group that lower the master's value most; return how many."""
        gain = self._gain(g, patterns, solution)
        useful = np.flatnonzero(gain > 10 * EPSILON * _highest(solution))
        return self.pool.add(g, patterns[useful[np.argsort(-gain[useful], kind="stable")][:AT_ONCE]])

    def _gain(self, g: int, patterns: NDArray[np.int16], solution: Solution) -> Floats:
        """``[p]`` by how much each pattern of a group would lower the master's value, for each node that uses it."""
        s = self.structure
        paid = float(solution.duals.tier @ s.opening[: self.tier, g]) if self.tier else 0.0
        gain: Floats = patterns @ solution.duals.cover - (float(s.opening[self.tier, g]) + paid + solution.node[g])
        return gain

    def certify(self, at: Duals, work: int, budget: Budget, solution: Solution | None = None) -> tuple[int, bool, bool]:
        """Price exactly, with so much work for a group, and improve the bound.

        Return how many new patterns the master wants, whether the bound is better, and whether nothing was cut off.
        """
        s = self.structure
        prices = rounded(s, self.tier, self.master.limits, at)
        known = self.pool.pattern.astype(np.int64) @ prices.cover
        best: list[int] = []
        new, complete = 0, True
        granted = budget.part(CERTIFIED)
        for g, pricer in enumerate(self.pricers):
            least = max(min(prices.opening[g] + prices.opening_price[g], 1 << 50), 0)
            least = max(least, int(known[: len(known)][self.pool.group[: len(known)] == g].max(initial=0)))
            most = granted.work // (s.groups - g) if work > SHORT else budget.work
            priced = pricer.best(prices.cover, least, min(work, most))
            granted.spend(priced.work)
            best.append(priced.bound)
            complete &= priced.complete
            patterns = priced.patterns
            if solution is not None and len(patterns):
                patterns = patterns[self._gain(g, patterns, solution) > EPSILON * _highest(solution)]
            new += self.pool.add(g, patterns)
            if budget.stopped:
                return new, False, False
        value, share = max((prices.total(s, best, share), share) for share in prices.shares(best))
        raised = self.certificate is None or value > self.certificate.value
        if raised:
            scaled = Duals(at.cover * float(share), at.tier * float(share))
            self.certificate = Certificate(value, prices, share, best, scaled)
        return new, raised, complete


def _highest(solution: Solution) -> float:
    return max(1e-9, float(solution.duals.cover.max(initial=0.0)))
