"""The page of ``replay``: where the pods of a plan land in a simulated cluster."""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.answers.assessment import Assessor
from stowplan.answers.compare import TODAY, Column
from stowplan.answers.measures import measured
from stowplan.answers.solve import today
from stowplan.html_report.drawings import ticks, upright
from stowplan.html_report.page import Block, Cell, Drawing, Heading, Lines, Page, Section, counts, long_table
from stowplan.html_report.placements import Placements, nodes, plugin_scores, side_by_side, workloads, zones
from stowplan.html_report.provenance import provenance_of
from stowplan.models.problem import Tier
from stowplan.models.result import TRIVIAL, TierOutcome
from stowplan.models.words import plural
from stowplan.planning.replay import Replay
from stowplan.report.replay import ORDER, chance_lines, headline
from stowplan.report.svg import Axis, Curve, Point, line_chart
from stowplan.report.words import figure, tier_label

PLANNED, SIMULATED = "planned", "simulated"


def replay_page(replay: Replay) -> Page:
    """Return the page of a replay."""
    compiled, outcome, plan = replay.compiled, replay.outcome, replay.plan
    assessor = Assessor(compiled)
    planned = today(compiled).moved((move.pod.key, move.target) for move in plan.moves)
    placements = [(TODAY, today(compiled)), (PLANNED, planned), (SIMULATED, outcome.assignment)]
    columns = [Column(name, measured(assessor.assess(nodes)), nodes) for name, nodes in placements]
    tiers = [
        TierOutcome(tier, value, 0, TRIVIAL, 0.0)
        for tier, value in zip(compiled.problem.tiers, columns[-1].measures.values, strict=True)
    ]
    shown = Placements(compiled, columns, tiers, SIMULATED)
    lines = [f"Stops early: {outcome.halted}."] if outcome.halted else []
    if replay.distribution is not None and outcome.landings:
        lines += chance_lines(replay.distribution)
    lines += [] if outcome.actual.legal else ["The simulated result has constraint violations that today has not."]
    sections = [
        side_by_side(shown, bounded=False),
        _course(replay, [tier.tier for tier in tiers]),
        _landings(replay),
        _left(replay),
        nodes(shown),
        zones(shown),
        workloads(shown),
        plugin_scores(shown),
        Section("notes", "Notes", [Lines(replay.notes)] if replay.notes else []),
        provenance_of(compiled.snapshot.fingerprint, plan.settings, f"replayed with seed {replay.seed}"),
    ]
    return Page("stowplan replay", headline(replay), sections, lines, plan.gaps)


def _course(replay: Replay, tiers: Sequence[Tier]) -> Section:
    """Return the section with the objective after each wave, as planned and as simulated."""
    outcome = replay.outcome
    drawn: list[Block] = []
    for t, tier in enumerate(tiers):
        planned = [outcome.before.values[t], *(wave.planned.values[t] for wave in outcome.waves)]
        actual = [outcome.before.values[t], *(wave.actual.values[t] for wave in outcome.waves)]
        if len({*planned, *actual}) > 1:
            drawn.append(_curves(tier, planned, actual))
    intro = "The objective once each wave is over."
    return Section("course", "Wave by wave", drawn, intro)


def _curves(tier: Tier, planned: Sequence[int], actual: Sequence[int]) -> Drawing:
    values = [[tier.shown(value) for value in values] for values in (planned, actual)]
    low, high = min(map(min, values)), max(map(max, values))
    waves = len(planned) - 1
    points = [
        [Point(wave, value, tooltip=f"after wave {wave}: {figure(value)}") for wave, value in enumerate(one)]
        for one in values
    ]
    chart = line_chart(
        f"{tier.name}, wave by wave",
        Axis("waves", 0, waves, [(wave, f"{wave:g}") for wave in ticks(0, waves, whole=True)]),
        upright(low, high),
        [Curve(points[0], dashed=True), Curve(points[1])],
    )
    return Drawing(chart, f"{tier_label(tier)} as planned (dashed) and as simulated (solid).")


def _landings(replay: Replay) -> Section:
    certainty = replay.distribution.certainty if replay.distribution is not None else {}
    headings = [
        *(Heading("pod"), Heading("wave", numeric=True), Heading("from"), Heading("planned"), Heading("lands on")),
        *(Heading("result"), Heading("landing is", "in runs with chance"), Heading("message", prose=True)),
    ]
    landings = sorted(replay.outcome.landings, key=lambda landing: ORDER.index(landing.verdict))
    rows = [
        [
            *(Cell(one.move.pod.key), counts(one.wave), Cell(one.move.source or "(pending)")),
            *(Cell(one.move.target or "(none)"), Cell(one.node or "(none)"), Cell(one.verdict.value)),
            Cell(certainty[one.move.id].value if one.move.id in certainty else "–"),
            Cell(one.message),
        ]
        for one in landings
    ]
    table = long_table(plural(len(rows), "move"), headings, rows, "-o csv lists every move")
    return Section("landings", "Where pods land", [table] if rows else [], "What needs attention comes first.")


def _left(replay: Replay) -> Section:
    """Return the section with pods that are unscheduled at the end, and those that were preempted."""
    outcome = replay.outcome
    waiting = [[Cell(key), Cell(said)] for key, said in outcome.waiting.items()]
    preempted = [[Cell(one.key), Cell(one.node), Cell(str(one.preemptor))] for one in outcome.preempted]
    source = "-o json lists every pod"
    blocks: list[Block] = []
    if waiting:
        headings = [Heading("pod"), Heading("why no node takes it", prose=True)]
        blocks.append(long_table(f"{plural(len(waiting), 'pod')} unscheduled at the end", headings, waiting, source))
    if preempted:
        headings = [Heading("pod"), Heading("node"), Heading("preempted by")]
        blocks.append(long_table(f"{plural(len(preempted), 'pod')} preempted", headings, preempted, source))
    return Section("unscheduled", "Unscheduled and preempted", blocks)
