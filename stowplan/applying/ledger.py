"""State of a plan that is being carried out, computed from the records of its journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, assert_never

from stowplan.applying.observations import PodIdentity
from stowplan.applying.records import (
    AcceptedRecord,
    AnswerRecord,
    CordonRecord,
    DoneRecord,
    DroppedRecord,
    IntentRecord,
    LandedRecord,
    PlanRecord,
    Record,
    ReplanRecord,
    StartRecord,
    StopRecord,
    UncordonRecord,
    WaveEndRecord,
    WaveRecord,
)
from stowplan.models.plan import MoveDocument, Plan
from stowplan.plans.replacements import by_group, group_of_move, on_targets, pods_of_pending

Stage = Literal["waiting", "asked", "leaving", "landed", "elsewhere", "refused", "dropped"]
"""Of a move: not begun; requested, without a final answer; the pod leaves or has left (of a pod that has
no node: never); the replacement is ready on the target; it is ready on another node; refused for good; left
out, since the workload has changed."""


@dataclass
class MoveProgress:
    """How far a move is."""

    intent: IntentRecord | None = None
    answer: AnswerRecord | None = None
    landed: LandedRecord | None = None
    dropped: DroppedRecord | None = None
    attempts: int = 0

    @property
    def stage(self) -> Stage:
        """How far the move is."""
        if self.landed is not None:
            return "landed" if self.landed.planned else "elsewhere"
        if self.dropped is not None:
            return "dropped"
        if self.answer is not None and self.answer.outcome in {"evicted", "gone"}:
            return "leaving"
        if self.answer is not None and self.answer.outcome == "refused":
            return "refused"
        return "asked" if self.intent is not None else "waiting"

    @property
    def evicted(self) -> bool:
        """Whether the pod has left or leaves, whatever became of the move."""
        return self.answer is not None and self.answer.outcome in {"evicted", "gone"}


@dataclass
class ApplyLedger:
    """What is known of a plan under way.

    Parameters
    ----------
    keep
        Writes a record down for good; a ledger that is only read has none.
    announce
        Told of a record once it is kept and taken in, if others are to hear of it.
    known
        By number of the wave and uid of the owner: uids of the pods that were there when the wave was begun.
    unready
        Uids of pods that were not ready when their wave was begun.
    waited
        Uids of pods of the owners in a wave that had no node when it was begun.
    landed
        Uids of the pods that count for a move already.
    accepted
        Moves, by id, with other nodes than planned on which their pods may stay.
    cordons
        By wave and node, whether a node is cordoned by us; wave 0 is for good.
    ended
        Numbers of the waves that are over.
    successor
        The plan that was made of the rest of this one, and accepted.
    """

    plan: Plan
    keep: Callable[[Record], None] | None = None
    announce: Callable[[Record], None] | None = None
    progress: dict[str, MoveProgress] = field(init=False)
    known: dict[int, dict[str, frozenset[str]]] = field(default_factory=dict)
    unready: set[str] = field(default_factory=set)
    waited: set[str] = field(default_factory=set)
    landed: set[str] = field(default_factory=set)
    accepted: set[tuple[str, str]] = field(default_factory=set)
    cordons: dict[tuple[int, str], bool] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    done: bool = False
    stopped: str = ""
    successor: ReplanRecord | None = None
    runs: int = 0

    def __post_init__(self) -> None:
        self.progress = {move.id: MoveProgress() for move in self.plan.moves}

    def write(self, record: Record) -> None:
        """Write a record down, then take it in."""
        if self.keep is not None:
            self.keep(record)
        self.take(record)
        if self.announce is not None:
            self.announce(record)

    def fold(self, records: Iterable[Record]) -> None:
        """Take in records, in their order."""
        for record in records:
            self.take(record)

    def take(self, record: Record) -> None:
        """Take in one record."""
        match record:
            case PlanRecord():
                pass
            case StartRecord():
                self.runs += 1
                self.stopped = ""
            case WaveRecord():
                self.known[record.wave] = {owner: frozenset(uids) for owner, uids in record.known.items()}
                self.unready |= set(record.unready)
                self.waited |= set(record.waiting)
            case CordonRecord():
                self.cordons[(record.wave, record.node)] = True
            case UncordonRecord():
                self.cordons[(record.wave, record.node)] = False
            case IntentRecord():
                progress = self.progress[record.move]
                progress.intent, progress.answer = record, None
                progress.attempts += 1
            case AnswerRecord():
                self.progress[record.move].answer = record
            case LandedRecord():
                self.progress[record.move].landed = record
                self.landed.add(record.uid)
            case AcceptedRecord():
                self.accepted.add((record.move, record.node))
            case DroppedRecord():
                self.progress[record.move].dropped = record
            case WaveEndRecord():
                self.ended.add(record.wave)
            case StopRecord():
                self.stopped = record.why
            case ReplanRecord():
                self.successor = record
            case DoneRecord():
                self.done = True
            case _:
                assert_never(record)

    @property
    def superseded(self) -> str:
        """What is to be said of a plan whose rest was made anew; empty if it was not."""
        if self.successor is None:
            return ""
        return f"the rest of this plan was made anew as {self.successor.plan}; apply {self.successor.file} instead"

    @property
    def closed(self) -> list[tuple[int, str]]:
        """Waves and nodes of the cordons that are ours, and not lifted."""
        return [key for key, closed in self.cordons.items() if closed]

    def stage(self, move: MoveDocument) -> Stage:
        """How far a move is."""
        return self.progress[move.id].stage

    def settled(self, move: MoveDocument) -> bool:
        """Whether nothing more is to be done or awaited for a move, but that its old pod is gone."""
        stage = self.stage(move)
        return stage in {"landed", "elsewhere", "refused", "dropped"} or (move.kind == "remove" and stage == "leaving")

    def uid(self, move: MoveDocument) -> str:
        """Return the uid of the pod that a move is about: what was seen before what the plan says; empty if open."""
        intent = self.progress[move.id].intent
        if intent is not None:
            return intent.uid
        parked = self.parked(move)
        return parked.uid if parked is not None else ("" if move.follows else move.pod.uid)

    def name(self, move: MoveDocument) -> str:
        """Return the name of the pod that a move is about."""
        intent = self.progress[move.id].intent
        if intent is not None:
            return intent.name
        parked = self.parked(move)
        return parked.pod if parked is not None else move.pod.name

    def parked(self, move: MoveDocument) -> LandedRecord | None:
        """Return the pod that a move takes on from an earlier one, once it has landed.

        If pods of one owner have exchanged their places, it is the one on the source of the move.
        """
        if move.follows is None:
            return None
        group = self._interchangeable(move.follows)
        landed = {name: record for name in group if (record := self.progress[name].landed) is not None}
        followers = [other for other in self.plan.moves if other.follows in group]
        found: dict[str, str] = {}
        for other in followers:
            own = landed.get(other.follows or "")
            if own is not None and own.node == other.source:
                found[other.id] = other.follows or ""
        for other in followers:
            if other.id not in found:
                free = (name for name, record in landed.items() if record.node == other.source)
                name = next((name for name in free if name not in found.values()), None)
                found[other.id] = name if name is not None else other.follows or ""
        return landed.get(found[move.id])

    def pending(self, seen: Mapping[str, PodIdentity]) -> dict[str, str]:
        """Return the pod that each open move of a pending pod is about, by the move's id.

        Parameters
        ----------
        seen
            All pods, by key.
        """
        places = [move for move in self.plan.moves if move.kind == "place"]
        nodes = {
            move.pod.key: pod.node
            for move in places
            if (pod := seen.get(move.pod.key)) is not None
            and pod.uid == (move.pod.uid or pod.uid)
            and pod.uid not in self.landed
        }
        found = pods_of_pending(places, nodes, {move.id for move in places if self.settled(move)})
        return found | self._in_stead([move for move in places if move.id not in found], seen)

    def _in_stead(self, places: Iterable[MoveDocument], seen: Mapping[str, PodIdentity]) -> dict[str, str]:
        """Return the pods that wait in the stead of pending ones which count for the moves of evicted ones.

        Those are replacements of the evicted ones. On a target comes first, then those that have no node.
        """
        found: dict[str, str] = {}
        for group, moves in by_group(move for move in places if self.is_taken_over(move)).items():
            spare: list[tuple[str, str]] = []
            for key, pod in seen.items():
                namespace, _, name = key.partition("/")
                if group.admits(namespace, name, pod.owner, (pod.template,)) and self.is_spare(pod.owner, pod.uid):
                    spare.append((key, pod.node))
            matched, without, left = on_targets(moves, spare)
            found |= {move.id: key for move, key in matched}
            nodes = dict(spare)
            left.sort(key=lambda key: bool(nodes[key]))
            found |= {move.id: key for move, key in zip(without, left, strict=False)}
        return found

    def is_taken_over(self, move: MoveDocument) -> bool:
        """Whether a move is about a pending pod that counts for another move already, and needs another one."""
        if move.kind != "place" or self.settled(move):
            return False
        if move.pod.uid:
            return move.pod.uid in self.landed
        others = (other for other in self.plan.moves if other.pod.namespace == move.pod.namespace)
        landed = (self.progress[other.id].landed for other in others)
        return any(record is not None and record.pod == move.pod.name for record in landed)

    def is_spare(self, owner: str, uid: str) -> bool:
        """Whether a pod was made since the first wave with pods of its owner began, and counts for no move."""
        before = self.known_first(owner)
        return before is not None and uid not in before and uid not in self.landed

    def known_first(self, owner: str) -> frozenset[str] | None:
        """Return the pods that an owner had when the first wave about it began; ``None`` if none has begun."""
        return next((known[owner] for _, known in sorted(self.known.items()) if owner in known), None)

    @property
    def has_dropped(self) -> bool:
        """Whether a move was left out."""
        return any(progress.dropped is not None for progress in self.progress.values())

    @property
    def skipped(self) -> int:
        """Number of replacements that were not ready in time, and not waited for any longer."""
        return sum(p.landed is not None and p.landed.unready == "skipped" for p in self.progress.values())

    def may_stay_unready(self, move: MoveDocument) -> bool:
        """Whether the replacement of a move need not be ready, since a pod that its group replaces was not."""
        group = self._interchangeable(move.id)
        moves = [other for other in self.plan.moves if other.id in group]
        were = sum(self.uid(other) in self.unready for other in moves)
        landed = (self.progress[name].landed for name in group)
        return sum(record is not None and record.unready == "before" for record in landed) < were

    def _interchangeable(self, name: str) -> list[str]:
        """Return the ids of the moves of a wave whose replacements are interchangeable with a move's, it included."""
        for wave in self.plan.waves:
            for move in wave.moves:
                if move.id == name:
                    return [other.id for other in wave.moves if group_of_move(other) == group_of_move(move)]
        return [name]
