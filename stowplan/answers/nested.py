"""Nested plans: placements for rising limits on moves, of which each one begins with the moves of the one before.

A chain grows around one point of the frontier, its anchor. Below, it makes the anchor's moves in the order in which the
first ones bring most; above, it adds what each further point moves of the pods that the chain leaves. Of several
anchors, the one whose chain loses least is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stowplan.answers.assessment import Assessor
from stowplan.answers.frontier import Frontier, Point, with_shares
from stowplan.answers.ranking import rank_further
from stowplan.models.assignment import Assignment
from stowplan.models.result import revalued

EVALUATIONS = 300
"""Placements that are evaluated at most for the order of the moves from one point to the next."""


@dataclass(frozen=True, slots=True)
class _Link:
    """An assignment of a chain, how many pods it moves, and its values."""

    assignment: Assignment
    moves: int
    values: tuple[int, ...]


def nest(frontier: Frontier) -> Frontier:
    """Return the frontier with nested points, one for each of its own.

    They cost what their shares are behind: `Frontier.nesting_loss`.
    """
    assessor = Assessor(frontier.compiled)
    points = frontier.points
    chains = [_chain(assessor, points, anchor) for anchor in _anchors(frontier)]
    found = [with_shares(frontier.before, points[-1].values, chain) for chain in chains]
    best = min(found, key=lambda chain: sum(_lost(points, chain)))
    return replace(frontier, nested=best)


def _lost(points: Sequence[Point], chain: Sequence[Point]) -> list[float]:
    return [(free.share or 0.0) - (nested.share or 0.0) for free, nested in zip(points, chain, strict=True)]


def _anchors(frontier: Frontier) -> list[Point]:
    """Return the first point that moves a pod, and the recommended one."""
    points = frontier.points
    first = next((point for point in points if point.moves), points[-1])
    chosen = [first, *([frontier.recommended] if frontier.recommended else [])]
    return list({point.moves: point for point in chosen}.values())


def _chain(assessor: Assessor, points: Sequence[Point], anchor: Point) -> list[Point]:
    """Return a point for each limit: within the anchor's moves below it, and beyond them above it."""
    today = assessor.compiled.snapshot.assignment
    last = _Link(today, 0, assessor.today.evaluation.values)
    links = _links(assessor, last, anchor.assignment)
    chain: list[Point] = []
    for point in points:
        if point.moves > anchor.moves:
            links = _links(assessor, last, point.assignment)
        within = [link for link in links if point.limit is None or link.moves <= point.limit]
        # A later link has the moves of the earlier ones, so the choice may only go on along the chain.
        best = min(within[within.index(last) :], key=lambda link: link.values)
        if best is not last and not assessor.assess(best.assignment).newly_refused:
            last = best
        chain.append(Point(point.limit, last.moves, revalued(point.tiers, last.values), {}, last.assignment))
    return chain


def _links(assessor: Assessor, begin: _Link, target: Assignment) -> list[_Link]:
    """Return a link, and what comes of it by the moves of pods that it leaves, the best first."""
    links, assignment, moves = [begin], begin.assignment, 0
    for one in rank_further(assessor, begin.assignment, target, evaluations=EVALUATIONS):
        assignment, moves = assignment.moved([(one.move.pod.key, one.move.target)]), one.moves
        if one.values is not None:
            links.append(_Link(assignment, begin.moves + one.moves, one.values))
    last = assessor.assess(assignment).evaluation
    if assignment is not links[-1].assignment and last.legal:
        links.append(_Link(assignment, begin.moves + moves, last.values))
    return links
