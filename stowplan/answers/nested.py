"""Nested plans: placements for rising limits on moves, of which each one begins with the moves of the one before.

A chain grows around one point of the frontier, its anchor. Below, it makes the anchor's moves in the order in which the
first ones bring most; above, it adds the last point's moves of pods that the anchor leaves. Of several anchors, the one
whose chain loses least is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stowplan.answers.assessment import Assessor
from stowplan.answers.frontier import Frontier, Point, with_shares
from stowplan.answers.ranking import rank_further
from stowplan.models.assignment import Assignment
from stowplan.models.result import revalued

ANCHORS = 4
"""Points around which a chain is tried at most."""


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
    """Return the last point, the recommended one, and others between, each number of moves once."""
    points = list({point.moves: point for point in frontier.points}.values())
    chosen = [*points[-1:], *([frontier.recommended] if frontier.recommended else [])]
    chosen += points[1:-1][:: max(1, len(points) // ANCHORS)]
    return list({point.moves: point for point in chosen}.values())[:ANCHORS]


def _chain(assessor: Assessor, points: Sequence[Point], anchor: Point) -> list[Point]:
    """Return a point for each limit: within the anchor's moves below it, and beyond them above it."""
    today = assessor.compiled.snapshot.assignment
    links = [_Link(today, 0, assessor.today.evaluation.values)]
    for target in (anchor.assignment, points[-1].assignment):
        links += _links(assessor, links[-1], target)[1:]
    chain: list[Point] = []
    last = links[0]
    for point in points:
        within = [link for link in links if point.limit is None or link.moves <= point.limit]
        # A later link has the moves of the earlier ones, so the choice may only go on along the chain.
        best = min(within[within.index(last) :], key=lambda link: link.values)
        if best is not last and not assessor.assess(best.assignment).newly_refused:
            last = best
        chain.append(Point(point.limit, last.moves, revalued(point.tiers, last.values), None, last.assignment))
    return chain


def _links(assessor: Assessor, begin: _Link, target: Assignment) -> list[_Link]:
    """Return a link, and what comes of it by the moves of pods that it leaves, the best first."""
    links, assignment, moves = [begin], begin.assignment, 0
    for one in rank_further(assessor, begin.assignment, target):
        assignment, moves = assignment.moved([(one.move.pod.key, one.move.target)]), one.moves
        if one.values is not None:
            links.append(_Link(assignment, begin.moves + one.moves, one.values))
    last = assessor.assess(assignment).evaluation
    if assignment is not links[-1].assignment and last.legal:
        links.append(_Link(assignment, begin.moves + moves, last.values))
    return links
