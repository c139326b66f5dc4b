"""Reports of several schedulers and objectives: one table, and what each answer is."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape

from stowplan.answers.variants import SideBySide
from stowplan.report.rows import Row
from stowplan.report.tables import label_column, plain_table, say
from stowplan.report.words import headline, participant_lines, unit_notes, value_text


def show_variants(console: Console, found: SideBySide) -> None:
    """Print each answer in a sentence, and all placements in one table."""
    compiled = found.variants[0].comparison.compiled
    for line in participant_lines(compiled.participants, len(compiled.snapshot.nodes)):
        say(console, line)
    console.print()
    for variant in found.variants:
        say(console, f"{variant.scheduler}, {variant.objective}: {headline(variant.comparison.solution)}", style="bold")
    console.print()
    table = plain_table(tight=True)
    label_column(table, "", [one.title for one in found.figures])
    for title in found.titles:
        table.add_column(escape(title.replace(", ", ",\n").replace(" ", "\n")), justify="right", no_wrap=True)
    for one in found.figures:
        table.add_row(escape(one.title), *(value_text(one.unit, value) for value in one.values))
    console.print(table)
    own = [one.unit for one in found.figures if one.key[0] == "objectives"]
    for line in ("Every placement is measured by every objective; lower is better there.", *unit_notes(own)):
        say(console, line)
    notes = [note for one in found.variants for note in (*one.comparison.compiled.notes, *one.comparison.notes)]
    for note in dict.fromkeys((*compiled.snapshot.notes, *notes)):
        say(console, f"note: {note}", style="dim")


def variant_rows(found: SideBySide) -> Iterator[Row]:
    """Yield one row for each figure, with one column for each placement."""
    yield ["figure", "unit", *found.titles]
    for one in found.figures:
        yield [".".join(one.key), one.unit, *("" if value is None else value for value in one.values)]
