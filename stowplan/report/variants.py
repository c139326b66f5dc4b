"""Reports of several schedulers and objectives: one table, and what each answer is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement

from stowplan.answers.variants import SideBySide, VariantFigure
from stowplan.report.rows import Row
from stowplan.report.tables import label_column, plain_table, say
from stowplan.report.words import headline, participant_lines, unit_notes, value_text

NARROW = 80
"""Columns that a table takes in a file or a pipe, which have no width of their own."""
MOST = 10_000


def show_variants(console: Console, found: SideBySide) -> None:
    """Print each answer in a sentence, and all placements in one table."""
    compiled = found.variants[0].comparison.compiled
    for line in participant_lines(compiled.participants, len(compiled.snapshot.nodes)):
        say(console, line)
    console.print()
    for variant in found.variants:
        say(console, f"{variant.scheduler}, {variant.objective}: {headline(variant.comparison.solution)}", style="bold")
    console.print()
    _show_table(console, found)
    own = [one.unit for one in found.figures if one.key[0] == "objectives"]
    for line in ("Every placement is measured by every objective; lower is better there.", *unit_notes(own)):
        say(console, line)
    for note in found.notes:
        say(console, f"note: {note}", style="dim")


def _show_table(console: Console, found: SideBySide) -> None:
    """Print all placements: side by side if there is room for them, else one below the other."""
    table = plain_table(tight=True)
    label_column(table, "", [one.title for one in found.figures])
    for title in found.titles:
        table.add_column(escape(title.replace(", ", ",\n").replace(" ", "\n")), justify="right", no_wrap=True)
    for one in found.figures:
        table.add_row(escape(one.title), *(value_text(one.unit, value) for value in one.values))
    room = min(console.width, NARROW) if not console.is_terminal else console.width
    if Measurement.get(console, console.options.update(max_width=MOST), table).maximum <= room:
        console.print(table)
    else:
        _show_blocks(console, found, room)


def _show_blocks(console: Console, found: SideBySide, room: int) -> None:
    """Print a row for each placement, in as many tables below each other as figures need; equal ones in a sentence."""
    alike = [one for one in found.figures if len(set(one.values)) == 1 and one.key[0] != "objectives"]
    if alike:
        said = ", ".join(f"{_name(found, one)} {value_text(one.unit, one.values[0])}" for one in alike)
        say(console, f"The same in all: {said}.")
        console.print()
    rows = _rows(found.groups)
    names = max(len(label) for label, _ in rows)
    columns = [_Column.of(_name(found, one), one) for one in found.figures if one not in alike]
    while columns:
        taken, width = 0, names
        while taken < len(columns) and (taken == 0 or width + 1 + columns[taken].width <= room):
            width += 1 + columns[taken].width
            taken += 1
        table = plain_table(tight=True)
        table.add_column("", no_wrap=True, min_width=names)
        for column in columns[:taken]:
            table.add_column(escape(column.title), justify="right", no_wrap=True, min_width=column.width)
        for label, row in rows:
            table.add_row(escape(label), *("" if row is None else column.cells[row] for column in columns[:taken]))
        console.print(table)
        columns = columns[taken:]
        if columns:
            console.print()


def _rows(groups: Sequence[tuple[str, str]]) -> list[tuple[str, int | None]]:
    """Return the label of each row with the placement in it: those of a group below its name, by scheduler."""
    members: dict[str, list[tuple[str, int]]] = {}
    for i, (group, scheduler) in enumerate(groups):
        members.setdefault(group, []).append((scheduler, i))
    rows: list[tuple[str, int | None]] = []
    for group, found in members.items():
        if any(scheduler for scheduler, _ in found):
            rows.append((group, None))
            rows += [(f"  {scheduler}", i) for scheduler, i in found]
        else:
            rows += [(group, i) for _, i in found]
    return rows


def _name(found: SideBySide, figure: VariantFigure) -> str:
    """Return the name of a figure on its own: an indented title says nothing without the one above it."""
    if not figure.title.startswith(" "):
        return figure.title
    before = found.figures[: list(found.figures).index(figure)]
    above = next(one.title for one in reversed(before) if not one.title.startswith(" "))
    return f"{above.split()[0]} {figure.title.strip()}"


@dataclass(frozen=True, slots=True)
class _Column:
    """A figure of all placements, as a column."""

    title: str
    cells: Sequence[str]
    width: int

    @classmethod
    def of(cls, name: str, figure: VariantFigure) -> _Column:
        """Lay a figure out: its name wraps at spaces, and is as wide as its longest word or value."""
        cells = [value_text(figure.unit, value) for value in figure.values]
        width = max(len(word) for word in (*name.split(), *cells))
        lines = wrap(name, width, break_long_words=False, break_on_hyphens=False)
        return cls("\n".join(lines), cells, width)


def variant_rows(found: SideBySide) -> Iterator[Row]:
    """Yield one row for each figure, with one column for each placement."""
    yield ["figure", "unit", *found.titles]
    for one in found.figures:
        yield [".".join(one.key), one.unit, *("" if value is None else value for value in one.values)]
