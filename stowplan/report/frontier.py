"""Reports of a frontier: a table with bars, rows, and a chart."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from stowplan.answers.frontier import Frontier, Point
from stowplan.models.result import Status
from stowplan.models.words import plural
from stowplan.report.rows import Row
from stowplan.report.svg import Axis, Curve, line_chart
from stowplan.report.svg import Point as Dot
from stowplan.report.tables import bar, plain_table
from stowplan.report.words import figure, participant_lines, tier_label, unit_notes

BAR = 16
"""Characters of a full bar."""


def show_frontier(console: Console, frontier: Frontier) -> None:
    """Print the frontier."""
    compiled = frontier.compiled
    for line in participant_lines(compiled.participants, len(compiled.snapshot.nodes)):
        console.print(line, markup=False)
    console.print()
    console.print(Text(headline(frontier), style="bold"))
    console.print()
    shown = [t for t, tier in enumerate(compiled.problem.tiers) if tier.constant or any(_column(frontier, t))]
    tiers = [compiled.problem.tiers[t] for t in shown]
    table = plain_table()
    for title in ("LIMIT", "MOVES"):
        table.add_column(title, justify="right", no_wrap=True)
    for tier in tiers:
        table.add_column(escape(tier_label(tier)), justify="right")
    for title in ("BOUND", "GAIN", "", *(["NESTED MOVES", "NESTED GAIN"] if frontier.nested else [])):
        table.add_column(title, justify="left" if not title else "right", no_wrap=True)
    for i, point in enumerate(frontier.points):
        values = [figure(compiled.problem.tiers[t].shown(point.values[t])) for t in shown]
        table.add_row(
            "any" if point.limit is None else f"{point.limit:,}",
            f"{point.moves:,}",
            *values,
            _bound(point),
            _percent(point.share),
            bar(point.share or 0.0, BAR),
            *([f"{nested.moves:,}", _percent(nested.share)] if (nested := _nested(frontier, i)) else []),
        )
    console.print(table)
    for line in (
        "GAIN: share of the improvement without a limit, in the tier where it is least; lower values are better.",
        *_nesting_notes(frontier),
        *unit_notes(t.unit for t in tiers),
    ):
        console.print(line, markup=False)
    for note in (*compiled.snapshot.notes, *compiled.notes):
        console.print(f"note: {note}", markup=False)


def headline(frontier: Frontier) -> str:
    """Return one sentence on the number of moves that most of the improvement takes."""
    points = frontier.points
    if not points:
        return "Interrupted before anything was found."
    last = points[-1]
    if last.share is None:
        return _nothing(frontier, last)
    cut = "" if frontier.complete else " Interrupted: higher limits are not known."
    whole = "improvement" if last.proven and frontier.complete else "improvement found"
    most = frontier.recommended
    assert most is not None  # the last point brings all of it
    if most.moves == last.moves or most.share == 1:
        return f"{plural(most.moves, 'move')} {_give(most.moves)} all of the {whole}.{cut}"
    rest = last.moves - most.moves
    each, further = (most.share or 0.0) / max(1, most.moves), (1.0 - (most.share or 0.0)) / max(1, rest)
    least = "at least " if len(most.shares) > 1 else ""
    return (
        f"{plural(most.moves, 'move')} {_give(most.moves)} {least}{most.share:.0%} of the {whole}; "
        f"all {last.moves:,} give 100%.{cut} Each of these moves brings {each:.2%} on average, each further one "
        f"{further:.2%}. Recommended: --max-moves {most.moves}."
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _nested(frontier: Frontier, i: int) -> Point | None:
    """Return the nested point of a limit, if there are any."""
    return frontier.nested[i] if frontier.nested else None


def _nesting_notes(frontier: Frontier) -> Iterator[str]:
    """Yield what it costs that each plan begins with the one before."""
    if frontier.nested:
        loss = frontier.nesting_loss
        yield (
            "NESTED: each plan begins with the moves of the one before. "
            + (f"That costs up to {loss:.1%} of the improvement." if loss > 0 else "That costs nothing.")
        )


def _nothing(frontier: Frontier, last: Point) -> str:
    """Return that nothing better than today was found, and what is proven."""
    if frontier.complete:
        proven = "No move improves anything."
        return proven if last.proven else "No improvement found; it is not proven that there is none."
    if not last.limit:
        return "Interrupted before any move was tried: nothing is known about moves."
    found = f"no improvement found with up to {plural(last.limit, 'move')}"
    return f"Interrupted: {found}; higher limits are not known."


def _give(number: int) -> str:
    return "gives" if number == 1 else "give"


def frontier_rows(frontier: Frontier) -> Iterator[Row]:
    """Yield one row for every point."""
    tiers = frontier.compiled.problem.tiers
    names = [name for tier in tiers for name in (tier.name, f"{tier.name} bound")]
    more = ["nested moves", "nested share"] if frontier.nested else []
    yield ["limit", "moves", "share", "proven", *names, *more]
    for i, point in enumerate(frontier.points):
        figures = [tier.tier.shown(value) for tier in point.tiers for value in (tier.value, tier.bound)]
        limit = "" if point.limit is None else point.limit
        nested = _nested(frontier, i)
        row: Row = [limit, point.moves, _or_empty(point.share), point.proven, *figures]
        yield row if nested is None else [*row, nested.moves, _or_empty(nested.share)]


def _or_empty(share: float | None) -> float | str:
    return "" if share is None else share


def frontier_chart(frontier: Frontier) -> str:
    """Draw the share of the gain over the number of moves, as an SVG step chart."""
    points = [(point.moves, max(0.0, point.share or 0.0)) for point in frontier.points]
    most = max((moves for moves, _ in points), default=0) or 1
    quarters = sorted({round(most * quarter / 4) for quarter in range(5)})
    curve = [Dot(moves, share, tooltip=f"{plural(moves, 'move')}: {share:.1%}") for moves, share in points]
    return line_chart(
        headline(frontier),
        Axis("moves", 0, most, [(moves, f"{moves:,}") for moves in quarters]),
        Axis("", 0, 1, [(quarter / 4, f"{quarter * 25}%") for quarter in range(5)]),
        [Curve(curve, stepped=True)],
    )


def point_line(point: Point) -> str:
    """Return one line about the result for a limit."""
    limit = "any number of moves" if point.limit is None else f"at most {plural(point.limit, 'move')}"
    values = [f"{t.tier.name} {figure(t.tier.shown(t.value))}" for t in point.tiers if t.tier.shown(t.value)]
    return f"{limit}: {', '.join(values) or 'all tiers 0'}{', proven' if point.proven else ''}"


def _bound(point: Point) -> str:
    """Return what is proven of the first tier that is not proven optimal."""
    if point.proven:
        return "proven"
    first = next(tier for tier in point.tiers if tier.status is not Status.OPTIMAL)
    return f"{figure(first.tier.shown(first.bound))}"


def _column(frontier: Frontier, tier: int) -> list[int]:
    return [frontier.before[tier], *(point.values[tier] for point in frontier.points)]
