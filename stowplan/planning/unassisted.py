"""A plan for a cluster without an extender: in another arrangement, and without moves that land badly."""

from __future__ import annotations

import time
from dataclasses import replace

from stowplan.models.assignment import Assignment
from stowplan.models.stop import Stop
from stowplan.models.words import plural
from stowplan.optimizer.portfolio import Options
from stowplan.planning.plan import Planned
from stowplan.planning.replay import CompiledObjective
from stowplan.plans.unassisted import Unassisted, arrange

REPLAYS_A_SECOND = 5
"""Replays that count as a second of the time limit in deterministic mode."""


def arrange_unassisted(
    planned: Planned, options: Options, *, may_cordon: bool = True, stop: Stop | None = None
) -> Unassisted:
    """Arrange a plan so that its pods land well with kube-scheduler left alone; see `stowplan.plans.unassisted`.

    Parameters
    ----------
    options
        The search for an arrangement ends after as much time as the search for a placement may take.
    stop
        Set it to get the best arrangement so far.
    """
    stop = stop or Stop()
    replays, began = 0, time.monotonic()

    def stopped() -> bool:
        nonlocal replays
        replays += 1
        if options.deterministic:
            return stop.is_set() or replays > options.time_limit * REPLAYS_A_SECOND
        return stop.is_set() or time.monotonic() - began > options.time_limit

    compiled = planned.compiled
    worth = CompiledObjective(compiled)

    def shown(assignment: Assignment) -> list[float]:
        tiers = compiled.problem.tiers
        return [tier.shown(value) for tier, value in zip(tiers, worth(assignment).values, strict=True)]

    return arrange(
        planned.plan,
        compiled.snapshot,
        compiled.profile,
        worth,
        shown,
        seed=options.seed,
        signatures=compiled.signatures,
        may_cordon=may_cordon,
        stopped=stopped,
    )


def planned_alone(planned: Planned, found: Unassisted) -> Planned:
    """Return the arrangement that was found as a plan like any other, with a note on what is left of the gain."""
    plan = found.plan.model_copy(update={"notes": (*found.plan.notes, remark(found))})
    return replace(planned, plan=plan, assignment=found.outcome.assignment)


def remark(found: Unassisted) -> str:
    """Say what is left of the gain without steering."""
    cordons = sum(len(wave.cordon) for wave in found.plan.waves)
    if found.kept is None or found.kept_as_given is None:
        return "kube-scheduler is left alone"
    left = f"{found.kept:.0%} of the gain is left, with {plural(len(found.given_up), 'move')} given up"
    given = f"carried out as it was, the plan would keep {found.kept_as_given:.0%}"
    return f"kube-scheduler is left alone: {left} and {plural(cordons, 'cordon')}; {given}"
