"""One problem under several limits on moves: what the solve for one limit finds serves all of them.

An answer with ``k`` moves is an answer for every limit of at least ``k``. A bound for a limit holds for lower ones. The
decomposition by nodes bounds a tier for every limit at once, and its changes serve all limits. Before all that, the
tiers that count unplaced pods and violations are improved with the fewest moves, which says from which limit on their
best values are reached.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from stowplan.models.options import LEAST_TIME, Options
from stowplan.models.problem import (
    Move,
    MoveBudget,
    Origin,
    Placement,
    Problem,
    Tier,
    Unplaced,
    Violation,
    Weighted,
)
from stowplan.models.result import TRIVIAL, Outcome, TierOutcome, bound_holds, revalued
from stowplan.models.stop import Stop
from stowplan.optimizer.annealing.anneal import anneal
from stowplan.optimizer.annealing.schedule import Calibration
from stowplan.optimizer.backend import Backend, ProcessBackend, named_backend, processors
from stowplan.optimizer.constructive import warm_start
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.node_changes.engine import NAME as NODE_CHANGES
from stowplan.optimizer.node_changes.engine import SharedChanges
from stowplan.optimizer.parameters import parameters_of
from stowplan.optimizer.portfolio import solve
from stowplan.optimizer.run import KnownBound, Progress, silent

LEAST_MOVES = "least moves of the tiers above"
"""What results call the bound that says from which limit on a tier can improve."""


def limited(problem: Problem, limit: int | None) -> Problem:
    """Return the problem with at most so many moves."""
    if limit is None:
        return problem
    return replace(problem, rules=(*problem.rules, MoveBudget(Origin("--max-moves"), limit)))


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A legal placement, its values, and how many pods it moves."""

    placement: Placement
    values: tuple[int, ...]
    moves: int


@dataclass(slots=True, eq=False)
class _Limit:
    """What is known for one limit; ``None`` is no limit."""

    limit: int | None
    tried: bool = False
    turns: int = 0
    outcome: Outcome | None = None
    notes: list[str] = field(default_factory=list)

    def admits(self, moves: int) -> bool:
        """Whether so many moves are within the limit."""
        return self.limit is None or moves <= self.limit


class MoveLimits:
    """Solves of one problem under rising limits on moves.

    Parameters
    ----------
    problem
        The problem without the limits.
    limits
        Rising limits; ``None``, no limit, comes last.
    options
        The time limit is for all of them together.
    candidates
        Placements to start from; illegal ones are passed over.
    backend
        Where sub-problems are solved; processes of its own if not given.
    """

    def __init__(
        self,
        problem: Problem,
        limits: Sequence[int | None],
        options: Options,
        *,
        candidates: Sequence[Placement] = (),
        stop: Stop | None = None,
        progress: Progress = silent,
        backend: Backend | None = None,
    ) -> None:
        self.problem, self.options = problem, options
        self.evaluator = Evaluator(problem)
        self._today = self.evaluator.evaluate(problem.start).values
        self.stop, self._progress = stop or Stop(), progress
        self._backend = backend or named_backend(options, self.stop)
        self.limits = [_Limit(limit) for limit in limits]
        self.answers: list[Answer] = []
        self._bounds: list[tuple[int | None, KnownBound]] = []
        self._changes: SharedChanges = {}
        self._began, self._granted = time.monotonic(), 0.0
        self._all_parameters = parameters_of(options)
        self._parameters = self._all_parameters.move_limits
        for placement in (problem.start, *candidates):
            self.offer(placement)

    # -- what is known ------------------------------------------------------------------------------------------

    def offer(self, placement: Placement) -> None:
        """Add a placement to the answers, if it is legal."""
        evaluation = self.evaluator.evaluate(placement)
        if evaluation.legal:
            self.answers.append(Answer(placement, evaluation.values, evaluation.moves))

    def best(self, limit: int | None) -> Answer:
        """Return the best answer within a limit, among equal ones that with the fewest moves."""
        within = [answer for answer in self.answers if limit is None or answer.moves <= limit]
        return min(within, key=lambda answer: (answer.values, answer.moves))

    def outcome(self, limit: int | None) -> Outcome | None:
        """Return the best answer within a limit with the best bounds, or ``None`` if the limit was not tried yet."""
        this = next(one for one in self.limits if one.limit == limit)
        if not this.tried:
            return None
        best, known = self.best(limit), this.outcome
        if known is None:
            tiers: Sequence[TierOutcome] = [
                TierOutcome(tier, value, 0, TRIVIAL, 0.0)
                for tier, value in zip(self.problem.tiers, best.values, strict=True)
            ]
            known = Outcome(best.placement, tiers, 0.0, (), self.stop.is_set(), ())
        tiers = self._bounded(limit, revalued(known.tiers, best.values))
        placement = best.placement if best.values < known.values else known.placement
        return replace(known, placement=placement, tiers=tiers)

    def _bounded(self, limit: int | None, tiers: Sequence[TierOutcome]) -> tuple[TierOutcome, ...]:
        """Give tiers the best bounds that are known."""
        values, found = tuple(tier.value for tier in tiers), list(tiers)
        for one in self._known(limit):
            own = found[one.tier]
            if own.bound < one.bound <= own.value and bound_holds(values[: one.tier], one.given):
                found[one.tier] = replace(own, bound=one.bound, bound_by=one.by)
        return tuple(found)

    def _known(self, limit: int | None) -> list[KnownBound]:
        """Return the bounds that hold for a limit."""
        found = [
            bound
            for proven_for, bound in self._bounds
            if proven_for is None or (limit is not None and limit <= proven_for)
        ]
        most = self.problem.pods if limit is None else limit
        for (tier, given), generation in self._changes.items():
            if generation is not None and generation.lines:
                found.append(KnownBound(tier, given, generation.bound(most), NODE_CHANGES))
        return found

    # -- work ---------------------------------------------------------------------------------------------------

    @property
    def _left(self) -> float:
        """Seconds, or units of work, that are left."""
        if self.options.deterministic:
            return max(0.0, self.options.time_limit - self._granted)
        return max(0.0, self.options.time_limit - (time.monotonic() - self._began))

    def work(self, found: Callable[[int | None], None] = lambda limit: None) -> None:
        """Solve for every limit, and then again where the gap is largest, until time is up.

        Parameters
        ----------
        found
            Called with a limit once it was searched, and again when its answer is better.
        """
        chosen = self._parameters
        processes = processors(self.options.processes)
        pool = not self.options.deterministic and processes > 1 and self._left >= chosen.pool_worth
        own = ProcessBackend(processes, self.stop) if self._backend is None and pool else None
        if own is None:
            self._work(found, self._backend)
            return
        with closing(own):
            self._work(found, own)

    def _work(self, found: Callable[[int | None], None], backend: Backend | None) -> None:
        chosen = self._parameters
        self._construct(None, len(self._leading))
        self._reach_first_tiers(self._left * chosen.first_tiers_share, backend)
        for one in self.limits:
            if self.stop.is_set():
                return
            self._construct(one.limit)
            one.tried = True
            found(one.limit)
        self._anneal_each(found)
        least = min(chosen.least_turn, self.options.time_limit / len(self.limits))
        while not self.stop.is_set() and self._left >= least / 2:
            one = max(self.limits, key=self._promise)
            if self._promise(one) <= 0:
                return
            before = self.best(one.limit).values
            weight = chosen.unlimited_weight if one.limit is None else 1.0
            self._turn(one, min(self._left, max(least, self._left * chosen.turn_share) * weight), backend)
            if self.best(one.limit).values < before:
                one.turns = 1
                for other in self.limits:
                    if one.limit is not None and other.admits(one.limit):
                        found(other.limit)
            found(one.limit)

    def _construct(self, limit: int | None, tiers: int | None = None) -> None:
        """Run the constructive heuristics for a limit, from the best answer within it."""
        warm_start(
            Evaluator(limited(self.problem, limit)),
            self.best(limit).placement,
            Deadline(self._left * self._parameters.constructive_share, self.options.deterministic, self.stop),
            self.offer,
            tiers=tiers,
            parameters=self._all_parameters.constructive,
        )

    def _anneal_each(self, found: Callable[[int | None], None]) -> None:
        """Anneal for each limit from the best answer within it, before bounds take time.

        Limits rise, so an answer serves the next ones as a start. With no moves, there is little to search.
        """
        chosen = self._parameters
        searched = [one for one in self.limits if one.limit != 0]
        if not self.options.kernels or not searched:
            return
        weights = [chosen.unlimited_weight if one.limit is None else 1.0 for one in searched]
        whole = self._left * chosen.annealing_share
        calibrations: dict[int, Calibration] = {}
        for one, weight in zip(searched, weights, strict=True):
            seconds, before = whole * weight / sum(weights), self.best(one.limit).values
            if self.stop.is_set() or self._left < seconds:
                return
            known = self.outcome(one.limit)
            anneal(
                Evaluator(limited(self.problem, one.limit)),
                self.best(one.limit).placement,
                Deadline(seconds, self.options.deterministic, self.stop),
                self.options.seed,
                floor=[tier.bound for tier in known.tiers] if known is not None else None,
                calibrations=calibrations,
                found=self.offer,
                parameters=self._all_parameters.annealing,
            )
            self._granted += seconds
            if self.best(one.limit).values < before:
                found(one.limit)

    @cached_property
    def _leading(self) -> range:
        """The tiers up to the last one that counts violations or unplaced pods and has some today."""
        counting = [t for t, tier in enumerate(self.problem.tiers) if self._today[t] and _repairs(tier)]
        return range(max(counting, default=-1) + 1)

    def _promise(self, one: _Limit) -> float:
        """Return how much another turn may bring: the largest gap of a tier, less with each turn without gain.

        A gap counts as the geometric mean of its shares of what the limit and of what any number of moves can gain.
        The leading tiers were searched for all limits before, so a gap that they still have counts as one that resists:
        it must not draw the turns of the tiers below, which have had none.
        """
        chosen = self._parameters
        if one.turns > (chosen.most_turns if one.limit != 0 else 0):
            return 0.0
        outcome, whole = self.outcome(one.limit), self.outcome(self.limits[-1].limit)
        assert outcome is not None
        assert whole is not None
        gaps = [
            (tier.value - tier.bound)
            / math.sqrt(max(1, max(today, tier.value) - tier.bound) * max(1, max(today, tier.value) - most.bound))
            for today, tier, most in zip(self._today, outcome.tiers, whole.tiers, strict=True)
        ]
        resists = [chosen.searched_factor ** (one.turns + 1) if t in self._leading else 1.0 for t in range(len(gaps))]
        return (
            max(gap * factor for gap, factor in zip(gaps, resists, strict=True))
            * 0.5**one.turns
            * (chosen.no_moves_promise if one.limit == 0 else 1.0)
        )

    def _turn(self, one: _Limit, seconds: float, backend: Backend | None) -> None:
        """Solve for one limit, from the best answer within it."""
        self._granted += seconds
        # In short turns, the exact model of a large problem would only be built.
        largest = min(self.options.largest_model, int(seconds * self._parameters.variables_per_second))
        seed = (self.options.seed + one.turns) % 2**31
        outcome = solve(
            limited(self.problem, one.limit),
            replace(self.options, time_limit=max(LEAST_TIME, seconds), seed=seed, largest_model=largest),
            candidates=[self.best(one.limit).placement],
            stop=self.stop,
            progress=self._progress,
            backend=backend,
            known=self._known(one.limit),
            changes=self._changes,
        )
        one.turns += 1
        self.offer(outcome.placement)
        self._keep(one.limit, outcome.tiers)
        one.notes += [note for note in outcome.notes if note not in one.notes]
        one.outcome = replace(outcome, notes=tuple(one.notes))

    def _keep(self, limit: int | None, tiers: Sequence[TierOutcome]) -> None:
        """Keep the bounds of a solve for a limit."""
        values = tuple(tier.value for tier in tiers)
        for t, tier in enumerate(tiers):
            if tier.bound > 0 and t < len(self.problem.tiers):
                self._bounds.append((limit, KnownBound(t, values[:t], tier.bound, tier.bound_by)))

    def _reach_first_tiers(self, seconds: float, backend: Backend | None) -> None:
        """Improve each leading tier of violations or unplaced pods with the fewest moves.

        A placement that is as good in these tiers takes as many moves as the bound says, so for lower limits a tier
        stays above its best value.
        """
        leading = [t for t in self._leading if self._today[t]]
        # All of them first: what is proven of each serves every limit. Then the moves that each alone takes.
        for t in reversed(leading):
            between = any(one.limit and one.limit < self.best(None).moves for one in self.limits)
            if self.stop.is_set() or (t < leading[-1] and not between):
                return
            few = self._parameters.few_tiers_share if between else 0.0
            self._reach(t, seconds * (1 - few if t == leading[-1] else few / (len(leading) - 1)), between, backend)

    def _reach(self, t: int, seconds: float, counting: bool, backend: Backend | None) -> None:
        """Improve the tiers up to one, with the fewest moves if these count."""
        moves = Tier("moves needed", (Weighted(1, Move(Origin("moves"), np.ones_like(self.problem.size))),))
        self._granted += seconds
        outcome = solve(
            replace(self.problem, tiers=(*self.problem.tiers[: t + 1], *([moves] if counting else []))),
            replace(self.options, time_limit=max(LEAST_TIME, seconds)),
            candidates=[answer.placement for answer in self.answers],
            stop=self.stop,
            backend=backend,
            known=[bound for bound in self._known(None) if bound.tier <= t],
        )
        self.offer(outcome.placement)
        reached, needed = outcome.tiers[: t + 1], outcome.tiers[-1]
        self._keep(None, reached)
        values = tuple(tier.value for tier in reached)
        if counting and needed.bound > 0 and values[t] < self._today[t]:
            self._bounds.append((needed.bound - 1, KnownBound(t, values[:t], values[t] + 1, LEAST_MOVES)))


def _repairs(tier: Tier) -> bool:
    """Whether a tier counts violations or unplaced pods."""
    return any(isinstance(weighted.term, Violation | Unplaced) for weighted in tier.terms)
