"""A solve under way: incumbent, bounds, and the time and memory that are left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.problem import Placement
from stowplan.models.result import TRIVIAL, Outcome, TierOutcome, bound_holds
from stowplan.models.stop import Stop
from stowplan.optimizer.checkpoint import Checkpoint
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.memory import Memory

FINEST_GAP = 10**9
"""Gaps are converted to fractions with denominators up to this, so that comparing integers stays exact."""


@dataclass(frozen=True, slots=True)
class Step:
    """An improvement of a value or a bound.

    Parameters
    ----------
    seconds
        Since the start.
    source
        The engine or bound that found it.
    values, bounds
        Value and lower bound of each tier after it.
    elsewhere
        Tells, whenever it is asked, what workers in a cluster have done by then.
    """

    seconds: float
    source: str
    values: tuple[int, ...]
    bounds: tuple[int, ...]
    elsewhere: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True)
class KnownBound:
    """A lower bound of a tier that was proven before the solve, such as for a higher limit on moves.

    Parameters
    ----------
    given
        Values of the tiers above for which it was proven; see `stowplan.models.result.bound_holds`.
    """

    tier: int
    given: tuple[int, ...]
    bound: int
    by: str


Progress = Callable[[Step], None]
"""Called when a value or a bound has improved."""


def silent(step: Step) -> None:
    """Report nothing."""


Found = Callable[[Placement, str], None]
"""Called with every new incumbent, and the engine that found it."""


def unheard(placement: Placement, source: str) -> None:
    """Do nothing with an incumbent."""


class Run:
    """Incumbent, bounds, and budgets of time and memory.

    Parameters
    ----------
    seconds
        Time limit; in deterministic mode, work that is granted to stages in shares.
    memory
        Bytes that may be held, or ``None`` for most of what is free.
    gap
        How far a value may be above its bound, as a share of the value, and be good enough.
    known
        Bounds to begin with; each counts as soon as the values of the tiers above are good enough for it.
    elsewhere
        Tells what workers in a cluster have done.
    checkpoint
        Keeps every incumbent.
    found
        Hears of every incumbent.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        seconds: float,
        deterministic: bool,
        stop: Stop,
        memory: int | None,
        progress: Progress,
        gap: float = 0.0,
        known: Sequence[KnownBound] = (),
        elsewhere: Callable[[], str] | None = None,
        checkpoint: Checkpoint | None = None,
        found: Found = unheard,
    ) -> None:
        self.evaluator = evaluator
        self._elsewhere, self._checkpoint, self._found = elsewhere, checkpoint, found
        self._found_by = ""
        self._known = known
        self.gap = Fraction(gap).limit_denominator(FINEST_GAP)
        self.stop = stop
        self.memory = Memory.granted(memory)
        self.notes: list[str] = []
        self.best = evaluator.problem.start
        self.values = evaluator.evaluate(self.best).values
        self.bounds = [0] * len(self.values)
        self._by = [TRIVIAL] * len(self.values)
        self._bounded = [False] * len(self.values)
        self._given: list[tuple[int, ...]] = [()] * len(self.values)
        self._deadline = Deadline(seconds, deterministic, stop)
        self._granted = 0.0
        self._stages: dict[str, float] = {}
        self._on_tier = [0.0] * len(self.values)
        self._times: dict[str, int] = {}
        self._progress = progress
        self._report("start")
        self._recall()

    @classmethod
    def begun(
        cls,
        evaluator: Evaluator,
        options: Options,
        stop: Stop,
        progress: Progress = silent,
        known: Sequence[KnownBound] = (),
        elsewhere: Callable[[], str] | None = None,
        found: Found = unheard,
    ) -> Run:
        """Return a run under options, from the answer in their checkpoint if it has one.

        Raises
        ------
        InputError
            If the checkpoint cannot be used.
        """
        checkpoint = Checkpoint(options.checkpoint, evaluator.problem) if options.checkpoint else None
        kept = checkpoint.recall() if checkpoint else None
        run = cls(
            evaluator,
            options.time_limit,
            options.deterministic,
            stop,
            options.memory,
            progress,
            options.gap,
            known,
            elsewhere,
            checkpoint,
            found,
        )
        if kept is not None and run.offer(kept, "checkpoint", trusted=False):
            run.note(f"the search began with the answer in {options.checkpoint}")
        return run

    # -- placements and bounds ----------------------------------------------------------------------------------

    @cached_property
    def upper(self) -> NDArray[np.int32]:
        """``[c, n]`` the most pods of each class that a node can hold."""
        return upper_bounds(self.evaluator.problem)

    @cached_property
    def variables(self) -> int:
        """Number of (class, node) pairs in which a pod can be."""
        return int(np.count_nonzero(self.upper))

    def is_open(self, tier: int) -> bool:
        """Whether a tier's value is above what the gap allows."""
        return self.values[tier] > self.enough[tier]

    @property
    def enough(self) -> tuple[int, ...]:
        """For each tier the highest value within the gap of the bound: the bound itself if the gap is 0."""
        return tuple(int(bound / (1 - self.gap)) for bound in self.bounds)

    def bound_by(self, tier: int) -> str:
        """Return what has proven a tier's bound."""
        return self._by[tier]

    def has_bound(self, tier: int) -> bool:
        """Whether a bound of a tier was computed, and not dropped since."""
        return self._bounded[tier]

    @property
    def closed(self) -> bool:
        """Whether no tier is open."""
        return not any(self.is_open(tier) for tier in range(len(self.values)))

    def offer(self, placement: Placement, source: str, *, trusted: bool = True) -> bool:
        """Accept a placement if it is legal and better; the evaluator decides, not the engine it comes from.

        Parameters
        ----------
        trusted
            Whether it should be legal. If it comes from outside, it is ignored silently where it is not.
        """
        evaluation = self.evaluator.evaluate(placement)
        if not evaluation.legal:
            if trusted:
                self.note(f"{source} offered a placement that breaks a rule; it was not used")
            return False
        if evaluation.values >= self.values:
            return False
        self.best, self.values, self._found_by = placement, evaluation.values, source
        self._keep()
        self._found(placement, source)
        self._drop_bounds(source)
        self._report(source)
        self._recall()
        return True

    def _keep(self, *, last: bool = False) -> None:
        """Keep the incumbent where a killed process leaves it; a disk that is full must not end the search."""
        if self._checkpoint is None:
            return
        try:
            if last:
                self._checkpoint.flush()
            else:
                self._checkpoint.keep(self.best, self.values)
        except InputError as error:
            self.note(f"the best answer is not in the checkpoint: {error}")

    def _recall(self) -> None:
        """Accept the bounds that were known before and hold for the incumbent."""
        for one in self._known:
            if one.bound > self.bounds[one.tier]:
                self.raise_bound(one.tier, one.bound, one.by, one.given)

    def raise_bound(self, tier: int, bound: int | None, by: str, given: Sequence[int] | None = None) -> None:
        """Accept a lower bound of a tier if it is at least as good as the best so far, and holds for the incumbent.

        Parameters
        ----------
        given
            Values of the earlier tiers that it was proven for; those of the incumbent if not given.
        """
        reached = self.values[:tier]
        given = reached if given is None else tuple(given)
        if bound is None or bound < self.bounds[tier] or not bound_holds(reached, given):
            return
        if bound > self.values[tier]:
            name = self.evaluator.problem.tiers[tier].name
            self.note(f"{by} claims that {name} cannot be below {bound}, yet it is {self.values[tier]}: bound dropped")
            return
        self.bounds[tier], self._by[tier], self._given[tier] = bound, by, given
        self._bounded[tier] = True
        self._report(by)

    def _drop_bounds(self, source: str) -> None:
        """Drop bounds that do not hold for the incumbent.

        An earlier tier may have become worse since, for the sake of one before it; then `bound_holds` no longer. If
        the bound holds, and the value is below it all the same, then the proof was wrong.
        """
        for tier, (value, bound, given) in enumerate(zip(self.values, self.bounds, self._given, strict=True)):
            outdated = not bound_holds(self.values, given)
            if not outdated and value < bound:
                claim = (
                    f"{self._by[tier]} claimed that {self.evaluator.problem.tiers[tier].name} cannot be below {bound}"
                )
                self.note(f"{claim}, yet {source} found {value}: bound dropped")
            if outdated or value < bound:
                self.bounds[tier], self._by[tier], self._given[tier] = 0, TRIVIAL, ()
                self._bounded[tier] = False

    def note(self, words: str) -> None:
        """Add a note for the reader of the result, unless it is there already."""
        if words not in self.notes:
            self.notes.append(words)

    # -- time and memory ----------------------------------------------------------------------------------------

    @property
    def left(self) -> float:
        """Seconds, or units of work, that are left."""
        if self._deadline.deterministic:
            return max(0.0, self._deadline.seconds - self._granted)
        return self._deadline.remaining

    def share_of(self, seconds: float) -> float:
        """Return the share that some seconds are of those that are left: all of these, if no more are left."""
        return min(1.0, seconds / max(self.left, 1e-9))

    @property
    def over(self) -> bool:
        """Whether to end the solve."""
        return self.stop.is_set() or self.left <= 0

    def affords(self, stage: str) -> bool:
        """Whether there is time for a stage that cannot be limited: always the first time, then by its mean so far."""
        times = self._times.get(stage, 0)
        return not times or self._deadline.deterministic or self.left > self._stages[stage] / times

    @contextmanager
    def stage(self, name: str, share: float, tier: int | None = None) -> Iterator[Deadline]:
        """Grant a stage a share of what is left, account for its time, and end it when memory runs out."""
        began = time.monotonic()
        seconds = self.left * share
        self._granted += seconds
        self._times[name] = self._times.get(name, 0) + 1
        with self.memory.watched(self.stop) as stop:
            try:
                yield Deadline(seconds, self._deadline.deterministic, stop)
            finally:
                seconds = time.monotonic() - began
                self._stages[name] = self._stages.get(name, 0.0) + seconds
                if tier is not None:
                    self._on_tier[tier] += seconds
                if stop.is_set() and not self.stop.is_set():
                    self.note(f"{name} was cut short: it used all the memory that it may")

    # -- the end ------------------------------------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """Return the result of the solve."""
        self._keep(last=True)
        if self._elsewhere is not None:
            found = f"the answer was found by {self._found_by}; " if self._found_by else ""
            self.note(found + self._elsewhere())
        seconds = time.monotonic() - self._deadline.began
        tiers = tuple(
            TierOutcome(tier, value, bound, by, spent)
            for tier, value, bound, by, spent in zip(
                self.evaluator.problem.tiers, self.values, self.bounds, self._by, self._on_tier, strict=True
            )
        )
        return Outcome(self.best, tiers, seconds, tuple(self._stages.items()), self.stop.is_set(), tuple(self.notes))

    def _report(self, source: str) -> None:
        seconds = time.monotonic() - self._deadline.began
        self._progress(Step(seconds, source, self.values, tuple(self.bounds), self._elsewhere))
