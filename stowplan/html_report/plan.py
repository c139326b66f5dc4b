"""The page of ``plan``: the moves in waves, and what they lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stowplan.answers.compare import TODAY, Column
from stowplan.answers.measures import measured
from stowplan.answers.solve import today
from stowplan.html_report.drawings import convergence, waves
from stowplan.html_report.page import Block, Cell, Heading, Lines, Page, Section, counts, long_table
from stowplan.html_report.placements import (
    Placements,
    fixed_pods,
    nodes,
    plugin_scores,
    side_by_side,
    workloads,
    zones,
)
from stowplan.html_report.provenance import provenance_of
from stowplan.models.plan import MoveDocument, Plan, WaveDocument
from stowplan.models.problem import Tier
from stowplan.models.result import TierOutcome
from stowplan.models.words import plural
from stowplan.optimizer.run import Step
from stowplan.planning.plan import Planned
from stowplan.report.plan import headline, known_line
from stowplan.report.words import figure, participant_lines, protection_lines

AFTER = "after the plan"
"""What the placement at the end of a plan is called."""

KINDS: Mapping[str, str] = {"evict": "eviction", "place": "placement", "remove": "preemption"}


def plan_page(planned: Planned, search: str, steps: Sequence[Step]) -> Page:
    """Return the page of a plan.

    Parameters
    ----------
    search
        With which options was searched; empty if it was not.
    steps
        What the search reported.
    """
    plan, compiled = planned.plan, planned.compiled
    after = measured(planned.assessor.assess(planned.assignment))
    before = measured(planned.assessor.today)
    columns = [Column(TODAY, before, today(compiled)), Column(AFTER, after, planned.assignment)]
    tiers = [
        TierOutcome(tier, value, tier.whole(told.bound), told.bound_by, 0.0)
        for tier, value, told in zip(compiled.problem.tiers, after.values, plan.tiers, strict=True)
    ]
    placements = Placements(compiled, columns, tiers, AFTER)
    notes = list(dict.fromkeys((*compiled.snapshot.notes, *plan.notes)))
    sections = [
        side_by_side(placements),
        _waves(plan),
        _moves(plan),
        nodes(placements),
        zones(placements),
        workloads(placements),
        plugin_scores(placements),
        _left_out(plan),
        _immovable(plan),
        fixed_pods(compiled),
        _search(plan, [tier.tier for tier in tiers], steps),
        Section("notes", "Notes", [Lines(notes)] if notes else []),
        provenance_of(plan.snapshot.fingerprint, plan.settings, search),
    ]
    lines = [planned.worth_words, _validity(plan), *_cordons(plan)]
    lines += participant_lines(compiled.participants, len(compiled.snapshot.nodes))
    told = headline(plan, planned.unresolved)
    return Page("stowplan plan", told, sections, [line for line in lines if line], plan.gaps)


def _validity(plan: Plan) -> str:
    if not plan.waves:
        return ""
    least = "the fewest that are possible" if plan.least_waves >= len(plan.waves) else f"at least {plan.least_waves}"
    steered = "; needs an extender that steers replacements" if plan.steered else "; needs no extender"
    needs = "" if plan.without_cluster else steered
    return f"{plan.id}, for {plan.by}; valid until {plan.expires_at}; waves: {least}{needs}."


def _cordons(plan: Plan) -> list[str]:
    return [f"Cordon before the first wave: {', '.join(plan.cordon)}."] if plan.cordon else []


def _waves(plan: Plan) -> Section:
    """Return the section with the waves as a timeline, and with what holds while each is under way."""
    if not plan.waves:
        return Section("waves", "Waves", [])
    changing = [
        t for t, tier in enumerate(plan.tiers) if any(w.tiers and w.tiers[t] != tier.before for w in plan.waves)
    ]
    headings = [Heading("wave", numeric=True), Heading("moves", numeric=True)]
    headings += [Heading(f"then {plan.tiers[t].name}", "once the wave is over", numeric=True) for t in changing]
    headings += [Heading("fullest node meanwhile", "of the nodes that take part, while old and new pods run")]
    headings += [Heading("cordoned meanwhile", prose=True)] if any(wave.cordon for wave in plan.waves) else []
    rows = [
        [
            counts(wave.number),
            counts(len(wave.moves)),
            *(Cell(figure(wave.tiers[t]), wave.tiers[t]) if wave.tiers else Cell("–") for t in changing),
            Cell(_peak(wave)),
            *([Cell(", ".join(wave.cordon))] if any(w.cordon for w in plan.waves) else []),
        ]
        for wave in plan.waves
    ]
    table = long_table(plural(len(rows), "wave"), headings, rows, "-o json lists every wave")
    timeout = plan.waves[0].barrier.timeout_seconds
    intro = (
        "A wave begins when every old pod of the one before is gone and every replacement is ready; if that takes more "
        f"than {timeout // 60} minutes, the plan stops."
    )
    return Section("waves", "Waves", [waves(plan), table], intro)


def _peak(wave: WaveDocument) -> str:
    """Return the fullest node while a wave is under way, by its fullest resource."""
    shares = [(share, node, name) for node, peaks in wave.peak.items() for name, share in peaks.items()]
    if not shares:
        return "–"
    share, node, name = max(shares)
    return f"{node}: {name} {share:.0%}"


def _moves(plan: Plan) -> Section:
    losing = any(move.loses for move in plan.moves)
    headings = [
        *(Heading("pod"), Heading("wave", numeric=True), Heading("kind"), Heading("from"), Heading("to")),
        Heading("for", "what the move is for", prose=True),
        Heading("budgets", "PodDisruptionBudgets that the move draws on"),
        *([Heading("loses", "what is lost for good", prose=True)] if losing else []),
    ]
    rows = [
        [
            *(Cell(move.pod.key), counts(wave.number), Cell(_kind(plan, move))),
            *(Cell(move.source or "(pending)"), Cell(move.target or "(none)"), Cell(_purpose(move))),
            Cell(", ".join(move.budgets)),
            *([Cell(", ".join(move.loses))] if losing else []),
        ]
        for wave in plan.waves
        for move in wave.moves
    ]
    table = long_table(plural(len(rows), "move"), headings, rows, "-o csv lists every move")
    return Section("moves", "Moves", [table] if rows else [], "In the order of the plan.")


def _kind(plan: Plan, move: MoveDocument) -> str:
    return "move" if plan.without_cluster and move.kind == "evict" else KINDS[move.kind]


def _purpose(move: MoveDocument) -> str:
    waits = "the replacement starts after the old pod is gone" if move.same_name or move.waits else ""
    return "; ".join(filter(None, (move.why, waits)))


def _left_out(plan: Plan) -> Section:
    intro = f"Moves of the best placement that no order of moves reaches, or whose pod {plan.cannot}."
    lines = [*plan.given_up, *protection_lines(plan.protections)]
    return Section("left-out", "Left out", [Lines(lines)] if lines else [], intro)


def _immovable(plan: Plan) -> Section:
    """Return the section with the pods that the executor cannot evict."""
    rows = [[Cell(one.pod.key), Cell(one.node), Cell(one.reason)] for one in plan.immovable]
    headings = [Heading("pod"), Heading("node"), Heading("reason", prose=True)]
    table = long_table(plural(len(rows), "pod"), headings, rows, "-o json lists every pod")
    return Section("immovable", "Immovable pods", [table] if rows else [], f"Pods that {plan.cannot}.")


def _search(plan: Plan, tiers: Sequence[Tier], steps: Sequence[Step]) -> Section:
    blocks: list[Block] = [Lines([known_line(tier) for tier in plan.tiers])]
    blocks += convergence(tiers, steps, steps[-1].seconds if steps else 0.0)
    return Section("search", "Search and proof", blocks)
