"""Reports of ``explain`` for a node: whether it can be emptied, and what each pod on it waits for."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from stowplan.explaining.node import NodeExplanation, Occupant
from stowplan.models.words import plural
from stowplan.report.drain_and_fit import drain_headline
from stowplan.report.limits import SHOWN
from stowplan.report.rows import Row
from stowplan.report.tables import ARROW, say
from stowplan.report.words import gap_lines


def show_node(console: Console, told: NodeExplanation, *, wide: bool = False) -> None:
    """Print an explanation of a node; if ``wide``, with every pod on it."""
    for line in gap_lines(told.drained.planned.compiled.snapshot.gaps):
        say(console, line)
    say(console, drain_headline(told.drained), style="bold")
    if told.drained.ignored:
        kinds = ", ".join(f"{kind} ({count:,})" for kind, count in told.drained.ignored.items())
        say(console, f"Pods that belong to the node and do not count: {kinds}.")
    shown = told.occupants if wide else told.occupants[:SHOWN]
    for occupant in shown:
        say(console, f"  {occupant.pod.key}: {_said(occupant)}")
    if more := len(told.occupants) - len(shown):
        say(console, f"  … and {plural(more, 'pod')} more; -o wide shows all", style="dim")


def _said(occupant: Occupant) -> str:
    admit = "admits" if occupant.admitting == 1 else "admit"
    alone = f"{plural(occupant.admitting, 'other node')} {admit} it as things are"
    if occupant.target is not None:
        return f"{ARROW} {occupant.target}; {alone}"
    if occupant.by_rule:
        return f"stays: {occupant.reason}"
    if occupant.admitting:
        return f"stays for lack of room beside the others: {occupant.reason} By itself, {alone}."
    return f"stays: {occupant.reason}"


def node_rows(told: NodeExplanation) -> Iterator[Row]:
    """Yield one row for each pod on the node that counts."""
    yield ["namespace", "name", "target", "admitting", "by_rule", "reason"]
    for one in told.occupants:
        yield [one.pod.namespace, one.pod.name, one.target or "", one.admitting, one.by_rule, one.reason]
