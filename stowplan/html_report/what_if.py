"""The page of ``what-if``: what a scenario changes in the best placement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from stowplan.answers.measures import NodeUsage
from stowplan.answers.solve import Solution
from stowplan.answers.spread import zone_of
from stowplan.answers.what_if import CHANGED, UNCHANGED, Difference, WhatIf
from stowplan.html_report.answers import search_section
from stowplan.html_report.page import Cell, Heading, Lines, Page, Section, Table, long_table, pair, share_pair
from stowplan.html_report.placements import AMOUNTS, MOST_RESOURCES, figure_text
from stowplan.html_report.provenance import provenance
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.words import plural
from stowplan.optimizer.run import Step
from stowplan.report.what_if import change_text, note_lines, pending_line, question
from stowplan.report.words import headline


def what_if_page(
    found: WhatIf, settings: Settings, options: Options, steps: tuple[Sequence[Step], Sequence[Step]]
) -> Page:
    """Return the page of a scenario.

    Parameters
    ----------
    settings
        Those without the scenario.
    steps
        What both searches reported.
    """
    lines = [f"{UNCHANGED}: {headline(found.before)}", f"{CHANGED}: {headline(found.after)}"]
    notes = note_lines(found)
    sections = [
        Section("scenario", "Scenario", [Lines(found.changed.effects)], "What is different."),
        _figures(found),
        _pending(found),
        _nodes(found),
        _relocations(found),
        _search(found.before, steps[0], UNCHANGED),
        _search(found.after, steps[1], CHANGED),
        Section("notes", "Notes", [Lines(notes)] if notes else []),
        _settings(found, settings, options),
    ]
    lines = [question(found), *lines]
    return Page("stowplan what-if", pending_line(found), sections, lines, found.before.compiled.snapshot.gaps)


def _figures(found: WhatIf) -> Section:
    rows = [
        [
            Cell(one.title),
            Cell(figure_text(one.key, one.unit, one.before)),
            Cell(figure_text(one.key, one.unit, one.after)),
            Cell(_change(one)),
        ]
        for one in found.figures
    ]
    headings = [Heading(""), *(Heading(name, numeric=True) for name in (UNCHANGED, CHANGED, "change"))]
    table = Table("Figures of both answers", headings, rows, sortable=False)
    intro = "The best placement that was found for the cluster as it is, and for the changed one. Neither is today's."
    return Section("figures", "Figures", [table], intro)


def _change(one: Difference) -> str:
    if not one.change or one.unit not in AMOUNTS:
        return change_text(one)
    return ("+" if one.change > 0 else "-") + figure_text(one.key, one.unit, abs(one.change))


def _pending(found: WhatIf) -> Section:
    rows = [[Cell(key), Cell(why)] for key, why in found.newly_pending.items()]
    headings = [Heading("pod"), Heading("why no node takes it", prose=True)]
    source = "-o json lists every pod"
    blocks = []
    if rows:
        blocks.append(long_table(f"{plural(len(rows), 'pod')} pending with the scenario only", headings, rows, source))
    if found.no_longer_pending:
        count = plural(len(found.no_longer_pending), "pod")
        keys = [[Cell(key)] for key in found.no_longer_pending]
        blocks.append(long_table(f"{count} no longer pending", [Heading("pod")], keys, source))
    return Section("pending", "Pending pods", blocks, "Pods that have a node in one of the answers only.")


def _nodes(found: WhatIf) -> Section:
    """Return the section with the nodes of both clusters."""
    resources = [usage.resource for usage in found.measures[0].usage if usage.allocatable][:MOST_RESOURCES]
    snapshots = found.before.compiled.snapshot, found.after.compiled.snapshot
    then, now = (
        {node.name: usage for node, usage in zip(snapshot.nodes, measures.nodes, strict=True)}
        for snapshot, measures in zip(snapshots, found.measures, strict=True)
    )
    by_name = {node.name: node for snapshot in snapshots for node in snapshot.nodes}
    zoned = any(map(zone_of, by_name.values()))
    apart = then.keys() != now.keys()
    headings = [
        Heading("node"),
        *([Heading("zone")] if zoned else []),
        Heading("pods", numeric=True),
        *(Heading(name.rpartition("/")[2]) for name in resources),
        *([Heading("scenario")] if apart else []),
    ]
    rows = [
        [
            Cell(name),
            *([Cell(zone_of(node))] if zoned else []),
            pair(then[name].pods if name in then else 0, now[name].pods if name in now else 0),
            *(share_pair(_share(then.get(name), one), _share(now.get(name), one)) for one in resources),
            *([Cell("" if name in then and name in now else "removed" if name in then else "added")] if apart else []),
        ]
        for name, node in by_name.items()
    ]
    intro = f"Requests of all pods, as a share of what each node can allocate. Filled: {CHANGED}. Mark: {UNCHANGED}."
    table = long_table(
        f"{plural(len(rows), 'node')}, {UNCHANGED} → {CHANGED}", headings, rows, "-o json has the node of every pod"
    )
    return Section("nodes", "Nodes", [table], intro)


def _share(usage: NodeUsage | None, resource: str) -> float | None:
    return 0.0 if usage is None else usage.share(resource)


def _relocations(found: WhatIf) -> Section:
    there = [{pod.key for pod in one.compiled.snapshot.pods} for one in (found.before, found.after)]

    def where(key: str, which: int, node: str | None) -> Cell:
        return Cell(node or ("(pending)" if key in there[which] else "(no such pod)"))

    ordered = sorted(found.relocations, key=lambda one: sum(one.key not in keys for keys in there))
    rows = [[Cell(one.key), where(one.key, 0, one.before), where(one.key, 1, one.after)] for one in ordered]
    headings = [Heading("pod"), Heading(UNCHANGED), Heading(CHANGED)]
    table = long_table(plural(len(rows), "pod"), headings, rows, "-o csv lists every pod")
    intro = "Pods that the answers put on different nodes; those that exist in one of them only come last."
    return Section("pods", "Pods on another node", [table] if rows else [], intro)


def _search(solution: Solution, steps: Sequence[Step], which: str) -> Section:
    section = search_section(solution, steps)
    return replace(section, anchor=f"search-{which.replace(' ', '-')}", title=f"{section.title}, {which}")


def _settings(found: WhatIf, settings: Settings, options: Options) -> Section:
    section = provenance(found.before.compiled, settings, options)
    scenario = found.scenario.model_dump(by_alias=True, exclude_defaults=True, mode="json")
    (table,) = section.blocks
    assert isinstance(table, Table)
    row = [Cell("scenario"), Cell(json.dumps(scenario, ensure_ascii=False))]
    return replace(section, blocks=[replace(table, rows=[*table.rows, row])])
