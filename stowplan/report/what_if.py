"""The report of ``what-if``: what is different, both answers in a sentence, and the figures side by side."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape

from stowplan.answers.what_if import CHANGED, UNCHANGED, Difference, WhatIf
from stowplan.models.result import Status
from stowplan.models.words import plural
from stowplan.report.rows import Row
from stowplan.report.tables import ARROW, label_column, plain_table, say, show_lines, show_names
from stowplan.report.words import gap_lines, headline, unit_notes, value_text

PENDING = "pending (priority"
"""Beginning of the names of the tiers that count pending pods."""


def show_what_if(console: Console, found: WhatIf, *, wide: bool = False) -> None:
    """Print what a scenario changes; if ``wide``, with every figure and every pod."""
    for line in gap_lines(found.before.compiled.snapshot.gaps):
        say(console, line)
    say(console, question(found))
    say(console, pending_line(found), style="bold")
    say(console, f"{UNCHANGED}: {headline(found.before)}")
    say(console, f"{CHANGED}: {headline(found.after)}")
    console.print()
    _show_figures(console, found, wide=wide)
    _show_pending(console, found, wide=wide)
    if wide:
        _show_relocations(console, found)
    console.print()
    for note in note_lines(found):
        say(console, f"note: {note}", style="dim")


def question(found: WhatIf) -> str:
    """Say in one sentence what is different."""
    name = f"{found.scenario.name}: " if found.scenario.name else ""
    return f"What if {name}{'; '.join(found.changed.effects)}?"


def note_lines(found: WhatIf) -> list[str]:
    """Return what has to be known about both answers."""
    before, after = found.before.compiled, found.after.compiled
    notes = unit_notes(tier.unit for tier in after.problem.tiers)
    if found.scenario.weights:
        notes.append("figures of the objective are by the unchanged weights")
    if not is_proven(found):
        notes.append("not proven: there may be a placement with fewer pending pods")
    if Status.FEASIBLE in (found.before.status, found.after.status):
        notes.append("not both answers are proven optimal, so that a part of a change may be due to the search")
    notes += dict.fromkeys(
        [*before.snapshot.notes, *before.notes, *after.notes, *found.before.notes, *found.after.notes]
    )
    return notes


def pending_line(found: WhatIf) -> str:
    """Say in one sentence for which pods there is no room, and for which there is."""
    made = {pod.key for pod in found.placeholders}
    lost = [key for key in found.newly_pending if key not in made]
    proven = ", proven" if is_proven(found) else ", not proven"
    if lost:
        words = f"{plural(len(lost), 'pod')} more {'is' if len(lost) == 1 else 'are'} pending{proven}"
    elif found.no_longer_pending:
        count = len(found.no_longer_pending)
        words = f"{plural(count, 'pod')} fewer {'is' if count == 1 else 'are'} pending"
    else:
        words = "The same pods are pending" if found.pending[1].keys() - made else "No pod is pending"
    if made:
        part = "" if found.with_room == len(made) else proven
        words += f"; room for {found.with_room:,} of {plural(len(made), 'placeholder')}{part}"
    return f"{words}; {plural(found.after.evaluation.moves, 'move')}, {found.before.evaluation.moves:,} without."


def is_proven(found: WhatIf) -> bool:
    """Whether no placement has fewer pending pods: every tier up to the last one that counts them is optimal."""
    statuses = [tier.status for tier in found.after.outcome.tiers]
    last = max(
        (t for t, tier in enumerate(found.after.outcome.tiers) if tier.tier.name.startswith("pending (p")), default=-1
    )
    return all(status is Status.OPTIMAL for status in statuses[: last + 1])


def what_if_rows(found: WhatIf) -> Iterator[Row]:
    """Yield one row for each figure, then one for each pod that the answers put on different nodes."""
    yield ["figure", "unit", UNCHANGED, CHANGED, "change"]
    for one in found.figures:
        cells = (one.before, one.after, one.change)
        yield [one.name, one.unit, *("" if cell is None else cell for cell in cells)]
    for pod in found.relocations:
        yield [f"pods.{pod.key}", "node", pod.before or "", pod.after or "", ""]


def _show_figures(console: Console, found: WhatIf, *, wide: bool) -> None:
    shown = [one for one in found.figures if wide or not one.detail]
    table = plain_table()
    label_column(table, "", [one.title for one in shown])
    for title in (UNCHANGED, CHANGED, "change"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in shown:
        cells = (value_text(one.unit, one.before), value_text(one.unit, one.after), change_text(one))
        table.add_row(escape(one.title), *cells)
    console.print(table)


def change_text(one: Difference) -> str:
    """Write by how much a figure is higher with the scenario."""
    if not one.change:
        return "" if one.change == 0 else "-"
    return ("+" if one.change > 0 else "") + value_text(one.unit, one.change)


def _show_pending(console: Console, found: WhatIf, *, wide: bool) -> None:
    lines = [f"{key}: {why}" for key, why in found.newly_pending.items()]
    show_lines(console, lines, "Pending with the scenario only:", wide=wide)
    show_lines(console, found.no_longer_pending, "No longer pending:", wide=wide)


def _show_relocations(console: Console, found: WhatIf) -> None:
    if found.relocations:
        console.print()
        console.print("Pods on another node than without the scenario:")
        rows = [[one.key, one.before or "(none)", ARROW, one.after or "(none)"] for one in found.relocations]
        show_names(console, ["POD", "UNCHANGED", "", "WHAT IF"], rows)
