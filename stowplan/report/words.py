"""Sentences and figures, shared by all reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stowplan.answers.solve import Solution
from stowplan.models.problem import Tier
from stowplan.models.result import Outcome, Status
from stowplan.models.snapshot import Participation
from stowplan.optimizer.evaluate import ConstraintViolation
from stowplan.planning.plan import Unresolved
from stowplan.plugins_compat.compiler.participants import Participants
from stowplan.plugins_compat.requests import CPU, EPHEMERAL, MEMORY
from stowplan.report.figures import plural as plural

BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def figure(value: float) -> str:
    """Write a figure with as many digits as help: 12,345 · 123.4 · 1.23 · 0.0123."""
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def amount(resource: str, value: int) -> str:
    """Write an amount of a resource, given in scheduler units, the way kubectl does."""
    if resource == CPU:
        return f"{value / 1000:g} CPU"
    if resource in (MEMORY, EPHEMERAL):
        size, power = float(value), 0
        while abs(size) >= 1024 and power < len(BINARY) - 1:
            size, power = size / 1024, power + 1
        return f"{size:.4g}{BINARY[power]}"
    return f"{value:,}"


def participant_lines(participants: Participants, nodes: int) -> list[str]:
    """Account for every pod."""
    counts = {standing: participants.count(standing) for standing in Participation}
    sum_up = " + ".join(f"{counts[standing]} {standing.value}" for standing in Participation)
    lines = [f"{plural(nodes, 'node')}, {plural(len(participants.pods), 'pod')} = {sum_up}"]
    lines += _because("fixed", participants.reasons(Participation.FIXED))
    return lines + _because("pending, not offered to the solver", participants.reasons(Participation.PENDING))


def _because(what: str, reasons: Counter[str], most: int = 6) -> list[str]:
    if not reasons:
        return []
    shown = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(most))
    more = len(reasons) - most
    return [f"{what}: {shown}" + (f", and {more} more reasons" if more > 0 else "")]


def headline(solution: Solution, before: Sequence[int]) -> str:
    """Say in one sentence what the best placement brings.

    Parameters
    ----------
    before
        Value of each tier today.
    """
    outcome = solution.outcome
    changed = [
        f"{tier.tier.name} {figure(tier.tier.shown(old))} → {figure(tier.tier.shown(tier.value))}"
        for tier, old in zip(outcome.tiers, before, strict=True)
        if old != tier.value
    ]
    if not solution.moves:
        known = "proven optimal" if outcome.status is Status.OPTIMAL else "the best found"
        unresolved = Unresolved(len(solution.evaluation.violations), len(solution.waiting))
        if unresolved:
            return f"Nothing helps: {unresolved_words(unresolved)}, and today's placement is {known}{_gap(outcome)}."
        return f"Nothing to do: today's placement is {known}{_gap(outcome)}."
    moved = solution.evaluation.moves
    placed = sum(1 for move in solution.moves if not move.source)
    lost = sum(1 for move in solution.moves if not move.target)
    does = [f"move {plural(moved - lost, 'pod')}"] if moved - lost else []
    does += [f"place {plural(placed, 'pending pod')}"] if placed else []
    does += [f"give up {plural(lost, 'pod')}"] if lost else []
    brings = ", ".join(changed) or "nothing changes in value"
    proof = "proven optimal" if outcome.status is Status.OPTIMAL else "not proven"
    sentence = " and ".join(does)
    return f"{sentence[0].upper()}{sentence[1:]}: {brings}; {proof}{_gap(outcome)}."


def unresolved_words(unresolved: Unresolved) -> str:
    """Say what is wrong with a placement."""
    words = [f"rules are exceeded at {plural(unresolved.exceeded, 'place')}"] if unresolved.exceeded else []
    words += [f"{plural(unresolved.waiting, 'pod')} cannot be placed"] if unresolved.waiting else []
    return ", ".join(words)


def _gap(outcome: Outcome) -> str:
    open_tiers = [tier for tier in outcome.tiers if tier.status is not Status.OPTIMAL]
    if not open_tiers:
        return ""
    first = open_tiers[0]
    return f" ({first.tier.name}: the optimum is at most {first.gap:.1%} lower)"


def tier_label(tier: Tier) -> str:
    """Name a tier with its unit."""
    return f"{tier.name} [{tier.unit}]" if tier.unit else tier.name


def violation_lines(violations: Sequence[ConstraintViolation], most: int = 10) -> list[str]:
    """Say where rules are exceeded."""
    lines = []
    for violation in violations[:most]:
        now, then = (amount(violation.origin.what, value) for value in (violation.amount, violation.before))
        change = f"was {then}" if violation.amount != violation.before else "as before"
        lines.append(f"{violation.origin} at {violation.place}: {now} over ({change})")
    return lines + ([f"and {len(violations) - most} more places"] if len(violations) > most else [])
