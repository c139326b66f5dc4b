"""Checks a plan against a snapshot: finished moves, drift, whether the rest is still possible, and claimed values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from stowplan.answers.assessment import Assessor
from stowplan.answers.solve import today
from stowplan.answers.verify_solution import BOUNDS
from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.plan import Plan
from stowplan.models.snapshot import Snapshot
from stowplan.plans.consistency import miscounted_tokens
from stowplan.plans.drift import Drift, examine, same_snapshot
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.settings.problem import same_problem

CLOSE = 1e-6
"""Relative tolerance of claimed values, which were rounded by printing."""


@dataclass(frozen=True, eq=False)
class PlanVerification:
    """Result of verifying a plan.

    Parameters
    ----------
    plan
        The plan.
    drift
        Everything that was found, wrong claims of the plan included.
    """

    plan: Plan
    drift: Drift

    def __repr__(self) -> str:
        return f"<PlanVerification {self.plan.id}: {'holds' if self.holds else 'does not hold'}>"

    @property
    def holds(self) -> bool:
        """Whether the rest of the plan can be carried out unchanged."""
        return self.drift.holds


def verify_plan(snapshot: Snapshot, plan: Plan, profile: Profile, *, now: datetime | None = None) -> PlanVerification:
    """Check a plan against a snapshot, which may be a newer one than it was made for.

    Parameters
    ----------
    snapshot
        The cluster.
    plan
        The plan.
    profile
        Profile of the scheduler that the plan was made for.
    now
        Current time, to find out whether the plan has expired; by default the clock's.
    """
    drift = examine(plan, snapshot, profile, now=now)
    as_planned = same_snapshot(plan, snapshot) and drift.holds
    drift.problems += miscounted_tokens(plan)
    if as_planned:  # values are claimed of that snapshot alone, and of moves that can be made
        drift.problems += _false_claims(plan, snapshot, profile)
        drift.remarks.append(BOUNDS)
    return PlanVerification(plan, drift)


def _false_claims(plan: Plan, snapshot: Snapshot, profile: Profile) -> Iterator[str]:
    """Compare the values that the plan claims (today, after each wave, and in the end) with the actual ones."""
    compiled = _compiled(plan, snapshot, profile)
    assessor = Assessor(compiled)
    names = [tier.name for tier in compiled.problem.tiers]
    if [tier.name for tier in plan.tiers] != names:
        claimed = ", ".join(tier.name for tier in plan.tiers) or "none"
        yield f"the plan has tiers {claimed}; the problem has {', '.join(names)}"
        return

    def shown(assignment: Assignment) -> list[float]:
        values = assessor.values(assignment)
        return [tier.shown(value) for tier, value in zip(compiled.problem.tiers, values, strict=True)]

    assignment = today(compiled)
    yield from _differing(plan, "today", [tier.before for tier in plan.tiers], shown(assignment))
    for wave in plan.waves:
        assignment = assignment.moved((move.pod.key, move.target) for move in wave.moves)
        yield from _differing(plan, f"after wave {wave.number}", wave.tiers, shown(assignment))
    yield from _differing(plan, "in the end", [tier.after for tier in plan.tiers], shown(assignment))
    for tier in plan.tiers:
        if tier.bound > tier.after + CLOSE * max(1.0, abs(tier.after)):
            yield f"tier {tier.name}: the bound {tier.bound:g} is above the value {tier.after:g}"


def _differing(plan: Plan, when: str, claimed: list[float] | tuple[float, ...], real: list[float]) -> Iterator[str]:
    if len(claimed) != len(real):
        yield f"{when}: {len(claimed)} values for {len(real)} tiers"
        return
    for tier, said, found in zip(plan.tiers, claimed, real, strict=True):
        if abs(said - found) > CLOSE * max(1.0, abs(found)):
            yield f"{when}, tier {tier.name}: the plan claims {said:g} {tier.unit}, it is {found:g}"


def _compiled(plan: Plan, snapshot: Snapshot, profile: Profile) -> Compiled:
    stays = {entry.pod.key: entry.reason for entry in plan.immovable}

    def stay(pod: Pod) -> str | None:
        return stays.get(pod.key)

    return same_problem(snapshot, plan.settings, profile, freeze=stay)
