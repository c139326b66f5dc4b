"""Reports of benchmarks: a line when an instance is done, tables at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from stowplan.bench.bench import Bench
from stowplan.bench.row import Row
from stowplan.bench.totals import Figure
from stowplan.models.words import plural
from stowplan.report.words import figure

SHOWN = 60
"""Maximum number of instances that a table shows one by one; ``-o wide`` shows all."""

NOTHING = "-"


def row_line(number: int, of: int, row: Row) -> str:
    """Return one line about the result of an instance."""
    if not row.values:
        return f"{number}/{of} {row.instance}: {row.status}: {row.complaints[0]}"
    told = [tier_values(row, row.values), f"bound {tier_values(row, row.bounds)}", row.status, f"{row.seconds:.1f} s"]
    told += [f"{name} {shown:.2f}" for name, shown in row.measures.items()]
    if row.interrupted:
        told.append("interrupted")
    told.append("accepted" if row.accepted else f"REFUSED: {row.complaints[0]}")
    return f"{number}/{of} {row.instance}: {', '.join(told)}"


def show_bench(console: Console, bench: Bench, *, wide: bool = False) -> None:
    """Print the results of a suite."""
    console.print(Text(headline(bench), style="bold green" if bench.accepted and bench.complete else "bold"))
    refused = [row for row in bench.rows if not row.accepted]
    for row in refused[: None if wide else SHOWN]:
        console.print(f"  {row.instance}: {'; '.join(row.complaints[:3])}", markup=False)
    if not bench.rows:
        return
    console.print()
    if wide or len(bench.rows) <= SHOWN:
        console.print(_rows_table(bench.rows))
        console.print()
    console.print(_totals_table(bench))


def bench_rows(bench: Bench) -> Iterator[Sequence[Any]]:
    """Yield one row for every tier of every instance."""
    yield [
        *("group", "instance", "tier", "start", "value", "bound", "status", "gap", "best known", "excess", "score"),
        *("greedy", "seconds", "accepted", "interrupted"),
    ]
    for row in bench.rows:
        known = [_or_empty(row.reference.best), _or_empty(row.excess), _or_empty(row.score)]
        end = [row.seconds, row.accepted, row.interrupted]
        if not row.values:
            yield [row.group, row.instance, "", "", "", "", row.status, "", *known, "", *end]
        for t, (name, _, _) in enumerate(row.units):
            greedy = row.greedy[t] if row.greedy is not None else ""
            numbers = [row.start[t], row.values[t], row.bounds[t]]
            yield [row.group, row.instance, name, *numbers, row.status, _or_empty(row.gap), *known, greedy, *end]


def headline(bench: Bench) -> str:
    """Return what came of a suite in one line."""
    accepted = sum(row.accepted for row in bench.rows)
    proved = sum(row.proved for row in bench.rows)
    of = f"{bench.suite.name}: {plural(bench.asked, 'instance')}"
    said = f"{of}, {plural(accepted, 'answer')} accepted, {proved} proved optimal"
    if not bench.complete:
        said += f"; interrupted, {len(bench.rows)} begun"
    return said


def _rows_table(rows: Sequence[Row]) -> Table:
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("VALUE", lambda row: tier_values(row, row.values)),
        ("BOUND", lambda row: tier_values(row, row.bounds)),
        ("GAP", lambda row: _percent(row.gap)),
        ("STATUS", lambda row: str(row.status)),
        ("BEST KNOWN", lambda row: NOTHING if row.reference.best is None else figure(row.reference.best)),
        ("EXCESS", lambda row: _percent(row.excess)),
        ("SCORE", lambda row: NOTHING if row.score is None else f"{row.score:.4f}"),
        ("GREEDY", lambda row: tier_values(row, row.greedy or ())),
        *((name.upper(), _measure(name)) for name in dict.fromkeys(name for row in rows for name in row.measures)),
        ("SECONDS", lambda row: f"{row.seconds:.1f}"),
        ("CHECKER", lambda row: "accepted" if row.accepted else "refused"),
    ]
    filled = [(title, [show(row) for row in rows]) for title, show in columns]
    filled = [(title, cells) for title, cells in filled if any(cell != NOTHING for cell in cells)]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("INSTANCE", overflow="fold")
    for title, _ in filled:
        table.add_column(title, justify="left" if title in ("STATUS", "CHECKER") else "right")
    for row, *cells in zip(rows, *(cells for _, cells in filled), strict=True):
        table.add_row(escape(row.instance) + (" *" if row.interrupted else ""), *map(escape, cells))
    if any(row.interrupted for row in rows):
        table.caption = "* interrupted"
    return table


def _totals_table(bench: Bench) -> Table:
    names = dict.fromkeys(name for total in bench.totals for name in total.figures)
    names = dict.fromkeys(n for n in names if any(total.figures.get(n) is not None for total in bench.totals))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("GROUP", overflow="fold")
    for name in names:
        table.add_column(name.upper(), justify="right")
    for total in bench.totals:
        table.add_row(escape(total.group), *(shown_total(total.figures.get(name)) for name in names))
    return table


def _measure(name: str) -> Callable[[Row], str]:
    return lambda row: f"{row.measures[name]:.2f}" if name in row.measures else NOTHING


def tier_values(row: Row, values: Sequence[int]) -> str:
    """Write the values of all tiers, the most urgent first."""
    shown = [figure(value / scale) for value, (_, _, scale) in zip(values, row.units, strict=False)]
    return " / ".join(shown) or NOTHING


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share:.3%}"


def shown_total(value: Figure) -> str:
    """Write a figure of a suite."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _or_empty(value: float | int | None) -> float | int | str:
    return "" if value is None else value
