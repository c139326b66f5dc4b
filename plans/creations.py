"""Pods of a plan that are still to be created: ``fit`` made them from manifests, and no cluster has them yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.models.plan import MoveDocument, Plan

NEW = "fit"
"""Part of the names of pods and ReplicaSets that a Deployment or a ReplicaSet would create."""


def is_to_be_created(move: MoveDocument) -> bool:
    """Whether a move may be about a pod that is not created yet: it has no uid, and no controller with one."""
    return move.kind == "place" and not move.pod.uid and (move.owner is None or not move.owner.uid)


def manifest_of(move: MoveDocument) -> str:
    """Return words for what has to be created, so that the pod of a move comes."""
    namespace, owner = move.pod.namespace, move.owner
    if owner is None:
        return f"Pod {move.pod.key}"
    if owner.kind == "ReplicaSet" and owner.name.endswith(f"-{NEW}"):
        return f"the Deployment or ReplicaSet {namespace}/{owner.name.removesuffix(f'-{NEW}')}"
    return f"{owner.kind} {namespace}/{owner.name}"


def makes_pod_of(move: MoveDocument, kind: str, name: str) -> bool:
    """Whether a controller of the move's namespace is the one that was created for its pod."""
    if move.owner is None or kind != move.owner.kind:
        return False
    if kind != "ReplicaSet":
        return name == move.owner.name
    base = move.owner.name.removesuffix(f"-{NEW}")
    return name in (base, move.owner.name) or name.rpartition("-")[0] == base


def creation_notes(plan: Plan, keys: Iterable[str]) -> Iterator[str]:
    """Say what has to be created and when, one line for each manifest.

    Parameters
    ----------
    keys
        Keys of the pods that were made from manifests.
    """
    made, said = set(keys), set()
    for wave in plan.waves:
        for move in wave.moves:
            what = manifest_of(move)
            if move.pod.key in made and is_to_be_created(move) and what not in said:
                said.add(what)
                when = (
                    f"wave {wave.number} begins, not before wave {wave.number - 1} is over" if wave.number > 1 else ""
                )
                yield f"create {what} when {when or 'wave 1 begins'}; apply says when, and waits for its pods"
