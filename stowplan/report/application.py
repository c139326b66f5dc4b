"""Reports of a plan that is being carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from stowplan.documents.application import ApplicationDocument, ProgressDocument
from stowplan.models.words import plural
from stowplan.report.limits import SHOWN
from stowplan.report.rows import Row
from stowplan.report.tables import ARROW, show_names

STAGES = {
    "waiting": "not started",
    "asked": "not evicted yet",
    "leaving": "evicted",
    "landed": "as planned",
    "elsewhere": "elsewhere",
    "refused": "refused",
    "dropped": "left out",
}


def show_application(console: Console, found: ApplicationDocument, *, wide: bool = False) -> None:
    """Print the result of a run, or of a dry run, and then the moves."""
    console.print(Text(_headline(found), style="bold"))
    for reason in found.stopped:
        console.print(Text(f"{'Would stop' if found.dry_run else 'Stopped'}: {reason}"))
    if found.dry_run and not found.complete:
        for cordon in found.cordons:
            console.print(Text(f"Would cordon {cordon}"))
        console.print(Text("Nothing was changed; --yes applies the plan."))
    elif found.obsolete:
        console.print(
            Text(
                "The plan has to be made anew from a new snapshot, as --replan does. If the cluster changes back, the "
                f"same command resumes; the journal is {found.journal}"
            )
        )
    elif not found.complete and found.resumable:
        console.print(Text(f"Run the same command again to resume; the journal is {found.journal}"))
    if found.moves:
        console.print()
        shown = found.moves if wide else found.moves[:SHOWN]
        rows = [_cells(move) for move in shown]
        show_names(console, ("WAVE", "POD", "FROM", "", "TO", "STATE"), rows, right=("WAVE",))
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
    over = "all waves done" if found.complete else f"{found.waves_over} of {waves} done"
    return f"Plan {found.plan}: {over}; {moves}: {told}."


def _cells(move: ProgressDocument) -> tuple[str, ...]:
    return (
        str(move.wave),
        f"{move.namespace}/{move.name}",
        move.source or "(pending)",
        "" if move.source is None and move.target is None else ARROW,
        move.target or "(none)",
        _state(move),
    )


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
    return (
        f"{words}: {move.message}"
        if move.message and move.stage in {"waiting", "asked", "refused", "dropped"}
        else words
    )
