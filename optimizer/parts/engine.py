"""Solves each exact part by itself, and puts the answers and the bounds together."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from stowplan.models.problem import Placement, Problem
from stowplan.models.result import TRIVIAL, Outcome, Status
from stowplan.models.stop import Stop
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.parts.elsewhere import PartsElsewhere
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


class PartEngine:
    """Solves the parts of a problem one after the other, the smallest first; in a Ray cluster all side by side.

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

    def work(self, solve: SolvePart, elsewhere: PartsElsewhere | None = None) -> None:
        """Solve all parts, as long as there is time, and add their bounds up.

        Parameters
        ----------
        elsewhere
            Solves all parts but the largest one; those that it does not answer are solved here if there is time.
        """
        run = self._run
        whole = run.values
        parts = [RestrictedProblem(run.evaluator.problem, part) for part in self._parts]
        before = [Evaluator(part.problem).evaluate(part.inside(run.best)).values for part in parts]
        outcomes: dict[int, Outcome] = {}
        if elsewhere is not None:
            others = {number: (part.problem, self._beginnings(part)) for number, part in enumerate(parts[:-1])}
            elsewhere.begin(others, run.left)
            self._here({len(parts) - 1: parts[-1]}, solve, outcomes)
            with run.stage(NAME, 1.0) as deadline:
                for number, outcome in elsewhere.end(deadline):
                    outcomes[number] = self._taken(parts[number], outcome)
        self._here({n: part for n, part in enumerate(parts) if n not in outcomes}, solve, outcomes)
        if len(outcomes) == len(parts):
            self._bound(whole, before, [outcomes[number] for number in range(len(parts))])

    def _here(self, parts: Mapping[int, RestrictedProblem], solve: SolvePart, outcomes: dict[int, Outcome]) -> None:
        """Solve parts in this process, as long as there is time, and add what comes of them."""
        run = self._run
        weights = {number: self._parts[number].pairs ** self._parameters.time_exponent for number in parts}
        for number, part in parts.items():
            if run.over:
                return
            with run.stage(NAME, weights[number] / sum(weights.values())) as deadline:
                outcome = solve(
                    part.problem,
                    deadline.seconds,
                    candidates=self._beginnings(part),
                    stop=deadline.stop,
                    found=self._telling(part),
                )
            del weights[number]
            outcomes[number] = self._taken(part, outcome)

    def _beginnings(self, part: RestrictedProblem) -> list[Placement]:
        return [part.inside(placement) for placement in (self._run.best, *self._candidates)]

    def _telling(self, part: RestrictedProblem) -> Found:
        """Return what offers the whole with incumbents of a part, if that takes no time to speak of."""
        told, took = -math.inf, 0.0

        def tell(placement: Placement, source: str) -> None:
            nonlocal told, took
            began = time.monotonic()
            if began - told > LEAST_BETWEEN * took:
                self._run.offer(part.outside(self._run.best, placement), source)
                told = time.monotonic()
                took = told - began

        return tell

    def _taken(self, part: RestrictedProblem, outcome: Outcome) -> Outcome:
        """Return the outcome of a part, after taking over its placement and its notes."""
        self._run.offer(part.outside(self._run.best, outcome.placement), NAME)
        for note in outcome.notes:
            self._run.note(note)
        return outcome

    def _bound(self, whole: Sequence[int], before: Sequence[Sequence[int]], outcomes: Sequence[Outcome]) -> None:
        """Add up the bounds of each tier, as long as all parts have proven the tiers above it.

        Where one has not, it may trade a tier above with another part, of which the bound of neither knows.
        """
        for t, value in enumerate(whole):
            tiers = [outcome.tiers[t] for outcome in outcomes]
            change = sum(tier.bound - values[t] for tier, values in zip(tiers, before, strict=True))
            names = sorted({tier.bound_by for tier in tiers} - {TRIVIAL})
            self._run.raise_bound(t, value + change, f"{' and '.join(names)}, part by part" if names else NAME)
            if any(tier.status is not Status.OPTIMAL for tier in tiers):
                return
