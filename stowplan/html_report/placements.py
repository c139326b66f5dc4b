"""Sections that every report of placements has: figures side by side, nodes, zones, workloads, plugins, fixed pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from stowplan.answers.compare import Column
from stowplan.answers.figures import FRACTION, Figure, Value, figures
from stowplan.answers.measures import NodeUsage
from stowplan.answers.spread import Spread, by_zone, workload_spread, zone_of
from stowplan.html_report.drawings import histogram
from stowplan.html_report.meanings import meanings
from stowplan.html_report.page import (
    Block,
    Cell,
    Heading,
    Lines,
    Section,
    Table,
    counts,
    long_table,
    pair,
    share_pair,
)
from stowplan.models.kubernetes import Node
from stowplan.models.result import TierOutcome
from stowplan.models.snapshot import Participation
from stowplan.models.words import plural
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.report.words import amount, figure, unit_notes, value_text

MOST_RESOURCES = 5
"""Most resources that nodes are listed with, CPU and memory first."""

MOST_ZONES = 6
"""Zones up to which a workload's pods are counted zone by zone."""

PLUGIN = ("scores", "byPlugin")
"""Where figures have the scores of plugins."""

AMOUNTS = ("millicores", "bytes")
"""Units that are written as kubectl writes them, with the number."""

LEGEND = "Filled: {after}. Mark: {before}."


@dataclass(frozen=True)
class Placements:
    """Placements of one snapshot, today first.

    Parameters
    ----------
    tiers
        Value and bound of each tier of the answer.
    answer
        Name of the placement that the report is about.
    """

    compiled: Compiled
    columns: Sequence[Column]
    tiers: Sequence[TierOutcome]
    answer: str

    @property
    def before(self) -> Column:
        """Today's placement."""
        return self.columns[0]

    @cached_property
    def after(self) -> Column:
        """The placement that the report is about."""
        return next(column for column in self.columns if column.name == self.answer)

    @cached_property
    def figures(self) -> Sequence[Figure]:
        """What is compared."""
        return figures(self.tiers, [column.measures for column in self.columns])

    @property
    def resources(self) -> list[str]:
        """The resources that nodes offer, as many as are listed."""
        return [usage.resource for usage in self.before.measures.usage if usage.allocatable][:MOST_RESOURCES]

    @property
    def legend(self) -> str:
        """How bars are read."""
        return LEGEND.format(after=self.answer, before=self.before.name)


def side_by_side(placements: Placements, *, bounded: bool = True) -> Section:
    """Return the section with all placements beside each other.

    Parameters
    ----------
    bounded
        Whether bounds are known, and shown.
    """
    rows = []
    found = [one for one in placements.figures if one.key[:2] != PLUGIN]
    for one in found:
        values = [one.value(column.measures) for column in placements.columns]
        lower_is_better = one.bound is not None
        least = min((value for value in values if value is not None), default=None) if lower_is_better else None
        differ = len({*values}) > 1
        cells = [
            Cell(figure_text(one.key, one.unit, value), best=differ and least is not None and value == least)
            for value in values
        ]
        bound = [Cell("" if one.bound is None else figure(one.bound))] if bounded else []
        unit = "" if one.unit == FRACTION or one.unit in AMOUNTS else one.unit
        rows.append([Cell(one.title), *cells, *bound, Cell(unit)])
    headings = [
        Heading(""),
        *(Heading(column.name, numeric=True) for column in placements.columns),
        *([Heading("bound", "proven lower bound, given the values of the rows above", True)] if bounded else []),
        Heading("unit"),
    ]
    notes = " ".join(f"{note}." for note in unit_notes(one.unit for one in found if one.bound is not None))
    intro = "Rows with a bound are the objective, the most important first: lower is better, the lowest in bold, and "
    intro += "no placement is below the bound without being worse in a row above."
    if not bounded:
        names = ", ".join(one.title for one in found if one.bound is not None)
        intro = f"The objective, the most important first: {names}. Lower is better there, the lowest in bold."
    table = Table("Figures of each placement", headings, rows, sortable=False)
    told = (
        Lines(meanings(placements.compiled, (column.name for column in placements.columns), found)) if bounded else None
    )
    return Section("figures", "Placements", [table, *([told] if told else [])], f"{intro} {notes}")


def figure_text(key: Sequence[str], unit: str, value: Value) -> str:
    """Write a figure; amounts as kubectl does."""
    return amount(key[1], int(value)) if unit in AMOUNTS and value is not None else value_text(unit, value)


def nodes(placements: Placements) -> Section:
    """Return the section with every node, and drawings of how full they are."""
    compiled, resources = placements.compiled, placements.resources
    between = placements.columns[1 : placements.columns.index(placements.after)]
    chosen = [(one.name, one.measures) for one in (placements.before, *between[-1:], placements.after)]
    blocks: list[Block] = [histogram(resource, chosen) for resource in resources[:3]]
    zones = any(zone_of(node) for node in compiled.snapshot.nodes)
    prices = compiled.prices
    both = placements.before.measures.nodes, placements.after.measures.nodes
    usages = list(zip(compiled.snapshot.nodes, *both, strict=True))
    states = [_state(node, then, now) for node, then, now in usages]
    headings = [
        Heading("node"),
        *([Heading("zone")] if zones else []),
        Heading("pods", numeric=True),
        *(Heading(name.rpartition("/")[2]) for name in resources),
        *([Heading("price per hour", numeric=True)] if prices is not None else []),
        *([Heading("state")] if any(states) else []),
    ]
    rows = [
        [
            Cell(node.name),
            *([Cell(zone_of(node))] if zones else []),
            pair(then.pods, now.pods),
            *(share_pair(then.share(name), now.share(name)) for name in resources),
            *([Cell(f"{prices[node.name]:,.2f}", prices[node.name])] if prices is not None else []),
            *([Cell(state)] if any(states) else []),
        ]
        for (node, then, now), state in zip(usages, states, strict=True)
    ]
    many = any(column.measures.nodes_in_use != len(rows) for column in (placements.before, placements.after))
    used = placements.before.measures.nodes_in_use, placements.after.measures.nodes_in_use
    intro = f"Requests of all pods, as a share of what each node can allocate. {placements.legend}"
    if many:
        intro += (
            f" Nodes in use: {used[0]:,} → {used[1]:,}; those with pods of DaemonSets and static pods only are not."
        )
    table = long_table(
        f"{plural(len(rows), 'node')}, today → {placements.answer}", headings, rows, "-o csv lists every node"
    )
    return Section("nodes", "Nodes", [*blocks, table], intro)


def _state(node: Node, then: NodeUsage, now: NodeUsage) -> str:
    """Return what is special about a node."""
    words = []
    if then.pods and not now.pods:
        words.append("emptied")
    if node.unschedulable:
        words.append("cordoned")
    if node.not_ready:
        words.append("not ready")
    words += [f"taint {taint.key}" for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return ", ".join(words)


def zones(placements: Placements) -> Section:
    """Return the section with the zones; empty where nodes have none."""
    snapshot, resources = placements.compiled.snapshot, placements.resources
    then = by_zone(snapshot, placements.before.measures.nodes)
    now = by_zone(snapshot, placements.after.measures.nodes)
    headings = [Heading("zone"), Heading("nodes", numeric=True), Heading("pods", numeric=True)]
    headings += [Heading(name.rpartition("/")[2]) for name in resources]
    rows = [
        [
            Cell(old.name),
            counts(number),
            pair(old.pods, new.pods),
            *(share_pair(old.share(name), new.share(name)) for name in resources),
        ]
        for (old, number), (new, _) in zip(then, now, strict=True)
    ]
    table = Table(f"{plural(len(rows), 'zone')}, today → {placements.answer}", headings, rows)
    return Section("zones", "Zones", [table] if rows else [], f"The same, zone by zone. {placements.legend}")


def workloads(placements: Placements) -> Section:
    """Return the section with the spread of each workload."""
    found = workload_spread(placements.compiled.snapshot, placements.before.assignment, placements.after.assignment)
    zoned = any(one.before.zones or one.after.zones for one in found)
    headings = [
        Heading("workload"),
        Heading("kind"),
        Heading("pods", numeric=True),
        Heading("moves", numeric=True),
        Heading("nodes", "nodes that hold one of its pods", numeric=True),
        Heading("most on a node", "pods on the node that holds most of them", numeric=True),
        *([Heading("zones today"), Heading(f"zones, {placements.answer}")] if zoned else []),
    ]
    rows = [
        [
            Cell(f"{one.namespace}/{one.name}"),
            Cell(one.kind),
            counts(one.pods),
            counts(one.moves),
            pair(one.before.nodes, one.after.nodes),
            pair(one.before.most, one.after.most),
            *([Cell(_zones(one.before)), Cell(_zones(one.after))] if zoned else []),
        ]
        for one in found
    ]
    table = long_table(
        f"{plural(len(rows), 'workload')}, today → {placements.answer}",
        headings,
        rows,
        "workloads with fewer moves are left out",
    )
    intro = "How the pods of each workload are spread, those with most moves first."
    return Section("workloads", "Workloads", [table] if rows else [], intro)


def _zones(spread: Spread) -> str:
    """Count the pods by zone; where there are many zones, name the fewest and the most."""
    waiting = [f"{spread.unscheduled:,} unscheduled"] if spread.unscheduled else []
    if len(spread.zones) > MOST_ZONES:
        fewest, most = min(spread.zones.values()), max(spread.zones.values())
        return ", ".join([f"{len(spread.zones)} zones with {fewest:,} to {most:,}", *waiting])
    return ", ".join([*(f"{zone} {number:,}" for zone, number in spread.zones.items()), *waiting])


def plugin_scores(placements: Placements) -> Section:
    """Return the section with the scores of the scheduler's plugins, in each placement."""
    columns = placements.columns
    found = [one for one in placements.figures if one.key[:2] == PLUGIN]
    rows = []
    for one in found:
        values = [one.value(column.measures) for column in columns]
        cells = [_score(value, values) for value in values]
        rows.append([Cell(one.key[-1]), *cells])
    headings = [Heading("plugin"), *(Heading(column.name, numeric=True) for column in columns)]
    scores = placements.after.measures.scores
    sampled = ""
    if scores is not None and scores.scored < scores.pods:
        sampled = f" Means over {scores.scored:,} of {scores.pods:,} pods."
    who = placements.compiled.profile.release.who
    intro = (
        f"Mean weighted score per pod, had {who} to place each pod anew with all others in place; higher is "
        f"better, the highest in bold. Columns that schedule different pods cannot be compared.{sampled}"
    )
    return Section("plugins", "Plugin scores", [Table("Plugins", headings, rows)] if rows else [], intro)


def _score(value: Value, values: Sequence[Value]) -> Cell:
    if value is None:
        return Cell("–", -1)
    known = [other for other in values if other is not None]
    return Cell(f"{value:.1f}", round(value, 3), best=value == max(known) != min(known))


def fixed_pods(compiled: Compiled) -> Section:
    """Return the section with the pods that stay where they are, and why, the rarest reasons first."""
    participants = compiled.participants
    stay = [
        (pod, reason)
        for pod, participation, reason in zip(
            participants.pods, participants.participation, participants.reason, strict=True
        )
        if participation is Participation.FIXED
    ]
    kinds = Counter(reason.partition(": ")[0] for _, reason in stay)
    sums = Table(
        f"{plural(len(stay), 'pod')}, by reason",
        [Heading("reason"), Heading("pods", numeric=True)],
        [[Cell(reason), counts(number)] for reason, number in kinds.most_common()],
    )
    stay.sort(key=lambda one: (kinds[one[1].partition(": ")[0]], one[1], one[0].key))
    rows = [[Cell(pod.key), Cell(pod.node_name), Cell(reason)] for pod, reason in stay]
    headings = [Heading("pod"), Heading("node"), Heading("reason", prose=True)]
    each = long_table(
        f"{plural(len(stay), 'pod')}, the rarest reasons first",
        headings,
        rows,
        "pods with the most frequent reasons are left out",
    )
    intro = "Pods that the search leaves on their node. --may-move REASON lifts some of these reasons."
    return Section("fixed", "Pods that stay", [sums, each] if stay else [], intro)
