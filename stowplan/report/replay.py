"""Reports of a replayed plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from stowplan.models.words import plural
from stowplan.planning.replay import Replay
from stowplan.plans.replay.outcome import Landing, Verdict
from stowplan.report.rows import Row
from stowplan.report.words import figure, tier_label

SHOWN = 20
"""Landings that a table shows; ``-o wide`` shows all."""

ORDER = (Verdict.NEEDS_STEERING, Verdict.NOT_EVICTED, Verdict.NOT_BEGUN, Verdict.AS_GOOD, Verdict.PLANNED)
"""The moves that somebody has to look at come first."""


def show_replay(console: Console, replay: Replay, *, wide: bool = False) -> None:
    """Print what became of a plan."""
    outcome = replay.outcome
    console.print(Text(headline(replay), style="bold"))
    if outcome.halted:
        console.print(f"It comes to a halt: {outcome.halted}.", markup=False)
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for name in ("today", "planned", "as it comes"):
        table.add_column(name, justify="right")
    worths = (outcome.before.values, outcome.planned.values, outcome.actual.values)
    for tier, *values in zip(replay.compiled.problem.tiers, *worths, strict=True):
        if any(values):
            table.add_row(escape(tier_label(tier)), *(figure(tier.shown(value)) for value in values))
    console.print(table)
    if not outcome.actual.legal:
        console.print("Rules are exceeded that are not exceeded today.")
    landings = outcome.landings if wide else sorted(outcome.landings, key=lambda landing: ORDER.index(landing.verdict))
    _landings(console, landings if wide else landings[:SHOWN])
    if not wide and len(landings) > SHOWN:
        console.print(f"… and {len(landings) - SHOWN} more; -o wide shows all", style="dim")
    if outcome.waiting:
        console.print(f"\n{plural(len(outcome.waiting), 'pod')} without a node at the end:")
        for key, said in list(outcome.waiting.items())[: None if wide else SHOWN]:
            console.print(f"  {key}: {said}", markup=False)
    if outcome.driven:
        console.print("\nPreempted by kube-scheduler:")
        for driven in outcome.driven[: None if wide else SHOWN]:
            console.print(f"  {driven.key} on {driven.node} by {driven.preemptor}", markup=False)
    for note in replay.notes:
        console.print(f"note: {note}", markup=False, style="dim")


WORDS = {
    Verdict.PLANNED: "as planned",
    Verdict.AS_GOOD: "elsewhere, as good",
    Verdict.NEEDS_STEERING: "in need of steering",
    Verdict.NOT_EVICTED: "not evicted",
    Verdict.NOT_BEGUN: "not begun",
}


def headline(replay: Replay) -> str:
    """Say in one sentence what becomes of the plan."""
    outcome = replay.outcome
    moves = len(outcome.landings)
    if not moves:
        return "The plan has no moves."
    counts = [f"{outcome.count(verdict)} {words}" for verdict, words in WORDS.items() if outcome.count(verdict)]
    hand = "Steered by the extender" if replay.steered else "Left to kube-scheduler"
    kept = "" if replay.kept is None else f"; {replay.kept:.0%} of the gain"
    return f"{hand}, {plural(moves, 'move')}: {', '.join(counts)}{kept}."


def _landings(console: Console, landings: Sequence[Landing]) -> None:
    if not landings:
        return
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("WAVE", "POD", "FROM", "PLANNED", "LANDS ON", "VERDICT"):
        table.add_column(title, overflow="fold", justify="right" if title == "WAVE" else "left")
    for landing in landings:
        move = landing.move
        table.add_row(
            str(landing.wave),
            escape(move.pod.key),
            escape(move.source or "(pending)"),
            escape(move.target or "(none)"),
            escape(landing.node or "(none)"),
            landing.verdict.value,
        )
    console.print(table)


def replay_rows(replay: Replay) -> Iterator[Row]:
    """Yield one row for every move."""
    yield ["wave", "id", "namespace", "name", "source", "target", "node", "verdict", "message"]
    for landing in replay.outcome.landings:
        move = landing.move
        yield [
            landing.wave,
            move.id,
            move.pod.namespace,
            move.pod.name,
            move.source or "",
            move.target or "",
            landing.node,
            landing.verdict.value,
            landing.message,
        ]
