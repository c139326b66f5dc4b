"""Column generation: duals from the restricted master, patterns from pricing, until neither helps the other.

Duals are smoothed toward those of the best bound so far (P. Wentges, "Weighted Dantzig-Wolfe decomposition for linear
mixed-integer programming", 1997), since those of the master oscillate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Floats, Ints
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.master.lagrangian import RoundedDuals, round_duals
from stowplan.optimizer.column_generation.master.restricted import Duals, MasterSolution, PatternPool, RestrictedMaster
from stowplan.optimizer.column_generation.parameters import ColumnGenerationParameters
from stowplan.optimizer.column_generation.pricing.pricer import Pricer
from stowplan.optimizer.column_generation.structure import Structure


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """A proven bound with its duals.

    Parameters
    ----------
    value
        The bound, exactly.
    rounded, share
        It is the Lagrangian bound at this share of the duals.
    best
        ``[g]`` proven upper bound of the value of any pattern of each group.
    """

    value: Fraction
    rounded: RoundedDuals
    share: Fraction
    best: list[int]
    duals: Duals


class Generation:
    """Column generation for one tier."""

    def __init__(
        self,
        structure: Structure,
        tier: int,
        reached: tuple[int, ...],
        pool: PatternPool,
        pricers: list[Pricer],
        parameters: ColumnGenerationParameters | None = None,
    ) -> None:
        self.parameters = parameters = parameters or ColumnGenerationParameters()
        self.structure = structure
        self.tier = tier
        self.reached = reached
        self.pool = pool
        self.pricers = pricers
        self.master = RestrictedMaster(structure, tier, reached, pool, parameters)
        self.certificate: Certificate | None = None
        self.solution: MasterSolution | None = None
        self.converged = False
        self.rounds = 0

    @property
    def bound(self) -> int:
        """The best bound, rounded up to what the tier can be."""
        if self.certificate is None:
            return 0
        value = self.certificate.value
        return max(0, self.structure.attainable(self.tier, -(-value.numerator // value.denominator)))

    def allowance(self, value: int) -> Ints:
        """``[t + 1]`` limits of the costs in the earlier tiers, and in this one for a value of at most ``value``."""
        return np.append(self.master.limits, value - int(self.structure.constant[self.tier]))

    def run(self, start: Duals, target: int, budget: Budget, proven: int = 0) -> None:
        """Generate patterns until the bound reaches ``target``, or cannot be raised to the next attainable value.

        Parameters
        ----------
        proven
            A bound that is known from elsewhere.
        """
        chosen = self.parameters
        self.certify(start, chosen.long_pricing, budget)
        smoothing = chosen.smoothing
        while not budget.over and self.bound < target and self.pool.size < chosen.largest_pool:
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
            more, raised, complete = self.certify(at, chosen.short_pricing, budget, solution)
            new += more
            if not (new or complete):
                new, raised, complete = self.certify(at, chosen.long_pricing, budget, solution)
            if new or (smoothing and raised):
                smoothing = min(0.9, smoothing + 0.05) if raised else max(0.0, smoothing - 0.1)
            elif smoothing:
                smoothing = 0.0  # mispricing: continue at the master's own duals
            else:
                self.converged = complete
                return

    def _greedy(self, at: Duals, solution: MasterSolution, budget: Budget) -> int:
        """Add greedy patterns of negative reduced cost; return how many."""
        rounded = round_duals(self.structure, self.tier, self.master.limits, at)
        added = 0
        for g, pricer in enumerate(self.pricers):
            patterns, _ = pricer.greedy(rounded.cover)
            budget.spend(len(patterns) ** 2)
            added += self.want(g, patterns, solution)
        return added

    def want(self, g: int, patterns: NDArray[np.int16], solution: MasterSolution) -> int:
        """Add the patterns of a group that lower the master's value most; return how many."""
        gain = self._gain(g, patterns, solution)
        useful = np.flatnonzero(gain > 10 * self.parameters.epsilon * _highest(solution))
        return self.pool.add(
            g, patterns[useful[np.argsort(-gain[useful], kind="stable")][: self.parameters.greedy_columns]]
        )

    def _gain(self, g: int, patterns: NDArray[np.int16], solution: MasterSolution) -> Floats:
        """``[p]`` by how much each pattern of a group would lower the master's value, for each node that uses it."""
        s = self.structure
        paid = float(solution.duals.tier @ s.opening[: self.tier, g]) if self.tier else 0.0
        gain: Floats = patterns @ solution.duals.cover - (float(s.opening[self.tier, g]) + paid + solution.node[g])
        return gain

    def certify(
        self, at: Duals, work: int, budget: Budget, solution: MasterSolution | None = None
    ) -> tuple[int, bool, bool]:
        """Solve the pricing problem exactly, with limited work for a group, and improve the bound.

        Return how many new patterns there are, whether the bound improved, and whether nothing was cut off.
        """
        s = self.structure
        rounded = round_duals(s, self.tier, self.master.limits, at)
        known = self.pool.pattern.astype(np.int64) @ rounded.cover
        best: list[int] = []
        new, complete = 0, True
        granted = budget.part(self.parameters.certified_share)
        for g, pricer in enumerate(self.pricers):
            least = max(min(rounded.opening[g] + rounded.opening_dual[g], 1 << 50), 0)
            least = max(least, int(known[: len(known)][self.pool.group[: len(known)] == g].max(initial=0)))
            most = granted.work // (s.groups - g) if work > self.parameters.short_pricing else budget.work
            priced = pricer.best(rounded.cover, least, min(work, most))
            granted.spend(priced.work)
            best.append(priced.bound)
            complete &= priced.complete
            patterns = priced.patterns
            if solution is not None and len(patterns):
                patterns = patterns[self._gain(g, patterns, solution) > self.parameters.epsilon * _highest(solution)]
            new += self.pool.add(g, patterns)
            if budget.stopped:
                return new, False, False
        value, share = max((rounded.total(s, best, share), share) for share in rounded.shares(best))
        raised = self.certificate is None or value > self.certificate.value
        if raised:
            scaled = Duals(at.cover * float(share), at.tier * float(share))
            self.certificate = Certificate(value, rounded, share, best, scaled)
        return new, raised, complete


def _highest(solution: MasterSolution) -> float:
    return max(1e-9, float(solution.duals.cover.max(initial=0.0)))
