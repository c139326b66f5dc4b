"""Reports of the comparison with simple methods: a line for each question, a table, and where the product is behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from stowplan.bench.baselines.comparison import BaselineRow, Baselines
from stowplan.models.words import plural
from stowplan.report.tables import plain_table
from stowplan.report.words import figure


def baseline_line(number: int, of: int, row: BaselineRow) -> str:
    """Return one line about the result of a question."""
    told = f"{number}/{of} {row.question.name}: {_values(row, row.values)}, bound {_values(row, row.bounds)}"
    for name, (values, seconds) in row.methods.items():
        told += f"; {name} {_values(row, values)} in {seconds:.1f} s"
    return told + (f"; BEHIND: {'; '.join(row.findings)}" if row.findings else "")


def show_baselines(console: Console, baselines: Baselines) -> None:
    """Print the comparison."""
    behind = baselines.behind
    said = f"{plural(baselines.asked, 'question')}; simple methods or bounds ahead in {len(behind)}"
    said += "" if baselines.complete else f"; interrupted after {len(baselines.rows)}"
    console.print(Text(said, style="bold" if behind or not baselines.complete else "bold green"))
    for row in behind:
        console.print(f"  {row.question.name}: {'; '.join(row.findings)}", markup=False, soft_wrap=True)
    if not baselines.rows:
        return
    console.print()
    table = plain_table()
    for title in ("CLUSTER", "OBJECTIVE"):
        table.add_column(title, overflow="fold")
    for title in ("MOVES", "TODAY", "ANSWER", "BOUND", "SIMPLE METHOD", "SIMPLE BOUND", "SECONDS"):
        table.add_column(title, justify="right")
    for row in baselines.rows:
        best = row.best
        table.add_row(
            escape(row.question.cluster.name),
            row.question.objective,
            "any" if row.question.limit is None else f"{row.question.limit:,}",
            _values(row, row.start),
            _values(row, row.values),
            _values(row, row.bounds),
            "-" if best is None else f"{_values(row, best[1])} {best[0]}",
            " / ".join(figure(row.tiers[t].shown(bound)) for t, (bound, _) in row.floors.items()) or "-",
            f"{row.seconds:.1f}",
        )
    console.print(table)


def baseline_rows(baselines: Baselines) -> Iterator[Sequence[Any]]:
    """Yield one row for every tier of every question."""
    yield [
        *("cluster", "objective", "limit", "tier", "start", "value", "bound", "simple method", "simple value"),
        *("simple bound", "simple bound by", "seconds", "behind"),
    ]
    for row in baselines.rows:
        limit = "" if row.question.limit is None else row.question.limit
        for t, tier in enumerate(row.tiers):
            simple = ["", ""] if row.best is None else [row.best[0], row.best[1][t]]
            floor = list(row.floors.get(t, ("", "")))
            numbers = [row.start[t], row.values[t], row.bounds[t]]
            question = [row.question.cluster.name, row.question.objective, limit, tier.name]
            yield [*question, *numbers, *simple, *floor, row.seconds, bool(row.findings)]


def _values(row: BaselineRow, values: Sequence[int]) -> str:
    """Write the values of the tiers that are not 0 everywhere, the most urgent first."""
    everywhere = [row.start, row.values, row.bounds, *(reached for reached, _ in row.methods.values())]
    shown = [t for t in range(len(row.tiers)) if any(each[t] for each in everywhere)]
    return " / ".join(figure(row.tiers[t].shown(values[t])) for t in shown) or "0"
