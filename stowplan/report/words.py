"""Sentences and numbers that all reports share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from stowplan.answers.figures import FRACTION, Value
from stowplan.answers.protections import Protection
from stowplan.answers.solve import Solution
from stowplan.models.plan import PlanTier, ProtectionDocument
from stowplan.models.problem import Tier
from stowplan.models.result import TRIVIAL, Outcome, Status, improvement_reached
from stowplan.models.snapshot import Participation
from stowplan.models.words import plural
from stowplan.optimizer.evaluate import ConstraintViolation
from stowplan.planning.plan import Unresolved
from stowplan.plugins_compat.compiler.participants import Participants
from stowplan.plugins_compat.requests import CPU, EPHEMERAL, MEMORY

BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def figure(value: float) -> str:
    """Write a figure with few digits: 12,345 · 123.4 · 1.23 · 0.0123."""
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def value_text(unit: str, value: Value) -> str:
    """Write a figure of a comparison; a dash if it is not defined."""
    if value is None:
        return "-"
    return f"{value:.1%}" if unit == FRACTION else figure(value)


def amount(resource: str, value: int) -> str:
    """Write an amount of a resource, given in scheduler units, the way kubectl does."""
    if resource == CPU:
        return f"{value / 1000:,.10g} CPU"
    if resource in (MEMORY, EPHEMERAL):
        size, power = float(value), 0
        while abs(size) >= 1024 and power < len(BINARY) - 1:
            size, power = size / 1024, power + 1
        return f"{size:.4g}{BINARY[power]}"
    return f"{value:,}"


def gap_lines(gaps: Sequence[str]) -> list[str]:
    """Say first of all what a dump lacks; the notes say the rest."""
    if not gaps:
        return []
    more = f" ({len(gaps) - 1} more in the notes)" if len(gaps) > 1 else ""
    return [f"Incomplete dump: {gaps[0]}{more}."]


def participant_lines(participants: Participants, nodes: int) -> list[str]:
    """Return lines that account for every pod."""
    counts = {participation: participants.count(participation) for participation in Participation}
    sum_up = " + ".join(f"{count:,} {participation.value}" for participation, count in counts.items())
    lines = [f"{plural(nodes, 'node')}, {plural(len(participants.pods), 'pod')} = {sum_up}"]
    lines += _because("fixed", participants.reasons(Participation.FIXED))
    return lines + _because("pending, outside the model", participants.reasons(Participation.PENDING))


def protection_lines(protections: Sequence[Protection | ProtectionDocument]) -> list[str]:
    """Say how many pods each reason keeps on their node, and by how much lower the objective could be without it."""
    lines = []
    for one in protections:
        known = "proven" if one.proven else "at least, as far as was searched"
        brings = f"{one.tier} {figure(one.gain)} lower ({known})" if one.tier else f"nothing better ({known})"
        if not one.tier and not one.proven:
            brings = "nothing better was found"
        lines.append(f"{one.reason} keeps {plural(one.pods, 'pod')}; with --may-move {one.reason}: {brings}")
    return lines


def reason_counts(reasons: Mapping[str, int], most: int) -> str:
    """Count reasons, the most frequent first; text after a colon is about one pod and is left out."""
    counts: Counter[str] = Counter()
    for reason, count in reasons.items():
        counts[reason.partition(": ")[0]] += count
    shown = ", ".join(f"{reason} ({count:,})" for reason, count in counts.most_common(most))
    more = len(counts) - most
    return shown + (f", and {plural(more, 'more reason')}" if more > 0 else "")


def _because(what: str, reasons: Counter[str], most: int = 6) -> list[str]:
    return [f"{what}: {reason_counts(reasons, most)}"] if reasons else []


def headline(solution: Solution) -> str:
    """Return one sentence about the gain of the best placement."""
    outcome = solution.outcome
    if not solution.moves:
        if outcome.status is not Status.OPTIMAL and not outcome.searched:
            cause = "interrupted" if outcome.interrupted else "the time limit was over"
            return f"Not searched: {cause} before the search began. Whether today's placement is good is not known."
        kept = solution.assessor.kept_violations
        unresolved = Unresolved(len(solution.evaluation.violations), len(solution.waiting), kept)
        if unresolved:
            return f"{no_improvement(outcome.status)}: {unresolved_words(unresolved)}{_gap(outcome)}."
        if outcome.status is Status.OPTIMAL:
            return "Nothing to do: today's placement is proven optimal."
        return f"Nothing to do: no better placement than today's was found{_gap(outcome)}."
    changed = [
        change(tier.tier.name, tier.tier.shown(old), tier.tier.shown(tier.value))
        for tier, old in zip(outcome.tiers, solution.before.values, strict=True)
        if old != tier.value
    ]
    moved = solution.evaluation.moves
    scheduled = sum(1 for move in solution.moves if not move.source)
    lost = sum(1 for move in solution.moves if not move.target)
    does = [f"move {plural(moved - lost, 'pod')}"] if moved - lost else []
    does += [f"schedule {plural(scheduled, 'pending pod')}"] if scheduled else []
    does += [f"preempt {plural(lost, 'pod')}"] if lost else []
    brings = ", ".join(changed) or "no objective changes"
    proof = "; proven optimal" if outcome.status is Status.OPTIMAL else _gap(outcome) + _reached(solution)
    sentence = " and ".join(does)
    return f"{sentence[0].upper()}{sentence[1:]}: {brings}{proof}."


def no_improvement(status: str) -> str:
    """Return that no improvement was found, or that none exists."""
    return "No improvement possible (proven)" if status == Status.OPTIMAL else "No improvement found"


def unresolved_words(unresolved: Unresolved) -> str:
    """Return the number of unscheduled pods and of constraint violations, in words."""
    words = []
    if unresolved.waiting:
        stay = "stays" if unresolved.waiting == 1 else "stay"
        words.append(f"{plural(unresolved.waiting, 'pod')} {stay} unscheduled")
    if unresolved.violations:
        remain = "remains" if unresolved.violations == 1 else "remain"
        words.append(f"{plural(unresolved.violations, 'violated constraint')} {remain}")
    if unresolved.kept:
        violate = "violates" if unresolved.kept == 1 else "violate"
        words.append(f"{plural(unresolved.kept, 'pod')} that cannot be moved {violate} a filter")
    return ", ".join(words)


def change(name: str, then: float, now: float) -> str:
    """Return how an objective changes, in words."""
    return f"{name} {figure(then)} → {figure(now)}"


def _gap(outcome: Outcome) -> str:
    """Return what is proven of the first objective that may not be optimal; empty if all are."""
    tier = next((tier for tier in outcome.tiers if tier.status is not Status.OPTIMAL), None)
    if tier is None:
        return ""
    if not tier.bound:
        return f"; not proven optimal, no lower bound of {tier.tier.name} yet"
    return f"; not proven optimal, gap of {tier.tier.name} {tier.gap:.1%}"


def _reached(solution: Solution) -> str:
    """Say how much of the possible improvement is reached at least, by the first objective that may be improved."""
    tiers = solution.outcome.tiers
    t = next(t for t, tier in enumerate(tiers) if tier.status is not Status.OPTIMAL)
    share = improvement_reached(solution.before.values, tiers, t)
    # Rounded down: a claim that is not quite true would be worse than none.
    return "" if not share or not tiers[t].bound else f", at least {int(100 * share)}% of the possible improvement"


def known(value: float, bound: float, by: str) -> str:
    """Return what is proven of a value, in words.

    Parameters
    ----------
    value, bound
        As shown, in the unit of the tier.
    by
        What proved the bound.
    """
    if by == TRIVIAL and bound > 0:
        by = f"pods that stay have {figure(bound)}"  # the bound of the others is 0
        return f"optimal ({by})" if value <= bound else f"at least {figure(bound)} ({by})"
    if value <= bound:
        return f"optimal ({by})" if by == TRIVIAL else f"proven optimal by {by}"
    if bound <= 0:
        return "no lower bound yet"
    return f"lower bound {figure(bound)} by {by}, gap {(value - bound) / value:.1%}"


def tier_label(tier: Tier | PlanTier) -> str:
    """Name a tier with its unit."""
    return f"{tier.name} [{tier.unit}]" if tier.unit else tier.name


def unit_notes(units: Iterable[str]) -> list[str]:
    """Explain what the units of objectives mean."""
    pairs = "pair: two pods of one workload in one topology domain"
    variance = "pp²: variance of utilization in squared percentage points, to within 0.01 %"
    told = " ".join(units)
    return [note for word, note in (("pp²", variance), ("pair", pairs)) if word in told]


def resolved_lines(violations: Sequence[ConstraintViolation]) -> list[str]:
    """Say where rules are violated today and will not be, and by how much they are."""
    return [f"{one.origin} at {one.place}: {amount(one.origin.what, one.before)} too much today" for one in violations]


def violation_lines(violations: Sequence[ConstraintViolation], most: int = 10) -> list[str]:
    """Return a line for each constraint violation: where, and by how much."""
    lines = []
    for violation in violations[:most]:
        now, then = (amount(violation.origin.what, value) for value in (violation.amount, violation.before))
        changed = f"today {then}" if violation.amount != violation.before else "as today"
        lines.append(f"{violation.origin} on {violation.place}: {now} over the limit, {changed}")
    return lines + ([f"and {len(violations) - most} more"] if len(violations) > most else [])
