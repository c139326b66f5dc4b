"""The report of ``survive``: the answer in two sentences, and a line for each domain."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from stowplan.models.words import plural
from stowplan.planning.domain_loss import Loss
from stowplan.planning.survive import Survival
from stowplan.report.rows import Row
from stowplan.report.tables import ARROW, say, show_lines, show_names
from stowplan.report.words import gap_lines

SHOWN_NAMES = 5
"""Domains that a sentence names."""

COLUMNS = (
    "PENDING: pods of the lost nodes for which there is no room while no other pod moves",
    "KUBE-SCHEDULER: pods that it leaves pending, one by one",
    "WITH MOVES: pods that would be pending even if others had moved before",
)
"""What the columns mean."""


def show_survival(console: Console, found: Survival, *, wide: bool = False) -> None:
    """Print what the loss of each domain comes to; all pods and moves if ``wide``."""
    snapshot = found.compiled.snapshot
    for line in gap_lines(snapshot.gaps):
        say(console, line)
    say(console, f"{plural(len(found.losses), 'domain')} of {found.key}, {plural(len(snapshot.nodes), 'node')}")
    console.print()
    say(console, survival_line(found), style="bold")
    for line in filter(None, (survivor_line(found), untried_line(found))):
        say(console, line)
    console.print()
    titles = ["LOST", "NODES", "PODS", "PENDING", "KUBE-SCHEDULER", "WITH MOVES"]
    rows = [
        [
            loss.domain.name,
            f"{len(loss.domain.nodes):,}",
            f"{loss.displaced:,}",
            pending_text(loss),
            f"{loss.left:,}",
            with_moves(found, loss),
        ]
        for loss in found.losses
    ]
    show_names(console, titles, rows, right=titles[1:])
    pending = [
        f"{loss.domain.name}: {one.pod.key}: {one.reason}"
        for loss in found.losses
        for one in (*loss.pending, *loss.unknown)
    ]
    show_lines(console, pending, "Pods that would be pending:", wide=wide)
    moves = found.survivor.moves if found.survivor is not None else ()
    lines = [f"{one.pod.key}  {one.source} {ARROW} {one.target}" for one in moves]
    show_lines(console, lines, "Moves:", wide=wide)
    console.print()
    for note in (*COLUMNS, *snapshot.notes):
        say(console, f"note: {note}", style="dim")


def survival_line(found: Survival) -> str:
    """Say in one sentence whether every domain can be lost today."""
    if not found.losses:
        return "It is not known which pods would be pending."
    lost = [loss for loss in found.losses if loss.pending]
    unknown = sum(len(loss.unknown) for loss in found.losses)
    beside = f"; of {plural(unknown, 'pod')} it is not known, since they are outside the model" if unknown else ""
    if not lost:
        which = plural(len(found.losses), "domain") + (" that were looked at" if found.untried else "")
        return f"No pod is pending, whichever of {which} is lost{beside}."
    proven = sum(1 for loss in lost if loss.at_least)
    sure = "proven" if proven == len(lost) else f"proven for {proven}" if proven else "not proven"
    does = "leaves" if len(lost) == 1 else "leave"
    return f"{len(lost)} of {plural(len(found.losses), 'domain')} {does} pods pending when lost ({sure}){beside}."


def survivor_line(found: Survival) -> str:
    """Say in one sentence how a placement is reached that survives; empty if today's does."""
    if not any(loss.pending for loss in found.losses):
        return ""
    words = []
    if found.impossible:
        names = ", ".join(list(found.impossible)[:SHOWN_NAMES]) + (", …" if len(found.impossible) > SHOWN_NAMES else "")
        words.append(f"No moves are enough to survive the loss of {names} (proven).")
    others = " of the others" if found.impossible else ""
    if found.survivor is not None:
        count = len(found.survivor.moves)
        known = "proven fewest" if found.survivor.proven else f"at least {found.survivor.least:,} are needed"
        if count or not found.impossible:
            words.append(f"After {plural(count, 'move')} ({known}), no pod is pending whichever{others} is lost.")
    elif len(found.impossible) < len(found.losses):
        words.append(f"No placement that survives the loss of each{others} was found; not proven that there is none.")
    return " ".join(words)


def untried_line(found: Survival) -> str:
    """Name the domains that were not looked at; empty if all were."""
    if not found.untried:
        return ""
    names = ", ".join(domain.name for domain in found.untried[:SHOWN_NAMES])
    names += ", …" if len(found.untried) > SHOWN_NAMES else ""
    return f"Not looked at before the end of the time: {plural(len(found.untried), 'domain')} ({names})."


def survival_rows(found: Survival) -> Iterator[Row]:
    """Yield one row for each domain."""
    yield ["domain", "nodes", "displaced", "pending", "at least", "kube-scheduler", "with moves at least"]
    for loss in found.losses:
        least = found.impossible.get(loss.domain.name, 0)
        yield [
            *(
                loss.domain.name,
                len(loss.domain.nodes),
                loss.displaced,
                len(loss.pending),
                loss.at_least,
                loss.left,
                least,
            )
        ]


def loss_line(loss: Loss) -> str:
    """Say in a line what a loss comes to."""
    return f"{loss.domain.name}: {plural(loss.displaced, 'pod')} displaced, {pending_text(loss)} pending"


def pending_text(loss: Loss) -> str:
    """Write how many pods are pending, how many of them are proven, and of how many it is not known."""
    known = "" if loss.proven else f" (≥ {loss.at_least:,})"
    return f"{len(loss.pending):,}{known}" + (f" + {len(loss.unknown):,}?" if loss.unknown else "")


def with_moves(found: Survival, loss: Loss) -> str:
    """Write how many pods would be pending even if others had moved before; a question mark if that is not known."""
    least = found.impossible.get(loss.domain.name)
    if least is not None:
        return f"≥ {least:,}"
    return "0" if not loss.pending or found.survivor is not None else "?"
