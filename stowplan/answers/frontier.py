"""The best placement for each of several limits on the number of moves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from stowplan.answers.assessment import Assessor
from stowplan.answers.solve import Solution, solve_snapshot
from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.html import html_table, number
from stowplan.models.problem import MoveBudget, Origin
from stowplan.models.result import Status, TierOutcome, bound_holds, revalued
from stowplan.models.stop import Stop
from stowplan.models.words import plural
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.portfolio import Options
from stowplan.optimizer.run import Progress, silent
from stowplan.plans.replay.outcome import ObjectiveValue, share_kept
from stowplan.plugins_compat.compiler.compile import Compiled

LADDER: tuple[int | None, ...] = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, None)
"""Limits that are tried; ``None`` is no limit. Limits of at least the number of pods are left out."""


@dataclass(frozen=True, eq=False)
class Point:
    """The best placement found for one limit.

    Parameters
    ----------
    limit
        Maximum number of moves; ``None`` for no limit.
    moves
        Number of moves.
    share
        Share of the largest gain that is reached, by the first tier that improves; ``None`` if none does.
    """

    limit: int | None
    moves: int
    tiers: Sequence[TierOutcome]
    share: float | None
    assignment: Assignment

    @property
    def values(self) -> tuple[int, ...]:
        """Value of each tier."""
        return tuple(tier.value for tier in self.tiers)

    @property
    def proven(self) -> bool:
        """Whether nothing better exists within the limit."""
        return all(tier.status is Status.OPTIMAL for tier in self.tiers)


@dataclass(frozen=True, eq=False)
class Frontier:
    """Points by rising limit; none is worse than the one before.

    Parameters
    ----------
    compiled
        The problem, without a limit on moves.
    points
        One point for each limit that was tried.
    before
        Value of each tier today.
    complete
        Whether all limits were tried.
    """

    compiled: Compiled
    before: tuple[int, ...]
    points: Sequence[Point]
    complete: bool

    def __repr__(self) -> str:
        limits = ", ".join("any" if point.limit is None else str(point.limit) for point in self.points)
        return f"<Frontier of {plural(len(self.points), 'point')}: at most {limits} moves>"

    def _repr_html_(self) -> str:
        tiers = [outcome.tier for outcome in self.points[0].tiers] if self.points else []
        rows = []
        for point in self.points:
            values = [number(tier.shown(value)) for tier, value in zip(tiers, point.values, strict=True)]
            rows.append(("any" if point.limit is None else point.limit, point.moves, *values))
        return html_table("Frontier", rows, ("at most", "moves", *(tier.name for tier in tiers)))


def ladder(compiled: Compiled, limits: Sequence[int] | None = None) -> list[int | None]:
    """Return the limits to try, rising, with no limit as the last.

    Parameters
    ----------
    limits
        Limits to try instead of `LADDER`.

    Raises
    ------
    InputError
        If one of them is negative.
    """
    if limits is not None and (wrong := [limit for limit in limits if limit < 0]):
        raise InputError(f"is {wrong[0]}; must be 0 or more", field="--moves")
    pods = sum(1 for pod in compiled.pods if pod.node_name)
    chosen = [limit for limit in LADDER if limit is not None] if limits is None else sorted(set(limits))
    return [*(limit for limit in chosen if limit < pods), None]


def climb(
    compiled: Compiled,
    options: Options,
    *,
    limits: Sequence[int] | None = None,
    stop: Stop | None = None,
    progress: Progress = silent,
    tell: Callable[[Point], None] = lambda point: None,
    backend: Backend | None = None,
) -> Frontier:
    """Find the best placement for each limit on moves, each search beginning where the last one ended.

    A placement within one limit is within all higher ones, so values never rise with the limit.

    Parameters
    ----------
    compiled
        The problem, without a limit on moves.
    options
        The time limit is for all limits, in equal parts; what one limit leaves over is for those after it.
    limits
        Limits to try besides no limit; by default those of `LADDER`.
    stop
        Set it to have the points that are found by then.
    tell
        Called with every point as it is found; its share is not known yet.
    backend
        Solves sub-problems; by default processes of its own.

    Raises
    ------
    InputError
        If a limit is negative.
    """
    stop = stop or Stop()
    steps = ladder(compiled, limits)
    began = time.monotonic()
    whole = Assessor(compiled)
    before = whole.today.evaluation.values
    found: list[Point] = []
    candidates: list[Assignment] = []
    for limit in steps:
        if stop.is_set():
            break
        left = options.time_limit - (time.monotonic() - began)
        share = options.time_limit / len(steps) if options.deterministic else left / (len(steps) - len(found))
        each = replace(options, time_limit=max(0.1, share))
        assessor = whole if limit is None else Assessor(_limited(compiled, limit), whole.admission)
        solution = solve_snapshot(
            assessor.compiled,
            each,
            candidates=candidates,
            assessor=assessor,
            stop=stop,
            progress=progress,
            backend=backend,
        )
        point = _point(limit, solution, found[-1] if found else None)
        found.append(point)
        candidates = [point.assignment]
        tell(point)
    complete = len(found) == len(steps) and not stop.is_set()
    return Frontier(compiled, before, _shared(before, _bounded(found)), complete)


def _limited(compiled: Compiled, limit: int) -> Compiled:
    problem = compiled.problem
    rules = (*problem.rules, MoveBudget(Origin("--max-moves"), limit))
    return replace(compiled, problem=replace(problem, rules=rules))


def _point(limit: int | None, solution: Solution, last: Point | None) -> Point:
    """Return the point of a solution, or that of the last limit if it is better."""
    outcome = solution.outcome
    if last is not None and last.values < outcome.values:
        return Point(limit, last.moves, revalued(outcome.tiers, last.values), None, last.assignment)
    return Point(limit, solution.evaluation.moves, tuple(outcome.tiers), None, solution.assignment)


def _bounded(points: Sequence[Point]) -> list[Point]:
    """Give each point the bounds of higher limits where they are better: what these allow includes what it allows."""
    found = list(points)
    for i in range(len(found) - 2, -1, -1):
        mine, next_values = found[i].tiers, found[i + 1].values
        tiers = [
            replace(own, bound=higher.bound, bound_by=higher.bound_by)
            if own.bound < higher.bound <= own.value and bound_holds(found[i].values[:t], next_values[:t])
            else own
            for t, (own, higher) in enumerate(zip(mine, found[i + 1].tiers, strict=True))
        ]
        found[i] = replace(found[i], tiers=tuple(tiers))
    return found


def _shared(before: tuple[int, ...], points: Sequence[Point]) -> list[Point]:
    """Return the points with their shares of the last one's gain."""
    if not points:
        return []
    start, best = ObjectiveValue(before, True), ObjectiveValue(points[-1].values, True)
    return [replace(point, share=share_kept(start, best, ObjectiveValue(point.values, True))) for point in points]
