"""The best placement for each of several limits on the number of moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from stowplan.answers.assessment import Assessor
from stowplan.answers.ranking import ENOUGH
from stowplan.answers.solve import confirm, starts
from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.html import html_table, number
from stowplan.models.result import Outcome, Status, TierOutcome, revalued
from stowplan.models.stop import Stop
from stowplan.models.words import plural
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.move_limits import MoveLimits, limited
from stowplan.optimizer.portfolio import Options
from stowplan.optimizer.run import Progress, silent
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
    shares
        Share of the gain without a limit, for each tier that gains, by its number.
    """

    limit: int | None
    moves: int
    tiers: Sequence[TierOutcome]
    shares: Mapping[int, float]
    assignment: Assignment

    @property
    def share(self) -> float | None:
        """The least of the shares; ``None`` where no tier gains."""
        return min(self.shares.values(), default=None)

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
    nested
        On request, a point for each limit whose moves begin with those of the one before.
    """

    compiled: Compiled
    before: tuple[int, ...]
    points: Sequence[Point]
    complete: bool
    nested: Sequence[Point] = ()

    @property
    def recommended(self) -> Point | None:
        """The point with the fewest moves that brings most of every tier's gain; ``None`` if nothing gains.

        Most is `ENOUGH`: beyond it, a move brings less and less.
        """
        return next((point for point in self.points if (point.share or 0.0) >= ENOUGH), None)

    @property
    def nesting_loss(self) -> float:
        """By how much a nested point is behind at most, as a share of the gain."""
        pairs = zip(self.points, self.nested, strict=False)
        return max((_behind(free, nested) for free, nested in pairs), default=0.0)

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
    """Find the best placement for each limit on moves, in one search for all of them.

    A placement within one limit is within all higher ones, so values never rise with the limit.

    Parameters
    ----------
    compiled
        The problem, without a limit on moves.
    options
        The time limit is for all limits together.
    limits
        Limits to try besides no limit; by default those of `LADDER`.
    stop
        Set it to have the points that are found by then.
    tell
        Called with every point as it is found, and again when it is better; its shares are not known yet.
    backend
        Solves sub-problems; by default processes of its own.

    Raises
    ------
    InputError
        If a limit is negative.
    """
    stop = stop or Stop()
    steps = ladder(compiled, limits)
    whole = Assessor(compiled)
    before = whole.today.evaluation.values
    search = MoveLimits(
        compiled.problem,
        steps,
        options,
        candidates=starts(compiled, options, stop),
        stop=stop,
        progress=progress,
        backend=backend,
    )
    points: dict[int | None, Point] = {}

    def checked(limit: int | None) -> None:
        outcome = search.outcome(limit)
        if outcome is not None and (limit not in points or outcome.values < points[limit].values):
            points[limit] = _point(limit, whole, outcome)
            tell(points[limit])

    search.work(checked)
    found: list[Point] = []
    for limit in steps:
        if limit in points:
            point = _bounded(points[limit], search.outcome(limit))
            found.append(point if not found else _no_worse(point, found[-1]))
    complete = len(found) == len(steps) and not stop.is_set()
    return Frontier(compiled, before, with_shares(before, found[-1].values if found else before, found), complete)


def _behind(free: Point, nested: Point) -> float:
    """Return by how much one point is behind another, as a share of the gain of a tier."""
    return max((share - nested.shares[t] for t, share in free.shares.items()), default=0.0)


def _point(limit: int | None, whole: Assessor, outcome: Outcome) -> Point:
    """Return the point of an outcome, checked by the filters."""
    compiled = replace(whole.compiled, problem=limited(whole.compiled.problem, limit))
    solution = confirm(Assessor(compiled, whole.admission), outcome)
    return Point(limit, solution.evaluation.moves, tuple(solution.outcome.tiers), {}, solution.assignment)


def _bounded(point: Point, outcome: Outcome | None) -> Point:
    """Return a point with the bounds that are known in the end."""
    if outcome is None:
        return point
    return replace(point, tiers=revalued(outcome.tiers, point.values))


def _no_worse(point: Point, last: Point) -> Point:
    """Return a point, or that of the lower limit before it, which the higher one also allows, if that is better."""
    if last.values >= point.values:
        return point
    return Point(point.limit, last.moves, revalued(point.tiers, last.values), {}, last.assignment)


def with_shares(before: tuple[int, ...], best: tuple[int, ...], points: Sequence[Point]) -> list[Point]:
    """Return points with their shares of the gain of the best values."""
    return [replace(point, shares=_shares(before, best, point.values)) for point in points]


def _shares(before: tuple[int, ...], best: tuple[int, ...], values: tuple[int, ...]) -> dict[int, float]:
    """Return the share of each tier's gain; of tiers that gain nothing, none."""
    return {
        t: (old - now) / (old - new)
        for t, (old, new, now) in enumerate(zip(before, best, values, strict=True))
        if new < old
    }
