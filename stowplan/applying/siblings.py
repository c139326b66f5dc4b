"""Pods that the plan left waiting, and that got nodes which it has for others of their controllers.

The scheduler takes any of a controller's waiting pods first, and the plan names only those that it has room for. So the
place of a pod that still waits may be taken by one that the plan does not name: the number on each node is as planned.
"""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import ClusterView
from stowplan.models.kubernetes import Pod
from stowplan.models.moments import require_time
from stowplan.models.plan import MoveDocument
from stowplan.plans.replacements import by_group


def siblings_in_place(ledger: ApplyLedger, view: ClusterView, wave: int) -> Iterator[tuple[MoveDocument, Pod]]:
    """Yield the moves from a wave on whose pods still wait, each with a pod that started on its target since the plan.

    Parameters
    ----------
    wave
        Number of the wave that is to be begun, or is under way.
    """
    pending = ledger.pending(view.identities)
    places = [move for w in ledger.plan.waves if w.number >= wave for move in w.moves if move.id in pending]
    named = {(move.pod.key, move.pod.uid) for move in ledger.plan.moves if move.kind == "place"}
    waiting = (move for move in places if not view.pods[pending[move.id]].node_name)
    for group, moves in by_group(waiting).items():
        if group.pod:
            continue
        for pod in view.of_owner(group.owner):
            key = (pod.key, pod.metadata.uid)
            if pod.terminating or pod.finished or key in named or pod.metadata.uid in ledger.landed:
                continue
            move = next((move for move in moves if move.target == pod.node_name), None)
            if move is not None and _started_since(pod, ledger) and pod.template_hash == move.template_hash:
                moves.remove(move)
                yield move, pod


def _started_since(pod: Pod, ledger: ApplyLedger) -> bool:
    """Whether a kubelet took a pod on since the plan was made; not if it has not said so yet."""
    started = pod.status.start_time if pod.status is not None else None
    if not started:
        return False
    return require_time(started, "startTime") >= require_time(ledger.plan.created_at, "createdAt")
