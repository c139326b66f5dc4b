"""Which new pod replaces which old one, and whether it stands where it should.

Pods of one owner and template are interchangeable: a plan says how many of them belong on which node. So a replacement
counts for any move of its owner that wants its node, whatever its name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from models.plan import MoveDocument
from stowplan.applying.ledger import Ledger
from stowplan.applying.observing import Seen


@dataclass(frozen=True, slots=True)
class Match:
    """A move and the pod that stands for it now; ``None`` as long as there is none."""

    move: MoveDocument
    pod: Seen | None

    @property
    def bound(self) -> bool:
        """Whether the pod has a node."""
        return self.pod is not None and bool(self.pod.node)

    @property
    def planned(self) -> bool:
        """Whether it is the planned one."""
        return self.pod is not None and self.pod.node == self.move.target


def match(
    moves: Sequence[MoveDocument], ledger: Ledger, known: dict[str, frozenset[str]], pods: Collection[Seen]
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
    Of an owner's moves, first those are matched that have a new pod on their target, then those for which a new pod
    still waits for a node, and only then those whose new pod stands elsewhere. So a pod that was made for another
    reason, by an autoscaler for instance, is held against a move only if no other pod is left for it.
    """
    matches: list[Match] = []
    taken = {progress.landed.uid for progress in ledger.progress.values() if progress.landed is not None}
    by_owner: dict[tuple[str, str], list[MoveDocument]] = {}
    for move in moves:
        if ledger.settled(move) or move.kind == "remove":
            continue
        if move.kind == "place":
            same = (pod for pod in pods if pod.key == move.pod.key and pod.uid == (move.pod.uid or pod.uid))
            matches.append(Match(move, next(same, None)))
        elif ledger.stage(move) != "leaving" or move.owner is None:
            continue
        elif move.same_name:
            matches.append(Match(move, _namesake(move, ledger.uid(move), pods)))
        else:
            by_owner.setdefault((move.pod.namespace, move.owner.uid), []).append(move)
    for (namespace, owner), group in by_owner.items():
        before = known.get(owner, frozenset()) | taken
        new = [pod for pod in pods if pod.owner == owner and pod.metadata.namespace == namespace]
        matches += _assign(
            group, [pod for pod in new if pod.uid not in before and not pod.leaving and not pod.finished]
        )
    return matches


def _namesake(move: MoveDocument, old: str, pods: Iterable[Seen]) -> Seen | None:
    """Return the pod that has taken the name of an old one."""
    key = f"{move.pod.namespace}/{move.pod.name}"
    return next((pod for pod in pods if pod.key == key and pod.uid != old and not pod.leaving), None)


def _assign(moves: Sequence[MoveDocument], pods: Sequence[Seen]) -> list[Match]:
    left, open_moves, matches = list(pods), [], []
    for move in moves:
        pod = next((pod for pod in left if pod.node == move.target), None)
        if pod is None:
            open_moves.append(move)
        else:
            left.remove(pod)
            matches.append(Match(move, pod))
    left.sort(key=lambda pod: bool(pod.node))
    for move in open_moves:
        matches.append(Match(move, left.pop(0) if left else None))
    return matches
