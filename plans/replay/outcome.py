"""Results of a replay: of each move, of each wave, and of the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from stowplan.models.assignment import Assignment
from stowplan.models.plan import MoveDocument
from stowplan.plans.replay.simulated_cluster import PreemptedPod

INTERRUPTED = "it was interrupted"
"""Why a replay halted that was interrupted."""


class MoveVerdict(StrEnum):
    """Result of a move."""

    PLANNED = "lands as planned"
    """As many replacements of its owner and template are on the planned node as planned."""
    AS_GOOD = "lands elsewhere, as good"
    """On another node; the final placement is no worse by the objective and violates no further rule."""
    NEEDS_STEERING = "needs steering"
    """Elsewhere and worse, or nowhere."""
    NOT_EVICTED = "not evicted"
    """A disruption budget refused the eviction for as long as the wave lasted."""
    NOT_BEGUN = "not begun"
    """The plan had come to a halt before."""


@dataclass(frozen=True, slots=True)
class ObjectiveValue:
    """How good a placement is.

    Parameters
    ----------
    values
        Of each tier, lower is better, the first tier first.
    legal
        Whether no rule is violated that was not before.
    """

    values: tuple[int, ...]
    legal: bool

    def as_good_as(self, other: ObjectiveValue) -> bool:
        """Whether this is legal and no worse."""
        return self.legal and self.values <= other.values


ObjectiveFunction = Callable[[Assignment], ObjectiveValue]
"""Says how good an assignment is."""


@dataclass(frozen=True, slots=True)
class Landing:
    """Result of one move.

    Parameters
    ----------
    node
        Node of its replacement after the wave; empty if unscheduled.
    message
        Why the replacement is unscheduled, or the pod was not evicted.
    """

    wave: int
    move: MoveDocument
    verdict: MoveVerdict
    node: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class WaveOutcome:
    """Result of a wave: the planned value of the objective, and the actual one."""

    number: int
    planned: ObjectiveValue
    actual: ObjectiveValue


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """Result of a replay.

    Parameters
    ----------
    before, planned, actual
        Objective of the snapshot, of the plan's last placement, and of the placement at the end of the replay.
    halted
        Why not all waves were carried out; empty if they were.
    assignment
        Where pods are at the end; a replacement goes by the key of the pod it replaces.
    waiting
        Unscheduled pods at the end, by key, with the reasons.
    preempted
        Pods that kube-scheduler preempted.
    """

    landings: Sequence[Landing]
    before: ObjectiveValue
    planned: ObjectiveValue
    actual: ObjectiveValue
    waves: Sequence[WaveOutcome]
    halted: str
    assignment: Assignment
    waiting: Mapping[str, str]
    preempted: Sequence[PreemptedPod]

    def count(self, verdict: MoveVerdict) -> int:
        """Return the number of moves with a result."""
        return sum(1 for landing in self.landings if landing.verdict is verdict)

    @property
    def by_itself(self) -> bool:
        """Whether every move lands as planned, or as good."""
        return all(landing.verdict in (MoveVerdict.PLANNED, MoveVerdict.AS_GOOD) for landing in self.landings)


def share_kept(before: ObjectiveValue, planned: ObjectiveValue, actual: ObjectiveValue) -> float | None:
    """Return the share of a gain that is there at the end, by the first tier that is to improve.

    It is negative where that tier ends worse than it began, 0 where a tier above it ends worse than planned, and
    ``None`` where no tier is to improve.
    """
    for old, new, found in zip(before.values, planned.values, actual.values, strict=True):
        if new < old:
            return (old - found) / (old - new)
        if found > new:
            return 0.0
    return None
