"""How far a plan is carried out, for people and as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from stowplan.documents.application import ApplicationDocument, ProgressDocument
from stowplan.models.words import plural
from stowplan.report.limits import SHOWN
from stowplan.report.rows import Row

STAGES = {
    "waiting": "not begun",
    "asked": "not evicted yet",
    "leaving": "evicted",
    "landed": "as planned",
    "elsewhere": "elsewhere",
    "refused": "refused",
}


def show_application(console: Console, found: ApplicationDocument, *, wide: bool = False) -> None:
    """Print how a run ended or what one would do, then the moves."""
    console.print(Text(_headline(found), style="bold"))
    for reason in found.stopped:
        console.print(Text(f"{'Would stop' if found.dry_run else 'Stopped'}: {reason}"))
    if found.dry_run and not found.complete:
        for cordon in found.cordons:
            console.print(Text(f"Would cordon {cordon}"))
        console.print(Text("Nothing was changed; --yes carries the plan out."))
    elif not found.complete:
        console.print(Text(f"The same command goes on from here; the journal is {found.journal}"))
    if found.moves:
        console.print()
        shown = found.moves if wide else found.moves[:SHOWN]
        console.print(_table(shown))
        if len(shown) < len(found.moves):
            console.print(Text(f"… and {plural(len(found.moves) - len(shown), 'move')} more; -o wide shows all"))


def application_rows(found: ApplicationDocument) -> Iterator[Row]:
    """Yield one row for every move."""
    yield list(ProgressDocument.model_fields)
    for move in found.moves:
        yield ["" if value is None else value for value in move.model_dump().values()]


def _headline(found: ApplicationDocument) -> str:
    moves, waves = plural(len(found.moves), "move"), plural(found.waves, "wave")
    counts = Counter(move.stage for move in found.moves)
    if set(counts) <= {"waiting"} and found.dry_run:
        return f"Plan {found.plan}: {moves} in {waves}."
    told = ", ".join(f"{counts[stage]} {words}" for stage, words in STAGES.items() if counts[stage])
    over = "all waves over" if found.complete else f"{found.waves_over} of {waves} over"
    return f"Plan {found.plan}: {over}; {moves}: {told}."


def _table(moves: Sequence[ProgressDocument]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="", padding=(0, 2, 0, 0))
    for name in ("WAVE", "POD", "FROM", "", "TO", "STATE"):
        table.add_column(name, justify="right" if name == "WAVE" else "left")
    for move in moves:
        arrow = "" if move.source is None and move.target is None else "→"
        cells = (
            str(move.wave),
            f"{move.namespace}/{move.name}",
            move.source or "(pending)",
            arrow,
            move.target or "(none)",
            _state(move),
        )
        table.add_row(*(escape(cell) for cell in cells))
    return table


def _state(move: ProgressDocument) -> str:
    words = STAGES[move.stage]
    if move.stage == "leaving" and move.kind != "remove":
        words = "evicted, replacement not ready"
    if move.stage == "elsewhere":
        words = f"on {move.node}"
    if move.stage == "landed" and move.node != move.target:
        words = f"as planned, on {move.node} in exchange"
    if move.replacement and move.replacement != move.name:
        words += f", now {move.replacement}"
    return f"{words}: {move.message}" if move.message and move.stage in {"waiting", "asked", "refused"} else words
