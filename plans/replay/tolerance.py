"""Whether a plan may go on although pods are on other nodes than planned: one rule for replays and for ``apply``."""

from __future__ import annotations

from collections.abc import Iterable

from stowplan.models.assignment import Assignment
from stowplan.models.plan import MoveDocument
from stowplan.plans.replay.outcome import ObjectiveFunction, ObjectiveValue


def tolerable(
    objective: ObjectiveFunction, seen: Assignment, rest: Iterable[MoveDocument], planned: ObjectiveValue
) -> bool:
    """Whether a plan may go on from where its pods are, though some are on other nodes than planned.

    It may if the rest of its moves leads to a placement that violates no further rule and is as good as planned.

    Parameters
    ----------
    seen
        Where pods are; a replacement goes by the key of the pod that it replaces.
    rest
        The moves that are still to be made.
    planned
        Value of the placement that the plan leads to.
    """
    return objective(seen.moved((move.pod.key, move.target) for move in rest)).as_good_as(planned)
