"""The pages of ``compare`` and ``solve``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stowplan.answers.compare import BEST, TODAY, Column, Comparison
from stowplan.answers.measures import measured
from stowplan.answers.ranking import RankedMove, worth_words
from stowplan.answers.solve import Solution, today
from stowplan.html_report.drawings import convergence, first_moves
from stowplan.html_report.page import Block, Cell, Heading, Lines, Page, Section, Table, counts, long_table
from stowplan.html_report.placements import (
    Placements,
    fixed_pods,
    nodes,
    plugin_scores,
    side_by_side,
    workloads,
    zones,
)
from stowplan.html_report.provenance import provenance
from stowplan.models.options import Options
from stowplan.models.problem import Tier
from stowplan.models.settings import Settings
from stowplan.models.words import plural
from stowplan.optimizer.run import Step
from stowplan.report.moves_and_nodes import savings_line
from stowplan.report.words import (
    figure,
    headline,
    known,
    participant_lines,
    protection_lines,
    resolved_lines,
    tier_label,
    violation_lines,
)

MOST_VIOLATIONS = 500
"""Most constraint violations that are listed."""


def comparison_page(comparison: Comparison, settings: Settings, options: Options, steps: Sequence[Step]) -> Page:
    """Return the page of a comparison.

    Parameters
    ----------
    settings, options
        It was made with these.
    steps
        What the search reported.
    """
    solution = comparison.solution
    placements = Placements(comparison.compiled, comparison.columns, solution.outcome.tiers, BEST)
    lines = [worth_words(comparison.worth, solution.evaluation.moves), savings_line(comparison)]
    moves = _moves(solution, comparison.moves, comparison.why)
    extra = protection_lines(comparison.protections)
    return _page(
        "stowplan compare", placements, solution, moves, steps, settings, options, lines, extra, comparison.notes
    )


def solution_page(solution: Solution, settings: Settings, options: Options, steps: Sequence[Step]) -> Page:
    """Return the page of a solution; see `comparison_page`."""
    compiled = solution.compiled
    best = measured(solution.assessment)
    columns = [
        Column(TODAY, measured(solution.assessor.today), today(compiled)),
        Column(BEST, best, solution.assignment),
    ]
    placements = Placements(compiled, columns, solution.outcome.tiers, BEST)
    comparison = Comparison(solution, columns, solution.notes)
    lines = [worth_words(comparison.worth, solution.evaluation.moves), savings_line(comparison)]
    moves = _moves(solution, comparison.moves, comparison.why)
    return _page("stowplan solve", placements, solution, moves, steps, settings, options, lines, (), solution.notes)


def _page(
    title: str,
    placements: Placements,
    solution: Solution,
    moves: Section,
    steps: Sequence[Step],
    settings: Settings,
    options: Options,
    lines: Sequence[str],
    protections: Sequence[str],
    notes: Sequence[str],
) -> Page:
    compiled = placements.compiled
    snapshot = compiled.snapshot
    stays = fixed_pods(compiled)
    told = dict.fromkeys((*snapshot.notes, *compiled.notes, *notes))
    sections = [
        side_by_side(placements),
        moves,
        nodes(placements),
        zones(placements),
        workloads(placements),
        plugin_scores(placements),
        _unscheduled(solution),
        _violations(solution),
        Section(
            stays.anchor, stays.title, [*([Lines(protections)] if protections else []), *stays.blocks], stays.intro
        ),
        search_section(solution, steps),
        Section("notes", "Notes", [Lines(list(told))] if told else []),
        provenance(compiled, settings, options),
    ]
    shown = [line for line in (*lines, *participant_lines(compiled.participants, len(snapshot.nodes))) if line]
    return Page(title, headline(solution), sections, shown, snapshot.gaps)


def _moves(solution: Solution, ranked: Sequence[RankedMove], why: Mapping[str, str]) -> Section:
    """Return the section with the moves, those that bring most first, and what the first of them bring."""
    tiers = solution.compiled.problem.tiers
    before = solution.before.values
    final = solution.evaluation.values
    improved = [t for t in range(len(tiers)) if final[t] < before[t]]
    improved = list(dict.fromkeys(improved[:1] + improved[-1:]))  # the most important one, and what was asked for
    if len(ranked) > 1 and all(one.values is None for one in ranked[:-1]):
        improved = []  # of thousands of moves it is not worked out what each brings
    lost = solution.losses
    headings = [Heading("pod"), Heading("rank", "those that bring most first", numeric=True), Heading("from")]
    headings += [Heading("to"), Heading("for", "what the move is for", prose=True)]
    headings += [
        Heading(f"then {tiers[t].name}", "the value once this move and all before it are made", True) for t in improved
    ]
    headings += [Heading("loses", "what is lost for good", prose=True)] if lost else []
    rows = [
        [
            Cell(one.move.pod.key),
            counts(i + 1),
            Cell(one.move.source or "(pending)"),
            Cell(one.move.target or "(none)"),
            Cell(why[one.move.pod.key]),
            *(_then(one, t, tiers[t]) for t in improved),
            *([Cell(", ".join(lost.get(one.move.pod.key, ())))] if lost else []),
        ]
        for i, one in enumerate(ranked)
    ]
    blocks: list[Block] = []
    for t in improved:
        course = [(one.moves, one.values[t]) for one in ranked if one.values is not None]
        bound = solution.outcome.tiers[t].bound
        if len({moves for moves, _ in course}) > 1:
            blocks.append(first_moves(tiers[t], before[t], course, bound if bound else None))
    blocks.append(long_table(plural(len(rows), "move"), headings, rows, "-o csv lists every move"))
    return Section(
        "moves", "Moves", blocks if rows else [], "Pods that change their node, those that bring most first."
    )


def _then(one: RankedMove, t: int, tier: Tier) -> Cell:
    """Return a cell with the value of a tier after a move; none where later moves belong to it."""
    if one.values is None:
        return Cell("–")
    value = tier.shown(one.values[t])
    return Cell(figure(value), round(value, 4))


def _unscheduled(solution: Solution) -> Section:
    rows = [[Cell(pod.key), counts(pod.priority), Cell(message)] for pod, message in solution.waiting]
    headings = [Heading("pod"), Heading("priority", numeric=True), Heading("why no node takes it", prose=True)]
    table = long_table(plural(len(rows), "pod"), headings, rows, "-o json lists every pod")
    return Section("unscheduled", "Unscheduled pods", [table] if rows else [], "Pods that get no node in the answer.")


def _violations(solution: Solution) -> Section:
    """Return the section with constraint violations: those that are left, and those that the answer resolves."""
    left = {(str(one.origin), one.place) for one in solution.evaluation.violations}
    resolved = [one for one in solution.before.violations if (str(one.origin), one.place) not in left]
    lines = [f"left: {line}" for line in violation_lines(solution.evaluation.violations, MOST_VIOLATIONS)]
    lines += [f"resolved: {line}" for line in resolved_lines(resolved[:MOST_VIOLATIONS])]
    lines += [f"and {len(resolved) - MOST_VIOLATIONS:,} more resolved"] if len(resolved) > MOST_VIOLATIONS else []
    lines += [f"refused by a filter, as today: {rejection}" for rejection in solution.refused[:MOST_VIOLATIONS]]
    intro = "Rules that today's placement violates; the answer makes none of them worse."
    return Section("violations", "Constraint violations", [Lines(lines)] if lines else [], intro)


def search_section(solution: Solution, steps: Sequence[Step]) -> Section:
    """Return the section about the search: what is proven, how it went, and where the time went."""
    outcome = solution.outcome
    told = [
        f"{tier_label(tier.tier)}: {figure(tier.tier.shown(tier.value))}, "
        + known(tier.tier.shown(tier.value), tier.tier.shown(tier.bound), tier.bound_by)
        for tier in outcome.tiers
    ]
    headings = [Heading("stage"), Heading("seconds", numeric=True)]
    stages = [[Cell(name), Cell(f"{seconds:.2f}", round(seconds, 3))] for name, seconds in outcome.stages]
    blocks: list[Block] = [Lines(told), *convergence([tier.tier for tier in outcome.tiers], steps, outcome.seconds)]
    if stages:
        blocks.append(Table("Time by stage of the search", headings, stages))
    ended = " It was interrupted." if outcome.interrupted else ""
    return Section("search", "Search and proof", blocks, f"The search took {outcome.seconds:.1f} s.{ended}")
