"""Which pods move and what for, and what becomes of each node: the details of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from stowplan.answers.compare import Comparison
from stowplan.answers.measures import NodeUsage
from stowplan.models.words import plural
from stowplan.plugins_compat.requests import CPU, MEMORY
from stowplan.report.tables import ARROW, show_names

SHOWN_MOVES = 10
"""Moves that a comparison shows; ``-o wide`` shows all."""

HOURS_OF_A_MONTH = 730
"""A twelfth of a year, as clouds bill it."""

SHOWN_NODES = 10
"""Nodes that a comparison shows, those that change most; ``-o wide`` shows all."""


def savings_line(comparison: Comparison) -> str:
    """Return the cost of nodes in use today and in the best placement; empty if the cost of nodes is unknown."""
    then, now = comparison.columns[0].measures.price, comparison.best.measures.price
    if then is None or now is None:
        return ""
    if then == now:
        return f"Nodes in use cost {then:,.2f} per hour, as today."
    words = "saves" if now < then else "costs"
    more = "" if now < then else " more"
    change = abs(then - now)
    month = change * HOURS_OF_A_MONTH
    told = f"{words} {change:,.2f}{more} per hour, {month:,.0f} per month of {HOURS_OF_A_MONTH} hours"
    return f"Nodes in use cost {then:,.2f} {ARROW} {now:,.2f} per hour: {told}, once empty nodes are removed."


def show_ranked_moves(console: Console, comparison: Comparison, *, wide: bool = False) -> None:
    """Print the moves of the best placement, those that bring most first, and what each is for."""
    moves = [one.move for one in comparison.moves]
    if not moves:
        return
    console.print()
    shown = moves if wide else moves[:SHOWN_MOVES]
    console.print("Moves, those that bring most first:")
    losses = comparison.solution.losses
    titles = ["POD", "FROM", "", "TO", "FOR"] + (["LOSES"] if losses else [])
    rows = [
        [
            *(one.pod.key, one.source or "(pending)", ARROW, one.target or "(none)", comparison.why[one.pod.key]),
            *([", ".join(losses.get(one.pod.key, ()))] if losses else []),
        ]
        for one in shown
    ]
    show_names(console, titles, rows)
    if len(shown) < len(moves):
        console.print(f"… and {len(moves) - len(shown)} more; -o wide shows all", style="dim")


def show_nodes(console: Console, comparison: Comparison, *, wide: bool = False) -> None:
    """Print what each node holds today and in the best placement: pods, and shares of CPU and memory."""
    if not comparison.moves:
        return
    before, after = comparison.columns[0].measures.nodes, comparison.best.measures.nodes
    pairs = list(zip(before, after, strict=True))
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    most = sorted(changed, key=lambda pair: -_change(*pair))[:SHOWN_NODES]
    shown = pairs if wide else [pair for pair in changed if pair in most]
    resources = list(before[0].requested) if wide else [name for name in (CPU, MEMORY) if name in before[0].requested]
    console.print()
    console.print(f"Nodes, today {ARROW} {comparison.best.name}:")
    titles = ["NODE", "PODS", *(name.rpartition("/")[2].upper() for name in resources)]
    rows = [
        [then.name, f"{then.pods} {ARROW} {now.pods}", *(_shares(then, now, name) for name in resources)]
        for then, now in shown
    ]
    show_names(console, titles, rows, right=titles[1:])
    if len(shown) < len(changed):
        console.print(f"… and {plural(len(changed) - len(shown), 'node')} more; -o wide shows all", style="dim")


def _shares(then: NodeUsage, now: NodeUsage, resource: str) -> str:
    def told(share: float | None) -> str:
        return "-" if share is None else f"{share:.0%}"

    return f"{told(then.share(resource))} {ARROW} {told(now.share(resource))}"


def _change(then: NodeUsage, now: NodeUsage) -> float:
    """Return the largest change of a resource's share."""
    shares: Sequence[float] = [abs((now.share(name) or 0.0) - (then.share(name) or 0.0)) for name in then.requested]
    return max(shares, default=0.0)
