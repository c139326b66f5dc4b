"""The page of ``bench``: every instance of a suite, and what the suite comes to."""

from __future__ import annotations

from collections.abc import Callable

from stowplan.bench.bench import Bench
from stowplan.bench.row import Row
from stowplan.bench.totals import Figure
from stowplan.html_report.page import Cell, Heading, Lines, Page, Section, Table, long_table
from stowplan.html_report.provenance import made_with, search_words
from stowplan.models.words import plural
from stowplan.report.bench import NOTHING, headline, shown_total, tier_values
from stowplan.report.words import figure


def bench_page(bench: Bench) -> Page:
    """Return the page of a suite."""
    refused = [f"{row.instance}: {'; '.join(row.complaints)}" for row in bench.rows if not row.accepted]
    notes = [f"{row.instance}: {note}" for row in bench.rows for note in row.notes]
    options = bench.options
    rows = {
        "suite": bench.suite.name,
        "search of each instance": search_words(options),
        "instances at once": f"{bench.jobs}",
    }
    sections = [
        Section("refused", "Refused", [Lines(refused)] if refused else [], "What the checker of the format refuses."),
        _totals(bench),
        _instances(bench),
        Section("notes", "Notes", [Lines(notes)] if notes else []),
        made_with(rows),
    ]
    return Page("stowplan bench", f"{headline(bench)}.", sections)


def _totals(bench: Bench) -> Section:
    names = dict.fromkeys(name for total in bench.totals for name in total.figures)
    names = dict.fromkeys(n for n in names if any(total.figures.get(n) is not None for total in bench.totals))
    headings = [Heading("group"), *(Heading(name, numeric=True) for name in names)]
    rows = [[Cell(one.group), *(_total(one.figures.get(name)) for name in names)] for one in bench.totals]
    table = Table(plural(len(rows), "group"), headings, rows)
    return Section("totals", "In total", [table] if rows else [])


def _total(value: Figure) -> Cell:
    return Cell(shown_total(value), value if isinstance(value, int | float) else None)


def _instances(bench: Bench) -> Section:
    """Return the section with one row for each instance; columns that are empty everywhere are left out."""
    columns: list[tuple[Heading, Callable[[Row], Cell]]] = [
        (Heading("group"), lambda row: Cell(row.group)),
        (Heading("value", numeric=True), lambda row: Cell(tier_values(row, row.values))),
        (Heading("bound", "proven lower bound", numeric=True), lambda row: Cell(tier_values(row, row.bounds))),
        (Heading("gap", "of the bound below the value", True), lambda row: _number(row.gap, "{:.3%}".format)),
        (Heading("status"), lambda row: Cell(row.status + (", interrupted" if row.interrupted else ""))),
        (Heading("best known", numeric=True), lambda row: _number(row.reference.best, figure)),
        (
            Heading("excess", "above the best known value", numeric=True),
            lambda row: _number(row.excess, "{:.3%}".format),
        ),
        (Heading("score", "of the challenge", numeric=True), lambda row: _number(row.score, "{:.4f}".format)),
        (Heading("greedy", "kube-scheduler's placement", True), lambda row: Cell(tier_values(row, row.greedy or ()))),
        (Heading("seconds", numeric=True), lambda row: Cell(f"{row.seconds:.1f}", round(row.seconds, 2))),
        (Heading("checker"), lambda row: Cell("accepted" if row.accepted else "refused")),
    ]
    for name in dict.fromkeys(name for row in bench.rows for name in row.measures):
        columns.append((Heading(name, numeric=True), _measure(name)))
    filled = [(heading, [make(row) for row in bench.rows]) for heading, make in columns]
    filled = [(heading, cells) for heading, cells in filled if any(cell.text not in ("", NOTHING) for cell in cells)]
    headings = [Heading("instance"), *(heading for heading, _ in filled)]
    rows = [
        [Cell(row.instance), *cells]
        for row, cells in zip(bench.rows, zip(*(cells for _, cells in filled), strict=True), strict=True)
    ]
    several = "; values of several tiers are separated by slashes, the most important first"
    table = long_table(plural(len(rows), "instance"), headings, rows, "-o csv lists every instance")
    intro = f"Lower values are better{several if any(len(row.values) > 1 for row in bench.rows) else ''}."
    return Section("instances", "Instances", [table] if rows else [], intro)


def _measure(name: str) -> Callable[[Row], Cell]:
    return lambda row: _number(row.measures.get(name), "{:.2f}".format)


def _number(value: float | None, text: Callable[[float], str]) -> Cell:
    return Cell(NOTHING, -1) if value is None else Cell(text(value), value)
