"""The column generation engine: bounds and placements from patterns, tier after tier."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.core_items import refuted
from stowplan.optimizer.column_generation.master.enumeration import Candidates, candidates
from stowplan.optimizer.column_generation.master.generation import Generation
from stowplan.optimizer.column_generation.master.restricted import PatternPool
from stowplan.optimizer.column_generation.master.surrogate import surrogate_duals
from stowplan.optimizer.column_generation.parameters import ColumnGenerationParameters
from stowplan.optimizer.column_generation.pricing.pricer import Pricer
from stowplan.optimizer.column_generation.primal.assembly import assemble
from stowplan.optimizer.column_generation.primal.diving import dive
from stowplan.optimizer.column_generation.primal.filling import fill
from stowplan.optimizer.column_generation.primal.integer import solve_integer
from stowplan.optimizer.column_generation.structure import structure_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator


@dataclass(frozen=True, slots=True)
class PatternOutcome:
    """The result of column generation for one tier.

    Parameters
    ----------
    placement
        A legal placement that is better than the incumbent in the tier, and no worse in earlier ones, or ``None``.
    value
        The tier's value, of the placement or else of the incumbent.
    bound
        Lower bound, given the values of the earlier tiers; ``None`` if nothing was proven.
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
        Threads for core items: results do not depend on their number, unless work is limited.

    Attributes
    ----------
    suits
        Whether the problem has the structure: few enough kinds of classes and groups of nodes.
    """

    def __init__(
        self, evaluator: Evaluator, threads: int = 1, parameters: ColumnGenerationParameters | None = None
    ) -> None:
        self.parameters = parameters = parameters or ColumnGenerationParameters()
        self.evaluator = evaluator
        self._threads = threads
        self._structure = structure_of(evaluator, parameters)
        if self._structure:
            self._pool = PatternPool(self._structure)
            self._pricers = [Pricer(self._structure, g, parameters) for g in range(self._structure.groups)]

    @property
    def suits(self) -> bool:
        """Whether the problem has the structure."""
        return self._structure is not None

    def close_tier(
        self, tier: int, reached: Sequence[int], incumbent: Placement, deadline: Deadline
    ) -> PatternOutcome | None:
        """Bound a tier and look for a better placement; ``None`` if patterns say nothing about it.

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
        generation = Generation(self._structure, tier, tuple(reached), self._pool, self._pricers, self.parameters)
        stage = _Stage(self.evaluator, generation, incumbent, deadline, self._threads)
        stage.run()
        bound = stage.bound
        placement = stage.best if stage.best is not incumbent else None
        return PatternOutcome(placement, stage.value, bound, self._pool.size, time.monotonic() - began)


class _Stage:
    """Column generation for one tier."""

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
        self.parameters = chosen = generation.parameters
        self.budget = Budget(deadline, chosen.work_per_second)
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
        generation, random, chosen = self.generation, np.random.default_rng(self.tier), self.parameters
        self._fill(self.budget.part(chosen.first_fill_share), random, chosen.first_fills)
        generation.run(surrogate_duals(self.structure, self.tier, self.reached), 0, self.budget)
        self._raise(generation.bound)
        self._refute(self.budget.part(chosen.refutation_share))
        self._prove(self.budget.work // 3, chosen.few_patterns, self.budget.part(chosen.first_proof_share))
        if self.done or generation.certificate is None:
            return
        generation.run(generation.certificate.duals, self.value, self.budget.part(chosen.generation_share), self.bound)
        if generation.solution is not None and not generation.converged:
            # Cut short: the master's own duals may be better than the smoothed ones.
            generation.certify(
                generation.solution.duals,
                chosen.long_pricing,
                self.budget.part(chosen.short_share),
                generation.solution,
            )
        self._raise(generation.bound)
        self._prove(chosen.quick_enumeration, chosen.few_patterns, self.budget.part(chosen.short_share))
        work, few, idle = chosen.quick_enumeration, chosen.few_patterns, 0
        for attempt in range(chosen.attempts):
            before = (self.value, self.bound, self.pool.size)
            self._fill(self.budget.part(chosen.short_share), random, chosen.fills)
            for again in range(chosen.dives):
                self._dive(self.budget.part(chosen.step_share), random if attempt or again else None)
            work, few = min(2 * work, chosen.longest_enumeration), min(2 * few, chosen.many_patterns)
            self._prove(work, few, self.budget.part(chosen.step_share))
            self._restricted(self.budget.part(chosen.step_share))
            idle = idle + 1 if before == (self.value, self.bound, self.pool.size) else 0
            if self.done or idle == chosen.idle:
                return

    def offer(self, count: Ints) -> bool:
        """Accept a solution if the evaluator confirms that it is better."""
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

    def _fill(self, budget: Budget, random: np.random.Generator, times: int) -> None:
        """Run randomized fillings."""
        if self.structure.groups > self.parameters.filled_groups:
            return
        for _ in range(times):
            if self.done or budget.over:
                return
            count = fill(self.generation, self.value, budget, random)
            if count is not None:
                self.offer(count)

    def _refute(self, budget: Budget) -> None:
        """Raise the bound while core items prove that it is too low."""
        while not (self.done or budget.over) and refuted(self.generation, self.bound, budget, self.threads):
            self._raise(self.bound + 1)

    def _prove(self, work: int, cap: int, budget: Budget) -> None:
        """Test the bound as a value: either a placement has it, or the bound rises."""
        while not (self.done or budget.over):
            found = candidates(self.generation, self.bound, work, cap, budget)
            if found is None:
                return
            before = self.bound
            bound, count = self._solve(found, self.bound + 1, budget)
            self._raise(bound)
            if count is not None:
                # The bound is attained by patterns; if not by a legal placement, patterns cannot do better.
                self.exhausted = not self.offer(count)
            if self.bound == before:
                return

    def _solve(self, found: Candidates, target: int, budget: Budget) -> tuple[int, Ints | None]:
        whole = solve_integer(
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
        """Look for a better placement among the patterns of least reduced cost."""
        solution = self.generation.master.solve(budget)
        if self.done or solution is None:
            return
        tier_cost = solution.duals.tier @ self.structure.opening[: self.tier] if self.tier else 0.0
        node = self.structure.opening[self.tier] + tier_cost + solution.node
        reduced = node[self.pool.group] - self.pool.pattern @ solution.duals.cover
        chosen = np.sort(np.argsort(reduced, kind="stable")[: self.parameters.restricted_patterns])
        optional = self.structure.optional
        _, count = self._solve(Candidates(chosen, optional), self.value, budget)
        if count is not None:
            self.offer(count)
