"""A move: one pod from one node to another, as the plan is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stowplan.models.kubernetes import Pod
from stowplan.plans.movability.workloads import keeps_name

PARKED = "parked, so that others can take its room"
ONWARD = "goes on from where it was parked"


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A pod that changes its node, gets its first, or loses its own.

    The first three fields say what is wanted; the others are filled in when the move is put into a wave. A pod that is
    parked on its way has two moves, the second of which `follows` the first.

    Parameters
    ----------
    source, target
        Node names; empty for a pod that had no node, or loses it.
    parks
        Whether ``target`` is a third node, which the pod leaves again.
    follows
        The move that parked the pod.
    waits
        Whether the filters admit the replacement only once the pod is gone.
    why
        What the move is for.
    room_for
        Key of the pod that ``why`` names, as long as no pod like it has taken its target over.
    """

    pod: Pod
    source: str
    target: str
    parks: bool = False
    follows: Move | None = None
    waits: bool = False
    why: str = ""
    room_for: str = ""

    @property
    def kind(self) -> Literal["evict", "place", "remove"]:
        """What is done to the pod, in the words of `stowplan.models.plan.MoveDocument`."""
        return "place" if not self.source else "evict" if self.target else "remove"

    @property
    def same_name(self) -> bool:
        """Whether the replacement has the pod's name, and so comes up only after the pod is gone."""
        return bool(self.source) and keeps_name(self.pod.metadata.controller)
