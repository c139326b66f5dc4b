"""Which new pod replaces which old one, and whether it is on the planned node.

Pods of one owner and template are interchangeable: a plan says how many of them belong on which node, and the extender
that steers the scheduler hands out places, not moves. So a replacement is where it should be if its node is a target of
any move of its owner in the wave that has not got its pod yet, whether that move's own pod has left or is still to
leave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import ObservedObject
from stowplan.models.plan import MoveDocument


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
    by an autoscaler for instance, is held against a move only if no other pod is left for it.
    """
    matches: list[Match] = []
    taken = {progress.landed.uid for progress in ledger.progress.values() if progress.landed is not None}
    groups: dict[tuple[str, str], list[MoveDocument]] = {}
    for move in moves:
        if move.kind == "place" and not ledger.settled(move):
            same = (pod for pod in pods if pod.key == move.pod.key and pod.uid == (move.pod.uid or pod.uid))
            matches.append(_named(move, next(same, None)))
        elif move.same_name and move.kind == "evict" and ledger.stage(move) == "leaving":
            matches.append(_named(move, _namesake(move, ledger.uid(move), pods)))
        elif not move.same_name and move.kind == "evict" and move.owner is not None:
            groups.setdefault((move.pod.namespace, move.owner.uid), []).append(move)
    for (namespace, owner), group in groups.items():
        before = known.get(owner, frozenset()) | taken
        new = [pod for pod in pods if pod.owner == owner and pod.metadata.namespace == namespace]
        fresh = [pod for pod in new if pod.uid not in before and not pod.leaving and not pod.finished]
        matches += _assign(group, ledger, fresh)
    return matches


def _named(move: MoveDocument, pod: ObservedObject | None) -> Match:
    return Match(move, pod, pod is not None and pod.node == move.target)


def _namesake(move: MoveDocument, old: str, pods: Iterable[ObservedObject]) -> ObservedObject | None:
    """Return the pod that has taken the name of an old one."""
    key = f"{move.pod.namespace}/{move.pod.name}"
    return next((pod for pod in pods if pod.key == key and pod.uid != old and not pod.leaving), None)


def _assign(group: Sequence[MoveDocument], ledger: ApplyLedger, pods: Sequence[ObservedObject]) -> list[Match]:
    """Match the moves of one owner that have no pod yet with its new pods."""
    waiting = [move for move in group if ledger.stage(move) == "leaving"]
    places = Counter(move.target for move in group if ledger.stage(move) != "refused")
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
        else:
            left.append(pod)
    left.sort(key=lambda pod: bool(pod.node))
    return matches + [Match(move, left.pop(0) if left else None) for move in waiting]
