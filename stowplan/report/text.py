"""Reports for a terminal: the answer first, then the table, then details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from stowplan.answers.compare import BEST, TODAY, Comparison
from stowplan.answers.measures import Measures
from stowplan.answers.solve import Solution
from stowplan.answers.validate import FileTally, PluginTally, Validation
from stowplan.answers.verify_solution import Verification
from stowplan.models.problem import Tier
from stowplan.models.result import Status
from stowplan.plans.move import Move
from stowplan.plugins_compat.admission import Rejection
from stowplan.plugins_compat.compiler.participants import Participants
from stowplan.plugins_compat.simulate import Simulation
from stowplan.report.figures import SHOWN_MOVES, plural
from stowplan.report.words import figure, headline, participant_lines, tier_label, violation_lines


def show_comparison(console: Console, comparison: Comparison, *, wide: bool = False) -> None:
    """Print a comparison; if ``wide``, with the moves."""
    compiled, solution = comparison.compiled, comparison.solution
    today = comparison.column(TODAY)
    assert today is not None
    _lines(console, participant_lines(compiled.participants, len(compiled.snapshot.nodes)))
    console.print()
    console.print(Text(headline(solution, today.values), style="bold"))
    console.print()
    console.print(_comparison_table(comparison))
    best = comparison.column(BEST)
    assert best is not None
    _tier_lines(console, solution)
    if wide:
        _move_table(console, solution.moves)
    _repair_lines(console, today, best)
    _waiting_lines(console, solution)
    _score_note(console, comparison)
    _notes(console, [*compiled.snapshot.notes, *compiled.notes, *comparison.notes])


def show_solution(console: Console, solution: Solution, before: Sequence[int], *, wide: bool = False) -> None:
    """Print a solution and its moves."""
    compiled = solution.compiled
    _lines(console, participant_lines(compiled.participants, len(compiled.snapshot.nodes)))
    console.print()
    console.print(Text(headline(solution, before), style="bold"))
    console.print()
    _tier_lines(console, solution)
    _move_table(console, solution.moves if wide else solution.moves[:SHOWN_MOVES])
    if not wide and len(solution.moves) > SHOWN_MOVES:
        console.print(f"… and {len(solution.moves) - SHOWN_MOVES} more; -o wide shows all", style="dim")
    if solution.evaluation.violations:
        console.print("Rules that stay exceeded:")
        _lines(console, violation_lines(solution.evaluation.violations), "  ")
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
    placed = [d for d in outcomes if d.node is not None]
    failed = [d for d in outcomes if d.node is None]
    preempted = f", {len(simulation.preemptions)} preempted" if simulation.preemptions else ""
    said = f"{len(placed)} of {plural(len(outcomes), 'pod')} placed, {len(failed)} not{preempted}."
    console.print(Text(said if outcomes else "No pod waits for a node.", style="bold"))
    shown = outcomes if wide else (failed + placed)[:SHOWN_MOVES]
    if shown:
        console.print()
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("POD", "NODE", "WHY NOT"):
            table.add_column(title, overflow="fold")
        for decision in shown:
            node = nodes[decision.node] if decision.node is not None else "-"
            table.add_row(escape(decision.pod.key), escape(node), escape(decision.message))
        console.print(table)
    if len(shown) < len(outcomes):
        console.print(f"… and {len(outcomes) - len(shown)} more; -o wide shows all", style="dim")
    _preemption_lines(console, simulation, wide=wide)


def show_verification(console: Console, verification: Verification) -> None:
    """Print what a check found."""
    compiled = verification.compiled
    if verification.holds:
        moves = plural(verification.evaluation.moves, "move")
        admitted = "every pod admitted by the filters"
        if verification.refused:
            admitted = "no pod refused by the filters that is not refused today"
        console.print(Text(f"Verified: {moves}, {admitted}, no rule exceeded anew.", style="bold green"))
    else:
        console.print(Text(f"Not usable: {plural(len(verification.problems), 'problem')}.", style="bold red"))
        _lines(console, verification.problems[:SHOWN_MOVES], "  ")
        if len(verification.problems) > SHOWN_MOVES:
            console.print(f"  and {len(verification.problems) - SHOWN_MOVES} more; -o json shows all", style="dim")
    for tier, value in zip(compiled.problem.tiers, verification.evaluation.values, strict=True):
        console.print(f"{tier_label(tier)}: {figure(tier.shown(value))}", markup=False)
    _refused_lines(console, verification.refused)
    _notes(console, verification.remarks)


def show_validation(console: Console, validation: Validation) -> None:
    """Print what came of running recorded decisions."""
    decisions = f"{plural(validation.pods, 'recorded decision')} in {plural(len(validation.files), 'file')}"
    if not validation.complete:
        console.print(Text("Interrupted: what follows is a part.", style="bold"))
    if validation.holds:
        console.print(Text(f"{decisions}: every one is ours.", style="bold green" if validation.complete else "bold"))
    else:
        different = sum(tally.different for tally in validation.files)
        total = plural(validation.total, "difference")
        console.print(Text(f"{decisions}: not ours are {different:,} ({total}).", style="bold red"))
    console.print()
    console.print(_tally_table("FILE", ("CASES", "PODS", "DIFFERENT"), validation.files))
    console.print()
    plugins = sorted(validation.plugins.values(), key=lambda tally: tally.plugin)
    console.print(_tally_table("PLUGIN", ("REFUSALS", "SCORES", "DIFFERENT"), plugins))
    if validation.findings:
        console.print("\nThe first differences:")
    for found in validation.findings:
        d = found.difference
        where = " ".join(part for part in (d.stage, d.plugin if d.stage == "Score" else "", d.node) if part)
        _lines(console, [f"{found.source} {found.pod}: {where}: recorded {d.recorded}; ours {d.ours}"], "  ")
    if len(validation.findings) < validation.total:
        console.print(f"  and {validation.total - len(validation.findings):,} more; --show keeps more", style="dim")


def _tally_table(first: str, others: Sequence[str], tallies: Sequence[FileTally] | Sequence[PluginTally]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, overflow="fold")
    for title in others:
        table.add_column(title, justify="right")
    for tally in tallies:
        name, *counts = astuple(tally)
        table.add_row(escape(name), *(f"{count:,}" for count in counts), style="red" if counts[-1] else "")
    return table


# -- parts ----------------------------------------------------------------------------------------------------


def _comparison_table(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for column in comparison.columns:
        table.add_column(column.name.replace(", ", ",\n"), justify="right")
    table.add_column("bound", justify="right", style="dim")

    def row(title: str, value: Callable[[Measures], str], bound: str = "") -> None:
        cells = [value(column.measures) for column in comparison.columns]
        table.add_row(escape(title), *(escape(cell) for cell in cells), bound)

    row("pods with a node", lambda m: f"{m.placed:,}")
    row("pods without", lambda m: f"{m.pending:,}")
    row("refused by filters", lambda m: f"{len(m.refused):,}")
    row("moves", lambda m: f"{m.moves:,}")
    for t, outcome in enumerate(comparison.solution.outcome.tiers):
        row(outcome.tier.name, _value_of(outcome.tier, t), figure(outcome.tier.shown(outcome.bound)))
    for r, usage in enumerate(comparison.columns[0].measures.usage):
        row(f"{usage.resource} requested", lambda m, r=r: f"{m.usage[r].mean:.1%}")  # type: ignore[misc]
        row("  deviation of nodes", lambda m, r=r: f"{m.usage[r].deviation:.1%}")  # type: ignore[misc]
        row("  fullest node", lambda m, r=r: f"{m.usage[r].highest:.0%}")  # type: ignore[misc]
    row("nodes in use", lambda m: f"{m.nodes_in_use:,}")
    if comparison.columns[0].measures.scores is not None:
        row("plugin score per pod", lambda m: f"{m.scores.total:.1f}" if m.scores and m.scores.scored else "-")
    return table


def _value_of(tier: Tier, t: int) -> Callable[[Measures], str]:
    return lambda m: figure(tier.shown(m.values[t]))


def _tier_lines(console: Console, solution: Solution) -> None:
    for tier in solution.outcome.tiers:
        if tier.value == 0 and tier.bound == 0:
            continue
        bound = f"bound {figure(tier.tier.shown(tier.bound))} by {tier.bound_by}, gap {tier.gap:.1%}"
        proof = f"proven optimal by {tier.bound_by}" if tier.status is Status.OPTIMAL else bound
        console.print(f"{tier_label(tier.tier)}: {figure(tier.tier.shown(tier.value))}, {proof}", markup=False)


def _move_table(console: Console, moves: Sequence[Move]) -> None:
    if not moves:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("POD", "FROM", "", "TO"):
        table.add_column(title, overflow="fold")
    for move in moves:
        source, target = move.source or "(pending)", move.target or "(none)"
        table.add_row(escape(move.pod.key), escape(source), "→", escape(target))
    console.print(table)


def _repair_lines(console: Console, today: Measures, best: Measures) -> None:
    if not today.violations:
        return
    mended = len(today.violations) - len(best.violations)
    console.print(
        f"Rules exceeded today at {plural(len(today.violations), 'place')}: "
        f"{mended} mended, {len(best.violations)} left, none worse."
    )
    _lines(console, violation_lines(best.violations), "  ")


def _refused_lines(console: Console, refused: Sequence[Rejection], most: int = 5) -> None:
    if not refused:
        return
    plugins = Counter(rejection.status.plugin for rejection in refused)
    counted = ", ".join(f"{count} by {plugin}" for plugin, count in plugins.most_common())
    stand = "it stands, as today" if len(refused) == 1 else "they stand, as today"
    console.print(f"{plural(len(refused), 'pod')} would be refused where {stand}: {counted}")
    _lines(console, [str(rejection) for rejection in refused[:most]], "  ")


def _preemption_lines(console: Console, simulation: Simulation, *, wide: bool) -> None:
    if not simulation.preemptions:
        return
    console.print()
    console.print("Preempted:")
    shown = simulation.preemptions if wide else simulation.preemptions[:SHOWN_MOVES]
    for p in shown:
        node = simulation.assignment.get(p.victim.key)
        then = f"now on {node}" if node else "now without a node"
        _lines(console, [f"{p.victim.key} on {p.node} by {p.preemptor.key}, {then}"], "  ")
    if len(shown) < len(simulation.preemptions):
        console.print(f"  and {len(simulation.preemptions) - len(shown)} more; -o wide shows all", style="dim")


def _waiting_lines(console: Console, solution: Solution, most: int = 5) -> None:
    if not solution.waiting:
        return
    console.print(f"{plural(len(solution.waiting), 'pod')} without a node:")
    alike: dict[str, list[str]] = {}
    for pod, message in solution.waiting:
        alike.setdefault(message, []).append(pod.key)
    for message, keys in list(alike.items())[:most]:
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        _lines(console, [f"{keys[0]}{more}: {message}"], "  ")
    if len(alike) > most:
        console.print(f"  and {len(alike) - most} more reasons; -o json shows all", style="dim")


def _score_note(console: Console, comparison: Comparison) -> None:
    scores = comparison.columns[-1].measures.scores
    if scores is not None and scores.scored < scores.pods:
        console.print(f"Plugin scores are means of {scores.scored} of {scores.pods} pods.", style="dim")


def _notes(console: Console, notes: Sequence[str]) -> None:
    for note in dict.fromkeys(notes):
        console.print(f"note: {note}", style="dim", markup=False)


def _lines(console: Console, lines: Sequence[str], indent: str = "") -> None:
    for line in lines:
        console.print(indent + line, markup=False, highlight=False)
