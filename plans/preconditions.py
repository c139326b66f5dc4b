"""Whether a planned move can still be made: what has to hold of its pod and of its target, said once.

``verify`` asks it of a newer snapshot, ``replay`` of the snapshot that it begins in, ``apply`` of the live cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.models.kubernetes import Node, Pod
from stowplan.models.plan import MoveDocument


def is_same_pod(pod: Pod, uid: str) -> bool:
    """Whether a pod has a uid; where one of the two has none, the name decides."""
    return not uid or not pod.metadata.uid or pod.metadata.uid == uid


def pod_problems(move: MoveDocument, pod: Pod, uid: str | None = None, *, anywhere: bool = False) -> Iterator[str]:
    """Say what about a pod keeps its move from being made as planned; each line continues one that names the pod.

    Parameters
    ----------
    pod
        Has the name of the pod that is to be moved.
    uid
        The uid of that pod, if it is another than the plan says: a parked pod has been replaced since.
    anywhere
        Whether it does not matter on which node it is.
    """
    wanted = move.pod.uid if uid is None else uid
    if not is_same_pod(pod, wanted):
        yield f"is another pod of the same name (uid {pod.metadata.uid}, planned with {wanted})"
        return
    if pod.terminating:
        yield "is terminating; wait until it is gone"
    if pod.finished:
        yield f"has finished ({pod.phase})"
    is_placed = move.kind == "place" and pod.node_name == move.target
    if not anywhere and pod.node_name != (move.source or "") and not is_placed:
        yield f"is on {pod.node_name or 'no node'}, planned from {move.source or 'no node'}"
    yield from _owner_problems(move, pod)
    if move.template_hash and pod.template_hash != move.template_hash:
        yield f"is of template {pod.template_hash or 'unknown'}, planned with {move.template_hash} (a rollout)"


def _owner_problems(move: MoveDocument, pod: Pod) -> Iterator[str]:
    controller, planned = pod.metadata.controller, move.owner
    now = f"{controller.kind} {controller.name}" if controller else "no controller"
    then = f"{planned.kind} {planned.name}" if planned else "no controller"
    if now != then:
        yield f"is owned by {now}, not by {then}"
    elif controller and planned and planned.uid and controller.uid != planned.uid:
        yield f"is owned by another {now} (uid {controller.uid or 'unknown'}, planned with {planned.uid})"


def node_problem(name: str, node: Node | None) -> str:
    """Return what keeps pods from coming to a node; empty if nothing does. Callers check cordons."""
    if node is None:
        return f"node {name} is gone"
    return f"node {name} is not ready" if node.not_ready else ""
