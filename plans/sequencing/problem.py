"""Moves to be put in order, and the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.limits import LimitsDocument
from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import Budgets
from stowplan.plans.move import Move
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures

Way = Callable[[Sequence[Move]], Sequence[Move]]
"""Finds moves of single pods that lead where all the given ones lead; none, if it knows no way."""


@dataclass(frozen=True, eq=False)
class SequencingProblem:
    """Moves to be put in order.

    Parameters
    ----------
    start
        Of every unfinished pod that has a node today, fixed ones included.
    moves
        Pods whose node is to change.
    alike
        Names the pods that may take each other's targets: equal answers mean that it makes no difference which of the
        pods goes where. By default pods that no plugin can tell apart. Of two such pods, none may be on a node where
        another is to go.
    may_park
        Whether a pod may be moved a second time, over a third node, to break a cycle.
    price
        What it costs to move a pod; of a cycle the cheapest is parked, after those of lower priority.
    way
        Finds moves of single pods that lead where all of some moves lead, over third nodes if need be, each possible
        after those before; empty if it knows none. It is asked where the plain order leaves moves out.
    patience
        Seconds for orders in which pods are parked one by one, before a ``way`` is asked for; moves that they do not
        come to are left out if none is known.
    stopped
        Whether to end with the waves that are found by now; the other moves are then stuck.
    """

    snapshot: Snapshot
    profile: Profile
    start: Assignment
    moves: Sequence[Move]
    budgets: Budgets
    limits: LimitsDocument = field(default_factory=LimitsDocument)
    signatures: Signatures | None = None
    alike: Callable[[Pod], Hashable] | None = None
    may_park: Callable[[Pod], bool] = lambda pod: True
    price: Callable[[Pod], float] = lambda pod: 1.0
    way: Way | None = None
    patience: float = math.inf
    stopped: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class StuckMove:
    """A move that is impossible in any order.

    Parameters
    ----------
    key
        The pod, as ``namespace/name``.
    reason
        Why it cannot be made, as the filters or the budget say.
    cycle
        Pod keys of the moves that wait for each other, beginning with this one; empty if there is no cycle.
    """

    key: str
    reason: str
    cycle: tuple[str, ...] = ()

    def __str__(self) -> str:
        waiting = f" (waiting for each other: {', '.join(self.cycle)})" if self.cycle else ""
        return f"{self.key}: {self.reason}{waiting}"


@dataclass(frozen=True, slots=True, eq=False)
class WaveSequence:
    """Moves in order.

    Parameters
    ----------
    waves
        Moves that may be under way together, in any order; within a wave in the order in which they are best begun.
    stuck
        Moves that were left out.
    least_waves
        No order of the moves that were not left out has fewer waves.
    least_because
        What proves that.
    """

    waves: Sequence[Sequence[Move]]
    stuck: Sequence[StuckMove]
    least_waves: int
    least_because: str
