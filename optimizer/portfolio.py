"""Solve: search finds, relaxations bound, CP-SAT proves; whatever happens, there is an answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.errors import InternalError
from models.problem import Placement, Problem, Tier
from models.result import NOT_NEGATIVE, Outcome, TierOutcome
from optimizer.bounds import best_bound
from optimizer.control import Deadline, Stop
from optimizer.cpsat.solve import MANY_WORKERS, solve_tier
from optimizer.cpsat.variables import most
from optimizer.evaluate import Judge
from optimizer.search.annealing import anneal

LARGEST_MODEL = 60_000
"""(class, node) variables up to which the exact model is built; beyond, it would spend its time in presolve."""

Progress = Callable[[float, str, tuple[int, ...]], None]
"""Called with the seconds since the start, what happened, and the value of each tier."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to solve.

    Parameters
    ----------
    time_limit
        Seconds. In deterministic mode, units of work that take about a second each.
    deterministic
        Give the same answer for the same input and seed, whatever the machine.
    workers
        Threads of CP-SAT.
    largest_model
        (class, node) variables up to which the exact model is tried.
    """

    time_limit: float = 20.0
    deterministic: bool = False
    seed: int = 0
    workers: int = MANY_WORKERS
    largest_model: int = LARGEST_MODEL


@dataclass
class _Run:
    """One solve under way."""

    judge: Judge
    options: Options
    deadline: Deadline
    best: Placement
    progress: Progress
    began: float = field(default_factory=time.monotonic)
    stages: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    values: tuple[int, ...] = ()
    relaxed: int = 0

    def affords_relaxation(self) -> bool:
        """Whether there is time for one more relaxation. The first is made in any case, so that there is a bound."""
        if self.deadline.stop.is_set() or self.options.deterministic or not self.relaxed:
            return not self.deadline.stop.is_set()
        return self.deadline.remaining > self.stages["relaxation"] / self.relaxed

    @cached_property
    def upper(self) -> NDArray[np.int32]:
        """``[c, n]`` the most pods of each class that a node can hold by itself."""
        return most(self.judge.problem)

    def __post_init__(self) -> None:
        self.values = self.judge.evaluate(self.best).values

    def offer(self, placement: Placement, source: str) -> bool:
        """Take a placement if it is legal and better; the judge decides, not the engine it comes from."""
        evaluation = self.judge.evaluate(placement)
        if not evaluation.legal:
            self.notes.append(f"{source} offered a placement that breaks a rule; it was not used")
            return False
        if evaluation.values >= self.values:
            return False
        self.best, self.values = placement, evaluation.values
        self.progress(time.monotonic() - self.began, source, self.values)
        return True

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Book the time of a stage."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.monotonic() - began


def solve(
    problem: Problem,
    options: Options | None = None,
    *,
    candidates: Sequence[Placement] = (),
    stop: Stop | None = None,
    progress: Progress = lambda seconds, source, values: None,
) -> Outcome:
    """Find the best placement there is, or the best that time allows, with a bound for every tier.

    Parameters
    ----------
    candidates
        Placements to start from beside the problem's own start; illegal ones are passed over.
    stop
        Set it from anywhere to get the best answer so far.
    """
    options = options or Options()
    deadline = Deadline(options.time_limit, options.deterministic, stop or Stop())
    run = _Run(Judge(problem), options, deadline, problem.start, progress)
    progress(0.0, "start", run.values)
    exact = int(np.count_nonzero(run.upper)) <= options.largest_model
    with run.stage("search"):
        _search(run, [problem.start, *candidates], 0.3 if exact else 0.85)
    if not exact:
        run.notes.append("too large for the exact model: answered by search, with bounds from a relaxation")
    tiers = [_settle(run, t, exact) for t in range(len(problem.tiers))]
    # A later tier can only have been reached with the earlier ones as they are, so the values are those of the end.
    outcomes = tuple(
        _outcome(run, tier, value, *bounded)
        for tier, value, bounded in zip(problem.tiers, run.values, tiers, strict=True)
    )
    seconds = time.monotonic() - run.began
    return Outcome(run.best, outcomes, seconds, tuple(run.stages.items()), deadline.stop.is_set(), tuple(run.notes))


def _outcome(run: _Run, tier: Tier, value: int, bound: int, by: str, seconds: float) -> TierOutcome:
    if bound > value:
        run.notes.append(f"{by} claims that {tier.name} cannot be below {bound}, yet it is {value}: bound dropped")
        bound, by = min(0, value - 1), NOT_NEGATIVE
    return TierOutcome(tier, value, bound, by, seconds)


def _search(run: _Run, starts: Sequence[Placement], share: float) -> None:
    """Descend from the start, and from every candidate that is legal and better than the start."""
    before = run.values
    for i, start in enumerate(starts):
        evaluation = run.judge.evaluate(start)
        if i and not (evaluation.legal and evaluation.values < before):
            continue
        run.offer(start, "candidate")
        deadline = run.deadline.share(share / len(starts))
        run.offer(anneal(run.judge, start, deadline, run.options.seed), "search")


def _settle(run: _Run, tier: int, exact: bool) -> tuple[int, str, float]:
    """Improve one tier and bound it; return the bound, what proved it, and the time it took."""
    began = time.monotonic()
    bound, by = 0, NOT_NEGATIVE

    def raised(new: int | None, source: str) -> None:
        nonlocal bound, by
        if new is not None and new >= bound:
            bound, by = new, source

    if run.values[tier] > bound and run.affords_relaxation():
        with run.stage("relaxation"):
            found = best_bound(run.judge, run.upper, tier, run.values[:tier], run.values[tier], run.deadline.share(0.3))
            if found:
                raised(*found)
        run.relaxed += 1
    if run.values[tier] > bound and exact and not run.deadline.over:
        with run.stage("CP-SAT"):
            raised(_prove(run, tier), "CP-SAT")
    return bound, by, time.monotonic() - began


def _prove(run: _Run, tier: int) -> int | None:
    """Let CP-SAT improve and bound a tier."""
    open_tiers = sum(value > 0 for value in run.values[tier:])
    try:
        attempt = solve_tier(
            run.judge,
            tier,
            run.values[:tier],
            run.best,
            run.deadline.share(1 / max(1, open_tiers)),
            workers=run.options.workers,
            seed=run.options.seed,
        )
    except InternalError as error:
        run.notes.append(f"CP-SAT was not used for tier {run.judge.problem.tiers[tier].name}: {error}")
        return None
    improved = attempt.placement is not None and run.offer(attempt.placement, "CP-SAT")
    if improved and tier + 1 < len(run.values) and not run.deadline.over:
        # CP-SAT looked at this tier alone; the later ones are usually worse for it, and quickly mended.
        run.offer(anneal(run.judge, run.best, run.deadline.share(0.2), run.options.seed), "search")
    return attempt.bound
