"""The report of a plan: its gain, then the moves of each wave with their purposes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from stowplan.answers.verify_plan import PlanVerification
from stowplan.models.plan import MoveDocument, Plan, PlanTier, WaveDocument
from stowplan.models.words import plural
from stowplan.planning.plan import Unresolved
from stowplan.plugins_compat.compiler.participants import Participants
from stowplan.report.tables import say
from stowplan.report.words import (
    change,
    figure,
    gap_lines,
    known,
    no_improvement,
    participant_lines,
    protection_lines,
    reason_counts,
    tier_label,
    unit_notes,
    unresolved_words,
)

SHOWN_MOVES = 8
"""Maximum number of moves of a wave to show; ``-o wide`` shows all."""
SHOWN_WAVES = 12
SHOWN_LINES = 10
SHOWN_PROBLEMS = 20

SIGNS = {"evict": ("~", "yellow"), "place": ("+", "green"), "remove": ("-", "red")}


def show_plan(
    console: Console,
    plan: Plan,
    participants: Participants | None,
    unresolved: Unresolved | None = None,
    *,
    wide: bool = False,
    worth: str = "",
    gaps: bool = True,
    limit: int | None = None,
) -> None:
    """Print a plan.

    Parameters
    ----------
    participants
        Accounts for every pod of the snapshot; a plan that was read from a file only knows how many there were.
    unresolved
        What is left when it is done.
    worth
        How many of its moves bring most.
    gaps
        Whether to begin with what the dump lacks.
    limit
        Maximum number of moves to show in all waves together, instead of in each.
    """
    if gaps:
        _lines(console, gap_lines(plan.gaps))
    if participants is None:
        say(console, f"{plural(plan.snapshot.nodes, 'node')}, {plural(plan.snapshot.pods, 'pod')}")
    else:
        _lines(console, participant_lines(participants, plan.snapshot.nodes))
    console.print()
    say(console, headline(plan, unresolved), style="bold")
    if worth:
        say(console, worth)
    if plan.waves:
        say(console, subtitle(plan), style="dim")
    before: Sequence[float] = [tier.before for tier in plan.tiers]
    counts = _shown_moves(plan, wide=wide, limit=limit)
    for wave, count in zip(plan.waves, counts, strict=False):
        console.print()
        _wave(console, plan, wave, before, count, wide=wide)
        before = wave.tiers
    if len(counts) < len(plan.waves):
        console.print()
        rest = sum(len(wave.moves) for wave in plan.waves[len(counts) :])
        console.print(
            f"… and {plural(len(plan.waves) - len(counts), 'wave')} more, with {plural(rest, 'move')}; "
            "-o wide shows all",
            style="dim",
        )
    console.print()
    shown = [tier for tier in plan.tiers if tier.before or tier.after]
    _lines(console, [*map(known_line, shown), *unit_notes(tier.unit for tier in shown)])
    _listed(
        console, f"Left out, because no order of moves reaches it or {plan.cannot} the pod:", plan.given_up, wide=wide
    )
    _immovable(console, plan, wide=wide)
    _lines(console, protection_lines(plan.protections))
    _lines(console, [f"note: {note}" for note in plan.notes])


def show_plan_verification(console: Console, verification: PlanVerification) -> None:
    """Print the verification of a plan."""
    drift = verification.drift
    made = f"{len(drift.done)} of {plural(len(drift.done) + len(drift.open), 'move')} done"
    if verification.holds:
        rest = "the rest can be applied, as tried in several orders of each wave" if drift.open else "nothing is left"
        console.print(Text(f"Verified: {made}; {rest}.", style="bold green"))
    else:
        console.print(Text(f"Does not hold: {made}, {plural(len(drift.problems), 'problem')}.", style="bold red"))
        _lines(console, [f"  {problem}" for problem in drift.problems[:SHOWN_PROBLEMS]])
        if len(drift.problems) > SHOWN_PROBLEMS:
            console.print(f"  and {len(drift.problems) - SHOWN_PROBLEMS} more; -o json shows all", style="dim")
    _lines(console, [f"note: {remark}" for remark in drift.remarks])


def headline(plan: Plan, unresolved: Unresolved | None = None) -> str:
    """Return one sentence about the moves and gain of a plan."""
    proof = "proven optimal" if plan.status == "OPTIMAL" else "not proven optimal"
    if not plan.waves:
        if unresolved:
            return f"{no_improvement(plan.status)}: {unresolved_words(unresolved)}."
        what = "no better placement can be reached" if plan.given_up else "no better placement was found"
        return f"Nothing to do: {what}; {proof}."
    kinds = Counter("park" if _parked(plan, move) else move.kind for move in plan.moves)
    does = [
        f"{plural(kinds[kind], noun)}"
        for kind, noun in (
            ("evict", "move"),
            ("place", "placement"),
            ("remove", "preemption"),
            ("park", "temporary move"),
        )
        if kinds[kind]
    ]
    changed = [change(tier.name, tier.before, tier.after) for tier in plan.tiers if tier.before != tier.after]
    brings = ", ".join(changed) or "no objective changes"
    return f"Plan: {', '.join(does)} in {plural(len(plan.waves), 'wave')}: {brings}; {proof}."


def subtitle(plan: Plan) -> str:
    """Return what a plan is called, who can carry it out until when, and whether it could have fewer waves."""
    minimal = plan.least_waves >= len(plan.waves)
    least = "minimum number of waves (proven)" if minimal else f"lower bound: {plural(plan.least_waves, 'wave')}"
    return f"{plan.id}, for {plan.by}; valid until {plan.expires_at}; {least}"


def _shown_moves(plan: Plan, *, wide: bool, limit: int | None) -> list[int]:
    """Return how many moves to show of each wave, as far as waves are shown."""
    sizes = [len(wave.moves) for wave in plan.waves]
    if wide:
        return sizes
    if limit is None:
        return [min(size, SHOWN_MOVES) for size in sizes[:SHOWN_WAVES]]
    shown: list[int] = []
    for size in sizes:
        if limit <= sum(shown):
            break
        shown.append(min(size, limit - sum(shown)))
    return shown


def _wave(console: Console, plan: Plan, wave: WaveDocument, before: Sequence[float], count: int, *, wide: bool) -> None:
    changed = [
        change(tier.name, then, now)
        # A plan by hand need not say what each of its waves brings.
        for tier, then, now in zip(plan.tiers, before, wave.tiers, strict=False)
        if then != now
    ]
    brings = f": {', '.join(changed)}" if changed else ""
    say(console, f"Wave {wave.number} of {len(plan.waves)}, {plural(len(wave.moves), 'move')}{brings}", style="bold")
    if wave.cordon:
        named = wave.cordon if wide else wave.cordon[:SHOWN_MOVES]
        more = f" and {len(wave.cordon) - len(named)} more" if len(named) < len(wave.cordon) else ""
        say(console, f"  cordoned during the wave: {', '.join(named)}{more}", style="dim")
    for move in wave.moves[:count]:
        say(console, _move(move))
    if count < len(wave.moves):
        console.print(f"  … and {len(wave.moves) - count} more", style="dim")


def _move(move: MoveDocument) -> Text:
    sign, style = SIGNS[move.kind]
    line = Text(f"  {sign} ", style=style)
    line.append(move.pod.key)
    line.append(f"  {move.source or '(pending)'} → {move.target or '(none)'}", style="default")
    if move.loses:
        line.append(f"  loses {', '.join(move.loses)}", style="bold red")
    if about := remarks(move):
        line.append(f"  # {'; '.join(about)}", style="dim")
    return line


def remarks(move: MoveDocument) -> list[str]:
    """Return the purpose of a move, the budgets that it draws on, and what has to come first."""
    about = [move.why] if move.why else []
    about += [f"PodDisruptionBudget {name}" for name in move.budgets]
    return about + (["replacement starts after the old pod is gone"] if move.same_name or move.waits else [])


def _parked(plan: Plan, move: MoveDocument) -> bool:
    return any(other.follows == move.id for other in plan.moves)


def known_line(tier: PlanTier) -> str:
    """Return what is proven of a tier, in one line."""
    return f"{tier_label(tier)}: {figure(tier.after)}, {known(tier.after, tier.bound, tier.bound_by)}"


def _immovable(console: Console, plan: Plan, *, wide: bool) -> None:
    if not plan.immovable:
        return
    words = reason_counts(Counter(entry.reason for entry in plan.immovable), SHOWN_LINES)
    say(console, f"{plan.cannot} {plural(len(plan.immovable), 'pod')}: {words}")
    if not wide:
        console.print("  -o wide gives the reason of each pod", style="dim")
    else:
        _lines(console, (f"  {e.pod.key} on {e.node}: {e.reason}" for e in plan.immovable))


def _listed(console: Console, title: str, lines: Sequence[str], *, wide: bool) -> None:
    if not lines:
        return
    console.print(title)
    _lines(console, (f"  {line}" for line in (lines if wide else lines[:SHOWN_LINES])))
    if not wide and len(lines) > SHOWN_LINES:
        console.print(f"  and {len(lines) - SHOWN_LINES} more; -o wide shows all", style="dim")


def _lines(console: Console, lines: Sequence[str] | Iterator[str]) -> None:
    for line in lines:
        say(console, line)
