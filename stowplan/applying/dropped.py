"""Moves that are left out of a plan since their workloads have changed: scaled down, rolled out, or deleted."""

from __future__ import annotations

from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import ClusterView, look_at
from stowplan.cluster.kubectl import ClusterError, Kubectl
from stowplan.models.kubernetes import Pod
from stowplan.models.moments import require_time
from stowplan.models.plan import MoveDocument
from stowplan.plans.preconditions import is_same_pod


def of_owner(move: MoveDocument) -> str:
    """Return words that say whose pod a move is about, such as `` of ReplicaSet web``; empty if no controller's."""
    return f" of {move.owner.kind} {move.owner.name}" if move.owner else ""


def rolled_out(move: MoveDocument, template: str) -> str:
    """Say that a controller makes its pods from another template by now; empty if it does not.

    Parameters
    ----------
    template
        Hash of the template of a pod that was made since the plan was; empty if the pod carries none.
    """
    if not move.template_hash or not template or template == move.template_hash:
        return ""
    return f"{_owner(move)} makes its pods from another template now (a rollout)"


def not_wanted(kubectl: Kubectl, move: MoveDocument, live: int) -> str:
    """Say why no further pod of a move's controller will come; empty if one may.

    Parameters
    ----------
    live
        Number of pods of the controller that are neither on their way out nor finished.
    """
    if move.owner is None or not move.owner.uid:
        return ""
    try:
        owner = look_at(kubectl, move.owner.kind, move.owner.name, move.pod.namespace)
    except ClusterError:
        return ""
    if owner is None or owner.leaving or owner.uid != move.owner.uid:
        return f"{_owner(move)} is gone"
    if owner.spec.replicas is None or live < owner.spec.replicas:
        return ""
    return f"{_owner(move)} wants {owner.spec.replicas} pods now, and has {live}"


def changed_workloads(ledger: ApplyLedger, view: ClusterView, kubectl: Kubectl, wave: int) -> dict[str, str]:
    """Return the moves from a wave on whose pods are gone since their owners want them no more, each with the reason.

    A pod that another client deleted is none of them: its controller has replaced it, or will, and the plan does not
    say where that replacement belongs.
    """
    found: dict[str, str] = {}
    pending = ledger.pending(view.identities)
    reasons: dict[str, str] = {}
    for number, move in ((w.number, m) for w in ledger.plan.waves for m in w.moves):
        if number < wave or ledger.stage(move) != "waiting" or move.owner is None:
            continue
        if move.follows is not None and ledger.parked(move) is None:
            if move.follows in found or ledger.progress[move.follows].dropped is not None:
                found[move.id] = "the move before it was left out"
            continue
        key = pending.get(move.id, f"{move.pod.namespace}/{ledger.name(move)}")
        pod = None if move.id not in pending and ledger.is_taken_over(move) else view.pods.get(key)
        if pod is not None and is_same_pod(pod, ledger.uid(move) if move.id not in pending else pod.metadata.uid):
            if pod.finished:
                found[move.id] = f"pod {key} has finished"
                continue
            if not pod.terminating:
                continue
        elif pod is not None and (why := rolled_out(move, pod.template_hash)):
            found[move.id] = why
            continue
        uid = move.owner.uid
        if uid not in reasons:
            live = [pod for pod in view.of_owner(uid) if not pod.terminating and not pod.finished]
            replaced = any(_is_stranger(pod, ledger) for pod in live)
            reasons[uid] = "" if replaced else not_wanted(kubectl, move, len(live))
        if reasons[uid]:
            found[move.id] = reasons[uid]
    return found


def _is_stranger(pod: Pod, ledger: ApplyLedger) -> bool:
    """Whether a pod was made since the plan was, and not because of it.

    A pod that was there when the first wave with pods of its owner began is none, since all pods that the plan is about
    were there then; nor is one made in the second of the plan: times are whole seconds, and the plan may know it.
    """
    created = pod.metadata.creation_timestamp
    if created is None or pod.metadata.uid in ledger.landed:
        return False
    owner = pod.metadata.controller
    if owner is not None and pod.metadata.uid in (ledger.known_first(owner.uid) or ()):
        return False
    return require_time(created, "creationTimestamp") > require_time(ledger.plan.created_at, "createdAt")


def _owner(move: MoveDocument) -> str:
    assert move.owner is not None
    return f"{move.owner.kind} {move.owner.name}"
