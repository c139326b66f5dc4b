"""What is to be put in order, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from stowplan.models.kubernetes import Pod
from stowplan.models.plan import LimitsDocument
from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import Budgets
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures


@dataclass(frozen=True, slots=True)
class Relocation:
    """A pod that stands on ``source`` and should stand on ``target``; an empty name is no node."""

    pod: Pod
    source: str
    target: str


@dataclass(frozen=True, eq=False)
class Task:
    """Moves to be put in order.

    Parameters
    ----------
    where
        Node name by pod key, of every unfinished pod that has a node today, fixed ones included.
    moves
        Pods whose node is to change.
    alike
        Names the pods that may take each other's targets: equal answers mean that it makes no difference which of the
        pods goes where. By default pods that no plugin can tell apart. Of two such pods none may stand where another
        is to go.
    may_park
        Whether a pod may be moved a second time, over a third node, to break a cycle.
    price
        What it costs to move a pod; of a cycle the cheapest is parked, after those of lower priority.
    """

    snapshot: Snapshot
    profile: Profile
    where: Mapping[str, str]
    moves: Sequence[Relocation]
    budgets: Budgets
    limits: LimitsDocument = field(default_factory=LimitsDocument)
    signatures: Signatures | None = None
    alike: Callable[[Pod], Hashable] | None = None
    may_park: Callable[[Pod], bool] = lambda pod: True
    price: Callable[[Pod], float] = lambda pod: 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One eviction with its replacement, or one placement.

    Parameters
    ----------
    source, target
        Node names; empty for a pod that had no node, or loses it.
    parks
        Whether ``target`` is not where the pod is to stay.
    follows
        The step that parked the pod.
    waits
        Whether the filters admit the replacement only once the pod is gone.
    why
        What the step is for.
    """

    pod: Pod
    source: str
    target: str
    parks: bool = False
    follows: Step | None = None
    waits: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A move that no order reaches.

    Parameters
    ----------
    key
        The pod, as ``namespace/name``.
    reason
        What keeps it from being made, in the words of the filters or of the budget.
    cycle
        Pod keys of the moves that wait for each other, beginning with this one; empty if there is no cycle.
    """

    key: str
    reason: str
    cycle: tuple[str, ...] = ()

    def __str__(self) -> str:
        ring = f" (waiting for each other: {', '.join(self.cycle)})" if self.cycle else ""
        return f"{self.key}: {self.reason}{ring}"


@dataclass(frozen=True, slots=True, eq=False)
class Sequencing:
    """Moves in order.

    Parameters
    ----------
    waves
        Steps that may be under way together, in any order; within a wave in the order in which they are best begun.
    stuck
        Moves that were left out.
    least_waves
        No order of the moves that were not left out has fewer waves.
    least_because
        What proves that.
    """

    waves: Sequence[Sequence[Step]]
    stuck: Sequence[Stuck]
    least_waves: int
    least_because: str


def keeps_name(move: Relocation | Step) -> bool:
    """Whether a pod's replacement has its name: a StatefulSet makes it only when the pod is gone."""
    controller = move.pod.metadata.controller
    return bool(move.source) and controller is not None and controller.kind == "StatefulSet"
