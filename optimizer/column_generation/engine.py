"""The pattern engine: bounds and placements from patterns, tier after tier."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.master.core_items import refuted
from stowplan.optimizer.column_generation.master.enumeration import Candidates, candidates
from stowplan.optimizer.column_generation.master.generation import LONG, Generation
from stowplan.optimizer.column_generation.master.restricted import Pool
from stowplan.optimizer.column_generation.master.surrogate import surrogate_duals
from stowplan.optimizer.column_generation.pricing.pricer import Pricer
from stowplan.optimizer.column_generation.primal.assembly import assemble
from stowplan.optimizer.column_generation.primal.diving import dive
from stowplan.optimizer.column_generation.primal.filling import fill
from stowplan.optimizer.column_generation.primal.integer import solve_whole
from stowplan.optimizer.column_generation.structure import structure_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator

QUICK = 3_000_000
"""Work granted to an enumeration of which nobody knows yet whether it ends."""

FEW = 12_000
"""Patterns up to which an enumeration is put into an integer program before prices have settled."""

MANY = 60_000
"""Patterns up to which an integer program is worth trying."""

LONGEST = 400_000_000
"""Work of an enumeration at most."""

ATTEMPTS = 60
"""Dives, enumerations and integer programs at most."""

DIVES = 4
"""Dives between enumerations."""

FILLED = 12
"""Groups of nodes up to which nodes are filled one by one."""

FILLS = 200
"""Fillings at a time, at most."""

FIRST_FILLS = 12
"""Fillings before anything else is tried."""

IDLE = 3
"""Attempts without anything new after which to give up."""

RESTRICTED = 3_000
"""Patterns of the pool in the integer program that only looks for a better placement."""


@dataclass(frozen=True, slots=True)
class PatternOutcome:
    """What patterns say of one tier.

    Parameters
    ----------
    placement
        A legal placement that is better than the incumbent in the tier, and no worse in earlier ones, or ``None``.
    value
        The tier's value, of the placement or else of the incumbent.
    bound
        No legal placement is below it, given what the earlier tiers reached; ``None`` if nothing was proven.
    columns
        Patterns generated so far.
    seconds
        Time it took.
    """

    placement: Placement | None
    value: int
    bound: int | None
    columns: int
    seconds: float


class PatternEngine:
    """Bounds tiers and finds placements by patterns, which are kept from tier to tier.

    Parameters
    ----------
    threads
        How many may look for patterns at once: what they find does not depend on it, unless work is limited.

    Attributes
    ----------
    suits
        Whether the problem has the structure: few enough kinds of classes and groups of nodes.
    """

    def __init__(self, evaluator: Evaluator, threads: int = 1) -> None:
        self.evaluator = evaluator
        self._threads = threads
        self._structure = structure_of(evaluator)
        if self._structure:
            self._pool = Pool(self._structure)
            self._pricers = [Pricer(self._structure, g) for g in range(self._structure.groups)]

    @property
    def suits(self) -> bool:
        """Whether the problem has the structure."""
        return self._structure is not None

    def close_tier(
        self, tier: int, reached: Sequence[int], incumbent: Placement, deadline: Deadline
    ) -> PatternOutcome | None:
        """Bound a tier and look for a better placement; ``None`` if patterns have nothing to say about it.

        Parameters
        ----------
        reached
            Values of the earlier tiers, which must not get worse.
        incumbent
            A legal placement that has them.
        """
        if self._structure is None or not self._structure.speaks_of(tier):
            return None
        began = time.monotonic()
        generation = Generation(self._structure, tier, tuple(reached), self._pool, self._pricers)
        stage = _Stage(self.evaluator, generation, incumbent, deadline, self._threads)
        stage.run()
        bound = stage.bound
        placement = stage.best if stage.best is not incumbent else None
        return PatternOutcome(placement, stage.value, bound, self._pool.size, time.monotonic() - began)


class _Stage:
    """One tier being settled."""

    def __init__(
        self, evaluator: Evaluator, generation: Generation, incumbent: Placement, deadline: Deadline, threads: int
    ) -> None:
        self.evaluator = evaluator
        self.threads = threads
        self.generation = generation
        self.structure = structure = generation.structure
        self.pool = generation.pool
        self.tier = generation.tier
        self.reached = generation.reached
        self.budget = Budget(deadline)
        self.best = incumbent
        self.value = evaluator.evaluate(incumbent).values[self.tier]
        self.bound = 0
        self.exhausted = False
        for n, row in enumerate(structure.patterns(incumbent)):
            self.pool.add(int(structure.group[n]), row[None, :].astype(np.int16))

    @property
    def done(self) -> bool:
        """Whether nothing is left to do, or no time."""
        return self.value <= self.bound or self.exhausted or self.budget.over

    def run(self) -> None:
        """Bound and improve until both meet or time is up."""
        if self.done:
            return
        generation, random = self.generation, np.random.default_rng(self.tier)
        self._fill(self.budget.part(0.1), random, FIRST_FILLS)
        generation.run(surrogate_duals(self.structure, self.tier, self.reached), 0, self.budget)
        self._raise(generation.bound)
        self._refute(self.budget.part(0.9))
        self._prove(self.budget.work // 3, FEW, self.budget.part(0.4))
        if self.done or generation.certificate is None:
            return
        generation.run(generation.certificate.duals, self.value, self.budget.part(0.5), self.bound)
        if generation.solution is not None and not generation.converged:
            # Cut short: the master's own prices may be better than the smoothed ones.
            generation.certify(generation.solution.duals, LONG, self.budget.part(0.2), generation.solution)
        self._raise(generation.bound)
        self._prove(QUICK, FEW, self.budget.part(0.2))
        work, few, idle = QUICK, FEW, 0
        for attempt in range(ATTEMPTS):
            before = (self.value, self.bound, self.pool.size)
            self._fill(self.budget.part(0.2), random)
            for again in range(DIVES):
                self._dive(self.budget.part(0.3), random if attempt or again else None)
            work, few = min(2 * work, LONGEST), min(2 * few, MANY)
            self._prove(work, few, self.budget.part(0.3))
            self._restricted(self.budget.part(0.3))
            idle = idle + 1 if before == (self.value, self.bound, self.pool.size) else 0
            if self.done or idle == IDLE:
                return

    def offer(self, count: Ints) -> bool:
        """Take a solution if the judge agrees that it is better."""
        placement = assemble(self.evaluator.problem, self.structure, self.pool, count, self.best)
        evaluation = self.evaluator.evaluate(placement)
        earlier = all(now <= before for now, before in zip(evaluation.values, self.reached, strict=False))
        if not evaluation.legal or not earlier or evaluation.values[self.tier] >= self.value:
            return False
        self.best, self.value = placement, evaluation.values[self.tier]
        return True

    def _raise(self, bound: int) -> None:
        self.bound = max(self.bound, self.structure.attainable(self.tier, bound))

    def _dive(self, budget: Budget, random: np.random.Generator | None) -> None:
        if self.done:
            return
        count = dive(self.generation, self.value, budget, random)
        if count is not None:
            self.offer(count)

    def _fill(self, budget: Budget, random: np.random.Generator, times: int = FILLS) -> None:
        """Fill nodes at random."""
        if self.structure.groups > FILLED:
            return
        for _ in range(times):
            if self.done or budget.over:
                return
            count = fill(self.generation, self.value, budget, random)
            if count is not None:
                self.offer(count)

    def _refute(self, budget: Budget) -> None:
        """Raise the bound while few patterns are enough to see that it is too low."""
        while not (self.done or budget.over) and refuted(self.generation, self.bound, budget, self.threads):
            self._raise(self.bound + 1)

    def _prove(self, work: int, cap: int, budget: Budget) -> None:
        """Try the bound itself as a value: either a placement has it, or the bound rises by one."""
        while not (self.done or budget.over):
            found = candidates(self.generation, self.bound, work, cap, budget)
            if found is None:
                return
            before = self.bound
            bound, count = self._solve(found, self.bound + 1, budget)
            self._raise(bound)
            if count is not None:
                # The bound can be had with patterns; if not by a legal placement, they know nothing better.
                self.exhausted = not self.offer(count)
            if self.bound == before:
                return

    def _solve(self, found: Candidates, target: int, budget: Budget) -> tuple[int, Ints | None]:
        whole = solve_whole(
            self.structure,
            self.tier,
            self.generation.master.limits,
            self.pool,
            found.chosen,
            target,
            self.bound,
            budget,
            found.missing,
        )
        return whole.bound, whole.count

    def _restricted(self, budget: Budget) -> None:
        """Look for a better placement among the patterns that the master likes best."""
        solution = self.generation.master.solve(budget)
        if self.done or solution is None:
            return
        paid = solution.duals.tier @ self.structure.opening[: self.tier] if self.tier else 0.0
        node = self.structure.opening[self.tier] + paid + solution.node
        reduced = node[self.pool.group] - self.pool.pattern @ solution.duals.cover
        chosen = np.sort(np.argsort(reduced, kind="stable")[:RESTRICTED])
        optional = self.structure.optional
        _, count = self._solve(Candidates(chosen, optional), self.value, budget)
        if count is not None:
            self.offer(count)
