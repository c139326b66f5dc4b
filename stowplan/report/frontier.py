"""Reports of a frontier: a table with bars, rows, and a drawing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape as escape_xml

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from stowplan.answers.frontier import Frontier, Point
from stowplan.models.errors import InputError
from stowplan.models.result import Status
from stowplan.models.words import plural
from stowplan.report.rows import Row
from stowplan.report.words import figure, participant_lines, tier_label

MOST = 0.8
"""Share of the gain that the headline calls most of it."""

BAR = 24
"""Characters of a full bar."""

WIDTH, HEIGHT, MARGIN = 640, 360, 56
"""Of the drawing, in pixels."""


def show_frontier(console: Console, frontier: Frontier) -> None:
    """Print the frontier."""
    compiled = frontier.compiled
    for line in participant_lines(compiled.participants, len(compiled.snapshot.nodes)):
        console.print(line, markup=False)
    console.print()
    console.print(Text(headline(frontier), style="bold"))
    console.print()
    shown = [t for t, tier in enumerate(compiled.problem.tiers) if any(_column(frontier, t))]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("AT MOST", "MOVES"):
        table.add_column(title, justify="right")
    for t in shown:
        table.add_column(escape(tier_label(compiled.problem.tiers[t])), justify="right")
    for title in ("BOUND", "GAIN", ""):
        table.add_column(title, justify="left" if not title else "right")
    for point in frontier.points:
        values = [figure(compiled.problem.tiers[t].shown(point.values[t])) for t in shown]
        table.add_row(
            "any" if point.limit is None else f"{point.limit:,}",
            f"{point.moves:,}",
            *values,
            _bound(point),
            "" if point.share is None else f"{point.share:.0%}",
            bar(point.share or 0.0),
        )
    console.print(table)
    for note in (*compiled.snapshot.notes, *compiled.notes):
        console.print(f"note: {note}", markup=False)


def headline(frontier: Frontier) -> str:
    """Say in one sentence what most of the gain takes."""
    points = frontier.points
    if not points:
        return "Interrupted before anything was found."
    cut = "" if frontier.complete else " Interrupted: the last lines are not known."
    if points[-1].share is None:
        return f"No move helps.{cut}"
    most = next(point for point in points if (point.share or 0) >= MOST)
    if most.moves == points[-1].moves or most.share == 1:
        return f"The whole gain takes {plural(most.moves, 'move')}.{cut}"
    return (
        f"{most.share:.0%} of the gain takes {plural(most.moves, 'move')}, "
        f"the whole {plural(points[-1].moves, 'move')}.{cut}"
    )


def bar(share: float) -> str:
    """Draw a share as a bar of eighths of a character."""
    eighths = round(max(0.0, min(1.0, share)) * BAR * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def frontier_rows(frontier: Frontier) -> Iterator[Row]:
    """Yield one row for every point."""
    tiers = frontier.compiled.problem.tiers
    names = [name for tier in tiers for name in (tier.name, f"{tier.name} bound")]
    yield ["limit", "moves", "share", "proven", *names]
    for point in frontier.points:
        figures = [tier.tier.shown(value) for tier in point.tiers for value in (tier.value, tier.bound)]
        limit = "" if point.limit is None else point.limit
        yield [limit, point.moves, "" if point.share is None else point.share, point.proven, *figures]


def drawing(frontier: Frontier) -> str:
    """Draw share of the gain over moves, as an SVG; the curve is a stair, since each point holds up to the next."""
    points = [(point.moves, max(0.0, point.share or 0.0)) for point in frontier.points]
    most = max((moves for moves, _ in points), default=0) or 1

    def x(moves: float) -> float:
        return round(MARGIN + (WIDTH - 2 * MARGIN) * moves / most, 1)

    def y(share: float) -> float:
        return round(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * share, 1)

    stair = " ".join(
        f"{'M' if i == 0 else 'H'}{x(moves)}{',' if i == 0 else ' V'}{y(share)}"
        for i, (moves, share) in enumerate(points)
    )
    grid = "".join(
        f'<path d="M{MARGIN},{y(tick / 4)}H{WIDTH - MARGIN}" stroke="#ddd"/>'
        f'<text x="{MARGIN - 8}" y="{y(tick / 4) + 4}" text-anchor="end">{tick * 25}%</text>'
        for tick in range(5)
    )
    ticks = "".join(
        f'<text x="{x(moves)}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{moves:,}</text>'
        for moves in sorted({round(most * tick / 4) for tick in range(5)})
    )
    dots = "".join(
        f'<circle cx="{x(moves)}" cy="{y(share)}" r="3"><title>{plural(moves, "move")}: {share:.1%}</title></circle>'
        for moves, share in points
    )
    title = escape_xml(headline(frontier))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><title>{title}</title>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{grid}{ticks}'
        f'<path d="{stair}" fill="none" stroke="#06c" stroke-width="2"/><g fill="#06c">{dots}</g>'
        f'<text x="{WIDTH / 2}" y="24" text-anchor="middle" font-size="14">{title}</text>'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">moves</text></svg>\n'
    )


def draw(frontier: Frontier, file: str) -> None:
    """Write the drawing to a file.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    try:
        Path(file).write_text(drawing(frontier), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=file) from None


def point_line(point: Point) -> str:
    """Say in one line what was found for a limit."""
    limit = "any number of moves" if point.limit is None else f"at most {plural(point.limit, 'move')}"
    values = [f"{t.tier.name} {figure(t.tier.shown(t.value))}" for t in point.tiers if t.value]
    return f"{limit}: {', '.join(values) or 'all tiers 0'}{', proven' if point.proven else ''}"


def _bound(point: Point) -> str:
    """Say what is proven of the first tier that is open."""
    if point.proven:
        return "proven"
    first = next(tier for tier in point.tiers if tier.status is not Status.OPTIMAL)
    return f"{figure(first.tier.shown(first.bound))}"


def _column(frontier: Frontier, tier: int) -> list[int]:
    return [frontier.before[tier], *(point.values[tier] for point in frontier.points)]
