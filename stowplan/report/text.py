"""Reports for a terminal: the answer first, then the table, then details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from stowplan.answers.compare import Comparison
from stowplan.answers.parts import TierPart
from stowplan.answers.ranking import worth_words
from stowplan.answers.solve import Solution
from stowplan.answers.validate import FileCounts, PluginCounts, Validation
from stowplan.answers.verify_solution import Verification
from stowplan.models.problem import Tier
from stowplan.models.words import plural
from stowplan.optimizer.evaluate import ConstraintViolation
from stowplan.plans.move import Move
from stowplan.plugins_compat.admission import Rejection
from stowplan.plugins_compat.compiler.participants import Participants
from stowplan.plugins_compat.framework.scheduler import Decision
from stowplan.plugins_compat.simulate import Simulation
from stowplan.report.limits import SHOWN
from stowplan.report.moves_and_nodes import savings_line, show_nodes, show_ranked_moves
from stowplan.report.tables import ARROW, label_column, plain_table, say, show_names
from stowplan.report.words import (
    figure,
    gap_lines,
    headline,
    known,
    participant_lines,
    protection_lines,
    resolved_lines,
    tier_label,
    unit_notes,
    value_text,
    violation_lines,
)

SHOWN_RESOLVED = 5
"""Constraint violations that are resolved and named; ``-o wide`` names all."""

MOST_TIES = 3
"""Number of nodes with the same score that are named."""

MANY_COLUMNS = 3
"""Number of placements above which a comparison has narrower columns."""


def show_comparison(console: Console, comparison: Comparison, *, wide: bool = False) -> None:
    """Print a comparison; if ``wide``, with every figure and the moves."""
    compiled, solution = comparison.compiled, comparison.solution
    _lines(console, gap_lines(compiled.snapshot.gaps))
    _lines(console, participant_lines(compiled.participants, len(compiled.snapshot.nodes)))
    console.print()
    say(console, headline(solution), style="bold")
    if line := worth_words(comparison.worth, solution.evaluation.moves):
        say(console, line)
    if line := savings_line(comparison):
        say(console, line)
    console.print()
    show_figures(console, comparison, wide=wide)
    console.print()
    _tier_lines(console, solution)
    show_ranked_moves(console, comparison, wide=wide)
    show_nodes(console, comparison, wide=wide)
    _lines(console, protection_lines(comparison.protections))
    _violation_lines(console, solution, comparison.resolved, wide=wide)
    _refused_lines(console, solution.refused)
    _waiting_lines(console, solution)
    _score_note(console, comparison)
    _notes(console, [*compiled.snapshot.notes, *compiled.notes, *comparison.notes])


def show_solution(console: Console, solution: Solution, *, wide: bool = False) -> None:
    """Print a solution and its moves."""
    compiled = solution.compiled
    _lines(console, gap_lines(compiled.snapshot.gaps))
    _lines(console, participant_lines(compiled.participants, len(compiled.snapshot.nodes)))
    console.print()
    say(console, headline(solution), style="bold")
    console.print()
    _tier_lines(console, solution, wide=wide)
    _lines(console, unit_notes(tier.tier.unit for tier in solution.outcome.tiers if tier.value))
    _move_table(console, solution.moves if wide else solution.moves[:SHOWN], solution.losses)
    if not wide and len(solution.moves) > SHOWN:
        console.print(f"… and {len(solution.moves) - SHOWN} more; -o wide shows all", style="dim")
    _violation_lines(console, solution)
    _refused_lines(console, solution.refused)
    _waiting_lines(console, solution)
    _notes(console, [*compiled.snapshot.notes, *compiled.notes, *solution.notes])


def show_simulation(
    console: Console, participants: Participants, simulation: Simulation, nodes: Sequence[str], *, wide: bool = False
) -> None:
    """Print the scheduler's decisions."""
    _lines(console, participant_lines(participants, len(nodes)))
    console.print()
    outcomes = list(simulation.outcomes.values())
    scheduled = [d for d in outcomes if d.node is not None]
    failed = [d for d in outcomes if d.node is None]
    preempted = f", {len(simulation.preemptions)} preempted" if simulation.preemptions else ""
    said = f"{len(scheduled)} of {plural(len(outcomes), 'pod')} scheduled, {len(failed)} unscheduled{preempted}."
    console.print(Text(said if outcomes else "No pod is pending.", style="bold"))
    if tied := sum(1 for d in scheduled if d.tied):
        more = "" if wide else "; -o wide names them"
        console.print(f"For {plural(tied, 'pod')}, other nodes have the same score and may be taken instead{more}.")
    shown = outcomes if wide else (failed + scheduled)[:SHOWN]
    if shown:
        console.print()
        rows = [(d.pod.key, nodes[d.node] if d.node is not None else "-", d.message) for d in shown]
        if wide:
            ties = [(*row, _ties(decision, nodes)) for row, decision in zip(rows, shown, strict=True)]
            show_names(console, ("POD", "NODE", "REASON", "TIED WITH"), ties)
        else:
            show_names(console, ("POD", "NODE", "REASON"), rows)
    if len(shown) < len(outcomes):
        console.print(f"… and {len(outcomes) - len(shown)} more; -o wide shows all", style="dim")
    _preemption_lines(console, simulation, wide=wide)


def _ties(decision: Decision, nodes: Sequence[str]) -> str:
    """Name the nodes that might have been taken instead."""
    more = f" and {len(decision.tied) - MOST_TIES} more" if len(decision.tied) > MOST_TIES else ""
    return ", ".join(nodes[node] for node in decision.tied[:MOST_TIES]) + more


def show_verification(console: Console, verification: Verification) -> None:
    """Print the verification of a solution."""
    compiled = verification.compiled
    if verification.holds:
        moves = plural(verification.evaluation.moves, "move")
        admitted = "every pod passes the filters"
        if verification.refused:
            admitted = "the filters refuse no pod that they do not refuse today"
        console.print(Text(f"Verified: {moves}, {admitted}, no new constraint violation.", style="bold green"))
    else:
        console.print(Text(f"Not usable: {plural(len(verification.problems), 'problem')}.", style="bold red"))
        _lines(console, verification.problems[:SHOWN], "  ")
        if len(verification.problems) > SHOWN:
            console.print(f"  and {len(verification.problems) - SHOWN} more; -o json shows all", style="dim")
    for tier, value in zip(compiled.problem.tiers, verification.evaluation.values, strict=True):
        console.print(f"{tier_label(tier)}: {figure(tier.shown(value))}", markup=False)
    _refused_lines(console, verification.refused)
    _notes(console, verification.remarks)


def show_validation(console: Console, validation: Validation) -> None:
    """Print the result of a validation."""
    decisions = f"{plural(validation.pods, 'recorded decision')} in {plural(len(validation.files), 'file')}"
    if not validation.complete:
        console.print(Text("Interrupted: what follows is a part.", style="bold"))
    if validation.holds:
        console.print(Text(f"{decisions}: all reproduced.", style="bold green" if validation.complete else "bold"))
    else:
        different = sum(counts.different for counts in validation.files)
        total = plural(validation.total, "difference")
        console.print(Text(f"{decisions}: {different:,} not reproduced ({total}).", style="bold red"))
    console.print()
    _counts_table(console, "FILE", ("CASES", "PODS", "DIFFERENT"), validation.files)
    console.print()
    plugins = sorted(validation.plugins.values(), key=lambda counts: counts.plugin)
    _counts_table(console, "PLUGIN", ("REFUSALS", "SCORES", "DIFFERENT"), plugins)
    if validation.findings:
        console.print("\nThe first differences:")
    for found in validation.findings:
        d = found.difference
        where = " ".join(part for part in (d.stage, d.plugin if d.stage == "Score" else "", d.node) if part)
        _lines(console, [f"{found.source} {found.pod}: {where}: recorded {d.recorded}; ours {d.ours}"], "  ")
    if len(validation.findings) < validation.total:
        console.print(f"  and {validation.total - len(validation.findings):,} more; --show keeps more", style="dim")


def _counts_table(
    console: Console, first: str, others: Sequence[str], rows: Sequence[FileCounts] | Sequence[PluginCounts]
) -> None:
    table = plain_table()
    label_column(table, first, [astuple(row)[0] for row in rows])
    for title in others:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        name, *counts = astuple(row)
        table.add_row(escape(name), *(f"{count:,}" for count in counts), style="red" if counts[-1] else "")
    console.print(table)


# -- parts ----------------------------------------------------------------------------------------------------


def show_figures(console: Console, comparison: Comparison, *, wide: bool = False) -> None:
    """Print the figures of a comparison as a table; if ``wide``, all of them, with their units."""
    found = [one for one in comparison.figures if wide or not one.detail]
    names = [column.name for column in comparison.columns]
    table = plain_table(tight=len(names) > MANY_COLUMNS)
    label_column(table, "", [one.title for one in found])
    for name in names:
        table.add_column(name.replace(", ", ",\n"), justify="right", no_wrap=True)
    table.add_column("bound", justify="right", style="dim", no_wrap=True)
    if wide:
        table.add_column("unit", style="dim", no_wrap=True)
    for one in found:
        cells = [value_text(one.unit, one.value(column.measures)) for column in comparison.columns]
        bound = figure(one.bound) if one.bound is not None else ""
        table.add_row(escape(one.title), *cells, bound, *([escape(one.unit)] if wide else []))
    console.print(table)
    units = [one.unit for one in found if one.bound is not None]
    _lines(console, ["Lower is better in the rows with a bound.", *unit_notes(units)])


def _tier_lines(console: Console, solution: Solution, *, wide: bool = False) -> None:
    for t, outcome in enumerate(solution.outcome.tiers):
        tier = outcome.tier
        value, bound = tier.shown(outcome.value), tier.shown(outcome.bound)
        if value or bound:
            line = f"{tier_label(tier)}: {figure(value)}, {known(value, bound, outcome.bound_by)}"
            say(console, line)
            if tier.final is not None or wide:
                _part_lines(console, tier, solution.parts[t])


def _part_lines(console: Console, tier: Tier, parts: Sequence[TierPart]) -> None:
    """Print what a tier is made of, today and in the answer."""
    if len(parts) > 1:
        table = plain_table()
        label_column(table, "", [f"  {part.name}" for part in parts])
        for name in ("today", "answer", "change"):
            table.add_column(name, justify="right", no_wrap=True)
        for part in parts:
            values = (tier.shown_difference(value) for value in (part.before, part.after, part.change))
            table.add_row(escape(f"  {part.name}"), *map(figure, values))
        console.print(table)


def _move_table(console: Console, moves: Sequence[Move], losses: Mapping[str, Sequence[str]]) -> None:
    """Print moves; if one of them loses something for good, with a column that says what."""
    rows = [(move.pod.key, move.source or "(pending)", ARROW, move.target or "(none)") for move in moves]
    if any(move.pod.key in losses for move in moves):
        lost = [", ".join(losses.get(move.pod.key, ())) for move in moves]
        wider = [(*row, what) for row, what in zip(rows, lost, strict=True)]
        show_names(console, ("POD", "FROM", "", "TO", "LOSES"), wider)
    elif rows:
        show_names(console, ("POD", "FROM", "", "TO"), rows)


def _violation_lines(
    console: Console, solution: Solution, resolved: Sequence[ConstraintViolation] = (), *, wide: bool = False
) -> None:
    today, left = solution.before.violations, solution.evaluation.violations
    if today:
        counted = plural(len(today), "violated constraint")
        console.print(f"{counted} today: {len(today) - len(left)} resolved, {len(left)} remaining, none worse.")
        shown = resolved if wide else resolved[:SHOWN_RESOLVED]
        _lines(console, [f"resolved: {line}" for line in resolved_lines(shown)], "  ")
        if len(shown) < len(resolved):
            console.print(f"  … and {len(resolved) - len(shown)} more resolved; -o wide shows all", style="dim")
        _lines(console, violation_lines(left), "  ")


def _refused_lines(console: Console, refused: Sequence[Rejection], most: int = 5) -> None:
    if not refused:
        return
    plugins = Counter(rejection.status.plugin for rejection in refused)
    counted = ", ".join(f"{plugin} ({count})" for plugin, count in plugins.most_common())
    one = len(refused) == 1
    console.print(f"{plural(len(refused), 'pod')} {'violates' if one else 'violate'} a filter, as today: {counted}")
    _lines(console, [str(rejection) for rejection in refused[:most]], "  ")
    if len(refused) > most:
        console.print(f"  and {len(refused) - most} more; -o json shows all", style="dim")


def _preemption_lines(console: Console, simulation: Simulation, *, wide: bool) -> None:
    if not simulation.preemptions:
        return
    console.print()
    console.print("Preempted:")
    shown = simulation.preemptions if wide else simulation.preemptions[:SHOWN]
    for p in shown:
        node = simulation.assignment.get(p.victim.key)
        then = f"now on {node}" if node else "now unscheduled"
        _lines(console, [f"{p.victim.key} on {p.node} by {p.preemptor.key}, {then}"], "  ")
    if len(shown) < len(simulation.preemptions):
        console.print(f"  and {len(simulation.preemptions) - len(shown)} more; -o wide shows all", style="dim")


def _waiting_lines(console: Console, solution: Solution, most: int = 5) -> None:
    if not solution.waiting:
        return
    console.print(f"{plural(len(solution.waiting), 'pod')} unscheduled:")
    alike: dict[str, list[str]] = {}
    for pod, message in solution.waiting:
        alike.setdefault(message, []).append(pod.key)
    for message, keys in list(alike.items())[:most]:
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        _lines(console, [f"{keys[0]}{more}: {message}"], "  ")
    if len(alike) > most:
        console.print(f"  and {len(alike) - most} more reasons; -o json shows all", style="dim")


def _score_note(console: Console, comparison: Comparison) -> None:
    scores = comparison.best.measures.scores
    if scores is not None and scores.scored < scores.pods:
        console.print(f"Plugin scores are means over {scores.scored} of {scores.pods} pods.", style="dim")


def _notes(console: Console, notes: Sequence[str]) -> None:
    for note in dict.fromkeys(notes):
        say(console, f"note: {note}", style="dim")


def _lines(console: Console, lines: Sequence[str], indent: str = "") -> None:
    for line in lines:
        say(console, indent + line)
