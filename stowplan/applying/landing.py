"""Which new pod replaces which old one, and whether it is on the planned node.

Pods of one owner and template are interchangeable (`stowplan.plans.replacements`), replacements and pods that wait for
a node alike: a plan says how many of them belong on which node, and the extender that steers the scheduler hands out
places, not moves. So a pod is where it should be if its node is a target of any move of its group in the wave that has
not got its pod yet, whether that move's own pod has left or is still to leave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass

from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import ObservedObject
from stowplan.models.moments import require_time
from stowplan.models.plan import MoveDocument
from stowplan.plans.creations import is_to_be_created, makes_pod_of
from stowplan.plans.replacements import by_group, group_of_move


@dataclass(frozen=True, slots=True)
class Match:
    """A move and the pod that it is about now; ``None`` as long as there is none.

    Parameters
    ----------
    planned
        Whether the pod is on the target of the move, or of one that it is interchangeable with.
    """

    move: MoveDocument
    pod: ObservedObject | None
    planned: bool = False

    @property
    def bound(self) -> bool:
        """Whether the pod has a node."""
        return self.pod is not None and bool(self.pod.node)


def match(
    moves: Sequence[MoveDocument],
    ledger: ApplyLedger,
    known: dict[str, frozenset[str]],
    pods: Collection[ObservedObject],
) -> list[Match]:
    """Match moves whose pods leave, or wait for a node, with pods.

    Parameters
    ----------
    moves
        Moves of one wave.
    known
        Uids that each owner's pods had before the wave.
    pods
        All pods of the namespaces that the moves are about.

    Notes
    -----
    Of an owner's moves, first those are matched that have a new pod on a target, then those for which a new pod still
    waits for a node, and only then those whose new pod is on another node. So a pod that was made for another reason,
    by an autoscaler for instance, is held against a move only if no other pod is left for it. Pods that waited for a
    node and that the plan left waiting count where they are on a target, since the scheduler may take any of them. If
    a pending pod took the place of an evicted one in an earlier wave, that one's replacement counts in its stead.
    """
    matches: list[Match] = []
    placed = [move for move in ledger.plan.moves if move.kind == "place"]
    places = {key for move in placed for key in _keys(move)}
    idle = {key for move in placed if ledger.settled(move) for key in _keys(move)}
    for group, own in by_group(moves).items():
        waiting = [move for move in own if _waits(move, ledger)]
        if group.pod or own[0].owner is None or not own[0].owner.uid:  # a cluster tells owners apart by uid alone
            if waiting and (created := _created(waiting, ledger, pods)):
                matches += _assign(own, waiting, ledger, created, (), ())
            else:
                matches += [_named(move, _pod_of(move, ledger, pods)) for move in waiting]
            continue
        before = known.get(group.owner, frozenset())
        due = {key for move in waiting if move.kind == "place" for key in _keys(move)}
        there: list[ObservedObject] = []
        early: list[ObservedObject] = []
        takes_turns = any(ledger.is_taken_over(move) for move in waiting)
        in_stead: list[ObservedObject] = []
        for pod in pods:
            if pod.uid in ledger.landed or pod.leaving or pod.finished:
                continue
            if not group.shares_owner(pod.metadata.namespace, pod.metadata.name, pod.owner):
                continue
            if _keyed(pod, due):
                there.append(pod)
            elif takes_turns and (_keyed(pod, idle) or (pod.uid in before and ledger.is_spare(pod.owner, pod.uid))):
                there.append(pod)
                in_stead.append(pod)
            elif _keyed(pod, places) or pod.uid in ledger.waited:
                # Its turn is later, or it was to go on waiting.
                if pod.node:
                    there.append(pod)
                    early.append(pod)
            elif pod.uid not in before:
                there.append(pod)
        matches += _assign(own, waiting, ledger, there, early, in_stead)
    return matches


def _waits(move: MoveDocument, ledger: ApplyLedger) -> bool:
    """Whether a move needs a pod on a node."""
    return (
        ledger.stage(move) == "leaving" if move.kind == "evict" else move.kind == "place" and not ledger.settled(move)
    )


def _keys(move: MoveDocument) -> tuple[tuple[str, str], ...]:
    """Return what a pending pod is recognized by: its name with its uid, or with any if the plan knows none."""
    return ((move.pod.key, move.pod.uid),)


def _keyed(pod: ObservedObject, keys: Container[tuple[str, str]]) -> bool:
    return (pod.key, pod.uid) in keys or (pod.key, "") in keys


def _pod_of(move: MoveDocument, ledger: ApplyLedger, pods: Iterable[ObservedObject]) -> ObservedObject | None:
    """Return the pod that is itself pending, or the one that has taken the name of an evicted pod."""
    if move.kind == "place":
        return next((pod for pod in pods if pod.key == move.pod.key and pod.uid == (move.pod.uid or pod.uid)), None)
    old = ledger.uid(move)
    return next((pod for pod in pods if pod.key == move.pod.key and pod.uid != old and not pod.leaving), None)


def _created(
    moves: Sequence[MoveDocument], ledger: ApplyLedger, pods: Iterable[ObservedObject]
) -> list[ObservedObject]:
    """Return the pods that a controller has made since, which was still to be created when the plan was made."""
    first = moves[0]
    if first.owner is None or group_of_move(first).pod or not is_to_be_created(first):
        return []
    since = require_time(ledger.plan.created_at, "createdAt")
    return [
        pod
        for pod in pods
        if pod.metadata.namespace == first.pod.namespace
        and makes_pod_of(first, pod.controller.kind, pod.controller.name)
        and not (pod.leaving or pod.finished or pod.uid in ledger.landed)
        and pod.metadata.creation_timestamp is not None
        and require_time(pod.metadata.creation_timestamp, "creationTimestamp") >= since
    ]


def _named(move: MoveDocument, pod: ObservedObject | None) -> Match:
    return Match(move, pod, pod is not None and pod.node == move.target)


def _assign(
    group: Sequence[MoveDocument],
    waiting: Sequence[MoveDocument],
    ledger: ApplyLedger,
    pods: Sequence[ObservedObject],
    early: Collection[ObservedObject],
    in_stead: Collection[ObservedObject],
) -> list[Match]:
    """Match the moves of one group that have no pod yet with pods.

    Parameters
    ----------
    group
        All moves of the wave whose pods are interchangeable.
    waiting
        Those that need a pod.
    early
        Of the pods, those that the wave is not about: they count only where they are on a target.
    in_stead
        Of the pods, those that others have taken the places of: elsewhere, they count only in the stead of such others.
    """
    waiting = list(waiting)
    places = Counter(move.target for move in group if move.kind != "remove" and ledger.stage(move) != "refused")
    landed = (ledger.progress[move.id].landed for move in group)
    places.subtract(record.node for record in landed if record is not None and record.planned)
    matches: list[Match] = []
    left: list[ObservedObject] = []
    for pod in pods:
        if waiting and pod.node and places[pod.node] > 0:
            places[pod.node] -= 1
            move = next((move for move in waiting if move.target == pod.node), waiting[0])
            waiting.remove(move)
            matches.append(Match(move, pod, True))
        elif all(pod is not other for other in early):
            left.append(pod)
    left.sort(key=lambda pod: bool(pod.node))
    spare = [pod for pod in left if any(pod is other for other in in_stead)]
    left = [pod for pod in left if all(pod is not other for other in spare)]
    for move in sorted(waiting, key=lambda move: move.kind != "place"):
        own = next((pod for pod in left if move.kind == "place" and _keyed(pod, _keys(move))), None)
        if own is not None:
            left.remove(own)
        elif spare and ledger.is_taken_over(move):
            own = spare.pop(0)
        if own is not None:
            waiting.remove(move)
            matches.append(Match(move, own))
    return matches + [Match(move, left.pop(0) if left else None) for move in waiting]
