"""A plan for a cluster without an extender: in another arrangement, and without moves that land badly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from stowplan.models.assignment import Assignment
from stowplan.models.stop import Stop
from stowplan.models.words import plural
from stowplan.optimizer.portfolio import Options
from stowplan.planning.plan import Planned
from stowplan.planning.replay import CompiledObjective
from stowplan.plans.replay.distribution import CAUTIOUS
from stowplan.plans.unassisted import ACCEPTED, Unassisted, UnassistedLimits, arrange

WORTH_STEERING = 0.9
"""Share of the gain below which steering is recommended."""

REPLAYS_A_SECOND = 5
"""Replays that count as a second of the time limit in deterministic mode."""


def arrange_unassisted(
    planned: Planned, options: Options, *, limits: UnassistedLimits = ACCEPTED, stop: Stop | None = None
) -> Unassisted:
    """Arrange a plan so that its pods land well with kube-scheduler left alone; see `stowplan.plans.unassisted`.

    Parameters
    ----------
    limits
        Maximum number of cordons and of waves.
    options
        The search for an arrangement ends after as much time as the search for a placement may take.
    stop
        Set it to get the best arrangement so far.
    """
    stop = stop or Stop()
    replays, began = 0, time.monotonic()

    def elapsed() -> float:
        nonlocal replays
        replays += 1
        if options.deterministic:
            return replays / (options.time_limit * REPLAYS_A_SECOND)
        return (time.monotonic() - began) / options.time_limit

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
        limits=limits,
        stopped=stop.is_set,
        elapsed=elapsed,
    )


def planned_alone(planned: Planned, found: Unassisted) -> Planned:
    """Return the arrangement that was found as a plan like any other, with notes on what is left of the gain."""
    plan = found.plan.model_copy(update={"notes": (*found.plan.notes, *remarks(found))})
    return replace(planned, plan=plan, assignment=found.outcome.assignment)


def remarks(found: Unassisted) -> Iterator[str]:
    """Say what is left of the gain without steering, what each cordon buys, and whether steering is worth it."""
    number = sum(len(wave.cordon) for wave in found.plan.waves)
    chance, given = found.chance, found.given_chance
    kept, mean = chance.cautious(CAUTIOUS), chance.mean
    if kept is None or mean is None or given.mean is None:
        yield "kube-scheduler is left alone"
        return
    takes = f"{plural(len(found.given_up), 'move')} given up and {plural(number, 'cordon')}"
    yield (
        f"kube-scheduler is left alone: {mean:.0%} of the gain is left on average and {kept:.0%} in {CAUTIOUS:.0%} of "
        f"{plural(chance.runs, 'run')} with chance, of which {chance.finished} come to their end; {takes}; carried out "
        f"as it was, the plan would keep {given.mean:.0%} on average"
    )
    for cordon in found.cordons:
        buys = "not measured" if cordon.share is None else f"buys {cordon.share:.0%} of the gain"
        ends = f", and the end in {cordon.ends:.0%} more of the runs" if cordon.ends > 0 else ""
        yield f"cordon of {cordon.node} in wave {cordon.wave}: {buys}{ends}"
    if kept < WORTH_STEERING:
        yield f"steering is worth it: it keeps the other {1 - kept:.0%}; plan without --steer none, and use serve"
