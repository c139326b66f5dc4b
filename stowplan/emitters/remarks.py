"""What a user has to know before an emission is carried out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from stowplan.emitters.emission import EmitOptions
from stowplan.models.moments import require_time
from stowplan.models.plan import Plan
from stowplan.models.snapshot import Snapshot

STEERING = ("extender", "pin")
"""Emissions that put replacements on their nodes."""


def remarks(plan: Plan, target: str, choices: EmitOptions, now: datetime) -> Iterator[str]:
    """Yield warnings about an emission, one line each.

    Parameters
    ----------
    target
        Name of the emitter.
    now
        Current time, with a time zone.
    """
    yield from (f"the dump of the plan is incomplete: {gap}" for gap in plan.gaps)
    if now >= require_time(plan.expires_at, "expiresAt"):
        yield f"the plan expired at {plan.expires_at}; what carries it out will stop at once: make a new one"
    if not plan.steered and target in STEERING:
        yield "the plan was made with --steer none, for a cluster without steering"
    if choices.snapshot is not None and choices.snapshot.fingerprint != plan.snapshot.fingerprint:
        yield from _strangers(plan, choices.snapshot)


def _strangers(plan: Plan, snapshot: Snapshot) -> Iterator[str]:
    """Yield a warning if a snapshot lacks pods of the plan, which suggests another cluster."""
    uids = {pod.key: pod.metadata.uid for pod in snapshot.pods}
    moved = {move.pod.key: move.pod.uid for move in plan.moves if move.kind != "place"}
    lost = [key for key, uid in moved.items() if uids.get(key) != uid]
    if lost:
        names = ", ".join(lost[:5]) + (", …" if len(lost) > 5 else "")
        yield f"--snapshot is not what the plan was made for: {len(lost)} of {len(moved)} pods are not in it ({names})"
