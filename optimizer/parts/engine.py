"""Solves each exact part by itself, and puts the answers and the bounds together."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stowplan.models.problem import Placement, Problem
from stowplan.models.result import TRIVIAL, Outcome, Status
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.parts.parameters import PartParameters
from stowplan.optimizer.parts.partition import exact_parts
from stowplan.optimizer.parts.restricted import RestrictedProblem
from stowplan.optimizer.run import Found, Run

NAME = "exact parts"

LEAST_BETWEEN = 20.0
"""Seconds from one offer of the whole to the next, as a multiple of what the last one took."""


class SolvePart(Protocol):
    """Solves the problem of a part."""

    def __call__(
        self, problem: Problem, seconds: float, *, candidates: Sequence[Placement], stop: Stop, found: Found
    ) -> Outcome:
        """Return the outcome, after telling of every incumbent."""


@dataclass(frozen=True, slots=True)
class _Solved:
    """What came of a part: its values at the start of its solve, and the outcome."""

    before: tuple[int, ...]
    outcome: Outcome


class PartEngine:
    """Solves the parts of a problem one after the other, the smallest first.

    Parameters
    ----------
    candidates
        Placements of the whole to begin with.
    """

    def __init__(self, run: Run, parameters: PartParameters, candidates: Sequence[Placement] = ()) -> None:
        self._run, self._parameters, self._candidates = run, parameters, candidates
        self._parts = exact_parts(run.evaluator.problem, run.upper, parameters)

    @property
    def suits(self) -> bool:
        """Whether the problem has several parts."""
        return bool(self._parts)

    def work(self, solve: SolvePart) -> None:
        """Solve all parts, as long as there is time, and add their bounds up."""
        run = self._run
        whole = run.values
        solved: list[_Solved] = []
        weights = [part.pairs**self._parameters.time_exponent for part in self._parts]
        for number, part in enumerate(self._parts):
            if run.over:
                return
            with run.stage(NAME, weights[number] / sum(weights[number:])) as deadline:
                solved.append(self._solve(RestrictedProblem(run.evaluator.problem, part), deadline, solve))
        self._bound(whole, solved)

    def _solve(self, part: RestrictedProblem, deadline: Deadline, solve: SolvePart) -> _Solved:
        """Solve one part, and offer the whole with each of its incumbents, if that takes no time to speak of."""
        run = self._run
        told, took = -math.inf, 0.0

        def tell(placement: Placement, source: str) -> None:
            nonlocal told, took
            began = time.monotonic()
            if began - told > LEAST_BETWEEN * took:
                run.offer(part.outside(run.best, placement), source)
                told = time.monotonic()
                took = told - began

        start = part.inside(run.best)
        before = Evaluator(part.problem).evaluate(start).values
        candidates = [start, *(part.inside(candidate) for candidate in self._candidates)]
        outcome = solve(part.problem, deadline.seconds, candidates=candidates, stop=deadline.stop, found=tell)
        run.offer(part.outside(run.best, outcome.placement), NAME)
        for note in outcome.notes:
            run.note(note)
        return _Solved(before, outcome)

    def _bound(self, whole: Sequence[int], solved: Sequence[_Solved]) -> None:
        """Add up the bounds of each tier, as long as all parts have proven the tiers above it.

        Where one has not, it may trade a tier above with another part, of which the bound of neither knows.
        """
        for t, value in enumerate(whole):
            tiers = [each.outcome.tiers[t] for each in solved]
            change = sum(tier.bound - each.before[t] for tier, each in zip(tiers, solved, strict=True))
            names = sorted({tier.bound_by for tier in tiers} - {TRIVIAL})
            self._run.raise_bound(t, value + change, f"{' and '.join(names)}, part by part" if names else NAME)
            if any(tier.status is not Status.OPTIMAL for tier in tiers):
                return
