"""The page of ``survive``: what the loss of each domain comes to, and the moves that help."""

from __future__ import annotations

from stowplan.html_report.page import Cell, Heading, Lines, Page, Section, counts, long_table
from stowplan.html_report.provenance import provenance
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.words import plural
from stowplan.planning.survive import Survival
from stowplan.report.survival import COLUMNS, pending_text, survival_line, survivor_line, untried_line, with_moves

TITLES = tuple(line.partition(":")[0] for line in COLUMNS)
"""Columns that need to be explained."""


def survival_page(found: Survival, settings: Settings, options: Options) -> Page:
    """Return the page of the losses of all domains."""
    snapshot = found.compiled.snapshot
    lines = [line for line in (survivor_line(found), untried_line(found)) if line]
    lines.append(f"{plural(len(found.losses), 'domain')} of {found.key}, {plural(len(snapshot.nodes), 'node')}.")
    sections = [
        _losses(found),
        _pending(found),
        _moves(found),
        Section("notes", "Notes", [Lines(snapshot.notes)] if snapshot.notes else []),
        provenance(found.compiled, settings, options),
    ]
    return Page("stowplan survive", survival_line(found), sections, lines, snapshot.gaps)


def _losses(found: Survival) -> Section:
    room, scheduler, moved = (line.partition(": ")[2] for line in COLUMNS)
    headings = [
        Heading("lost"),
        *(Heading("nodes", numeric=True), Heading("pods", "of the lost nodes that need another one", numeric=True)),
        *(Heading("pending", room, numeric=True), Heading("kube-scheduler", scheduler, numeric=True)),
        Heading("with moves", moved, numeric=True),
    ]
    rows = [
        [
            Cell(loss.domain.name),
            counts(len(loss.domain.nodes)),
            counts(loss.displaced),
            Cell(pending_text(loss), len(loss.pending)),
            counts(loss.left),
            Cell(with_moves(found, loss), found.impossible.get(loss.domain.name, 0)),
        ]
        for loss in found.losses
    ]
    table = long_table(plural(len(rows), "domain"), headings, rows, "-o csv lists every domain")
    told = (f"{what.lower()}: {line.partition(': ')[2]}" for what, line in zip(TITLES, COLUMNS, strict=True))
    intro = f"What becomes of the pods of each domain when its nodes are lost; {'; '.join(told)}."
    if any(not loss.proven for loss in found.losses):
        intro += " Where no placement with fewer pending pods is ruled out, (≥ n) is the number that is proven."
    return Section("losses", "Losses", [table] if rows else [], intro)


def _pending(found: Survival) -> Section:
    rows = [
        [Cell(loss.domain.name), Cell(one.pod.key), counts(one.pod.priority), Cell(one.reason)]
        for loss in found.losses
        for one in (*loss.pending, *loss.unknown)
    ]
    headings = [Heading("lost"), Heading("pod"), Heading("priority", numeric=True)]
    headings.append(Heading("why no node takes it", prose=True))
    table = long_table(plural(len(rows), "pod"), headings, rows, "-o json lists every pod")
    intro = "Pods for which there is no room, or of which it is not known, if no other pod moves."
    return Section("pending", "Pods that would be pending", [table] if rows else [], intro)


def _moves(found: Survival) -> Section:
    moves = found.survivor.moves if found.survivor is not None else ()
    rows = [[Cell(one.pod.key), Cell(one.source), Cell(one.target)] for one in moves]
    headings = [Heading("pod"), Heading("from"), Heading("to")]
    table = long_table(plural(len(rows), "move"), headings, rows, "-o json lists every move")
    intro = "Moves today, after which no pod is pending whichever of the domains that can be survived is lost."
    return Section("moves", "Moves", [table] if rows else [], intro)
