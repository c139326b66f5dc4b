"""What a journal holds: one record a line, in the order in which things were begun and seen."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from stowplan.models.document import Document


class PlanRecord(Document):
    """First line of a journal: which plan is carried out, and in which cluster.

    Parameters
    ----------
    plan, plan_hash
        The plan's id, and the SHA-256 of its content.
    cluster
        The uid of the namespace ``kube-system``; empty if it could not be read.
    """

    event: Literal["plan"] = "plan"
    at: str
    version: Literal[1] = 1
    plan: str
    plan_hash: str
    cluster: str


class StartRecord(Document):
    """A process began, or went on where another one had stopped."""

    event: Literal["start"] = "start"
    at: str
    process: int


class WaveRecord(Document):
    """A wave was begun; nothing of it had been evicted.

    Parameters
    ----------
    known
        By uid of the owner, the uids of the pods that it had: what comes later are replacements.
    unready
        Uids of the pods to be moved that were not ready: as many replacements need not be ready either.
    waiting
        Uids of the pods of these owners that had no node, whether the plan is about them or not.
    """

    event: Literal["wave"] = "wave"
    at: str
    wave: int
    known: dict[str, tuple[str, ...]]
    unready: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


class CordonRecord(Document):
    """A node that was open is about to be cordoned for a wave; for wave 0, it is to be cordoned for good."""

    event: Literal["cordon"] = "cordon"
    at: str
    wave: int
    node: str


class UncordonRecord(Document):
    """A node that was cordoned for a wave is open again."""

    event: Literal["uncordon"] = "uncordon"
    at: str
    wave: int
    node: str


class IntentRecord(Document):
    """A pod is about to be evicted. From here on, a pod that is gone counts as evicted by us."""

    event: Literal["intent"] = "intent"
    at: str
    move: str
    namespace: str
    name: str
    uid: str


class AnswerRecord(Document):
    """What became of an eviction.

    Parameters
    ----------
    outcome
        ``evicted``: the pod leaves. ``gone``: it had left, or was leaving, when we looked: after a lost answer, or by
        another cause. ``later``: refused for the time being. ``unknown``: no answer was seen, and the pod is
        still there. ``refused``: refused for good.
    """

    event: Literal["answer"] = "answer"
    at: str
    move: str
    outcome: Literal["evicted", "gone", "later", "unknown", "refused"]
    message: str = ""


class LandedRecord(Document):
    """A pod that a move is about has a node, and is ready there; ``pod`` is the replacement, or the pod itself.

    Parameters
    ----------
    planned
        Also true if it is on the target of another move of its owner in the wave: they have exchanged their places.
    unready
        Why it was not waited for until it was ready: ``before`` if the pod that it replaces was not ready either,
        ``skipped`` if the limit on waiting was reached; empty if it was ready.
    """

    event: Literal["landed"] = "landed"
    at: str
    move: str
    pod: str
    uid: str
    node: str
    planned: bool
    unready: Literal["", "before", "skipped"] = ""


class AcceptedRecord(Document):
    """A pod may stay on another node than planned: the rest of the plan is as good with it there."""

    event: Literal["accepted"] = "accepted"
    at: str
    move: str
    node: str


class DroppedRecord(Document):
    """A move is left out from here on, since the workload of its pod has changed."""

    event: Literal["dropped"] = "dropped"
    at: str
    move: str
    why: str


class WaveEndRecord(Document):
    """A wave is over: nothing of it is under way any more."""

    event: Literal["wave-end"] = "wave-end"
    at: str
    wave: int


class StopRecord(Document):
    """The run came to an end before the plan did."""

    event: Literal["stop"] = "stop"
    at: str
    why: str


class ReplanRecord(Document):
    """The rest of the plan was made anew, and the new plan was accepted: nothing more of this one is carried out.

    Parameters
    ----------
    plan, plan_hash
        The new plan's id, and the SHA-256 of its content.
    file
        Name of its file, in the folder of the journal.
    """

    event: Literal["replan"] = "replan"
    at: str
    plan: str
    plan_hash: str
    file: str


class DoneRecord(Document):
    """All waves are over."""

    event: Literal["done"] = "done"
    at: str


Record = Annotated[
    PlanRecord
    | StartRecord
    | WaveRecord
    | CordonRecord
    | UncordonRecord
    | IntentRecord
    | AnswerRecord
    | LandedRecord
    | AcceptedRecord
    | DroppedRecord
    | WaveEndRecord
    | StopRecord
    | ReplanRecord
    | DoneRecord,
    Field(discriminator="event"),
]
RECORD: TypeAdapter[Record] = TypeAdapter(Record)
