"""Solves each exact part by itself, and puts the answers and the bounds together."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

from stowplan.models.problem import Open, Placement, Problem
from stowplan.models.result import TRIVIAL, Outcome, Status
from stowplan.models.stop import Stop
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.parts.elsewhere import PartsElsewhere
from stowplan.optimizer.parts.parameters import PartParameters
from stowplan.optimizer.parts.partition import exact_parts
from stowplan.optimizer.parts.restricted import RestrictedProblem
from stowplan.optimizer.run import Found, KnownBound, Run

NAME = "exact parts"

LEAST_BETWEEN = 20.0
"""Seconds from one offer of the whole to the next, as a multiple of what the last one took."""


class SolvePart(Protocol):
    """Solves the problem of a part."""

    def __call__(
        self,
        problem: Problem,
        seconds: float,
        *,
        candidates: Sequence[Placement],
        stop: Stop,
        known: Sequence[KnownBound],
        found: Found,
    ) -> Outcome:
        """Return the outcome, after telling of every incumbent."""


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """A part, what is known of it, and placements to begin with."""

    part: RestrictedProblem
    known: Sequence[KnownBound]
    candidates: Sequence[Placement]


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

    def suits(self, *, in_cluster: bool) -> bool:
        """Whether the problem has several parts, and solving them one by one gains more than it costs.

        It does where nodes in use are counted, where parts can be proven, and where workers in a cluster solve them
        side by side. Elsewhere one long search of the whole is as good or a little better.
        """
        run, tiers = self._run, self._run.evaluator.problem.tiers
        counts_nodes = any(
            run.is_open(t) and any(isinstance(weighted.term, Open) for weighted in tier.terms)
            for t, tier in enumerate(tiers)
        )
        return bool(self._parts) and (in_cluster or counts_nodes or self._parts[-1].pairs <= self._parameters.provable)

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
        tasks = [
            _Task(part, self._known(values), [part.inside(placement) for placement in (run.best, *self._candidates)])
            for part, values in zip(parts, before, strict=True)
        ]
        outcomes: dict[int, Outcome] = {}
        if elsewhere is not None:
            for task in tasks[:-1]:
                elsewhere.add(task.part.problem, task.candidates, task.known)
            elsewhere.begin(run.left)
            self._here({len(tasks) - 1: tasks[-1]}, solve, outcomes)
            with run.stage(NAME, 1.0) as deadline:
                for number, outcome in elsewhere.end(deadline):
                    outcomes[number] = self._taken(parts[number], outcome)
        self._here({n: task for n, task in enumerate(tasks) if n not in outcomes}, solve, outcomes)
        if len(outcomes) == len(parts):
            self._bound(whole, before, [outcomes[number] for number in range(len(parts))])

    def _here(self, tasks: Mapping[int, _Task], solve: SolvePart, outcomes: dict[int, Outcome]) -> None:
        """Solve parts in this process, as long as there is time, and add what comes of them."""
        run = self._run
        weights = {number: self._parts[number].pairs ** self._parameters.time_exponent for number in tasks}
        for number, task in tasks.items():
            if run.over:
                return
            with run.stage(NAME, weights[number] / sum(weights.values())) as deadline:
                outcome = solve(
                    task.part.problem,
                    deadline.seconds,
                    candidates=task.candidates,
                    stop=deadline.stop,
                    known=task.known,
                    found=self._telling(task.part),
                )
            del weights[number]
            outcomes[number] = self._taken(task.part, outcome)

    def _known(self, values: Sequence[int]) -> list[KnownBound]:
        """Return what is proven of a part with such values: as much as of the whole, down to the first open tier."""
        run = self._run
        proven = takewhile(lambda t: run.values[t] == run.bounds[t], range(len(values)))
        return [KnownBound(t, tuple(values[:t]), values[t], run.bound_by(t)) for t in proven]

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
