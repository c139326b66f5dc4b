"""Reports of ``drain`` and ``fit``: the answer, then the plan."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from stowplan.models.words import plural
from stowplan.planning.drain import Drained
from stowplan.planning.fit import Fitted
from stowplan.report.plan import show_plan

SHOWN = 20
"""Pods that are shown; ``-o wide`` shows all."""


def show_drain(console: Console, drained: Drained, *, wide: bool = False) -> None:
    """Print what came of draining."""
    console.print(Text(drain_headline(drained), style="bold"))
    _list(console, [f"{s.pod.key} on {s.pod.node_name}: {s.reason}" for s in drained.stays], wide)
    if drained.ignored:
        kinds = ", ".join(f"{count} {kind}" for kind, count in drained.ignored.items())
        console.print(f"Stay and do not count: {kinds}.", markup=False)
    cordon = drained.planned.plan.cordon
    if cordon:
        console.print(f"To cordon first: {', '.join(cordon)}.", markup=False)
    console.print()
    show_plan(
        console, drained.planned.plan, drained.planned.compiled.participants, drained.planned.unresolved, wide=wide
    )


def drain_headline(drained: Drained) -> str:
    """Say in one sentence whether the nodes can be emptied."""
    nodes = plural(len(drained.nodes), "node")
    moves = plural(len(drained.planned.plan.moves), "move")
    if drained.possible:
        return f"Drains {nodes} with {moves}." if drained.planned.plan.waves else f"Nothing to drain from {nodes}."
    known = f"it is impossible: {drained.proof}" if drained.proof else "not proven to be impossible"
    return f"Does not empty {nodes}: {plural(len(drained.stays), 'pod')} left after {moves}; {known}."


def show_fit(console: Console, fitted: Fitted, *, wide: bool = False) -> None:
    """Print what came of fitting pods in."""
    console.print(Text(fit_headline(fitted), style="bold"))
    _list(console, [f"{shut.pod.key}: {shut.reason}" for shut in fitted.shut], wide)
    console.print()
    show_plan(console, fitted.planned.plan, fitted.planned.compiled.participants, fitted.planned.unresolved, wide=wide)


def fit_headline(fitted: Fitted) -> str:
    """Say in one sentence whether the pods can be got in."""
    wanted = plural(len(fitted.wanted), "pod")
    moves = sum(1 for move in fitted.planned.plan.moves if move.kind == "evict")
    if fitted.possible:
        return f"Fits {wanted} in with {plural(moves, 'move')} of others."
    known = f"it is impossible: {fitted.proof}" if fitted.proof else "not proven to be impossible"
    return f"Does not fit {wanted} in: {len(fitted.shut)} left without a node; {known}."


def _list(console: Console, lines: Sequence[str], wide: bool) -> None:
    shown = lines if wide else lines[:SHOWN]
    for line in shown:
        console.print(f"  {line}", markup=False)
    if len(shown) < len(lines):
        console.print(f"  … and {len(lines) - len(shown)} more; -o wide shows all", style="dim")
