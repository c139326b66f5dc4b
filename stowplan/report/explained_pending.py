"""Reports of ``explain --all``: a histogram of what refuses the pending pods first."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape

from stowplan.explaining.pending import PendingExplanation
from stowplan.models.words import plural
from stowplan.report.limits import SHOWN
from stowplan.report.rows import Row
from stowplan.report.tables import bar, plain_table, say
from stowplan.report.words import gap_lines

BAR = 20
"""Characters of the longest bar."""


def show_pending(console: Console, told: PendingExplanation, *, wide: bool = False) -> None:
    """Print what refuses pending pods first; if ``wide``, every reason."""
    for line in gap_lines(told.compiled.snapshot.gaps):
        say(console, line)
    say(console, pending_headline(told), style="bold")
    if not told.broken:
        return
    console.print()
    shown = told.broken if wide else told.broken[:SHOWN]
    table = plain_table(tight=True)
    for title in ("pods", "alone", "nodes"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("filter that refuses them first, and why", overflow="fold")
    for one in shown:
        length = bar(one.pods / len(told.pending), BAR)
        why = f"{one.plugin}: {one.reason}" if one.reason else one.plugin
        table.add_row(f"{one.pods:,}", f"{one.alone:,}", f"{one.nodes:,}", length, escape(why))
    console.print(table)
    if more := len(told.broken) - len(shown):
        say(console, f"… and {plural(more, 'reason')} more; -o wide shows all", style="dim")
    say(console, "pods: refused so on some node; alone: on all nodes; nodes: pairs of a pod and a node", style="dim")


def pending_headline(told: PendingExplanation) -> str:
    """Say in one sentence how many pods are pending, and how many of them no node admits."""
    if not told.pending:
        return "No pod is pending."
    refused = len(told.pending) - len(told.admitted)
    return (
        f"{plural(len(told.pending), 'pod')} pending: no node admits {refused:,}, "
        f"some node admits {len(told.admitted):,} as things are."
    )


def pending_rows(told: PendingExplanation) -> Iterator[Row]:
    """Yield one row for each filter and reason."""
    yield ["plugin", "reason", "pods", "alone", "nodes"]
    for one in told.broken:
        yield [one.plugin, one.reason, one.pods, one.alone, one.nodes]
