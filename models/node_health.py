"""Nodes that do not run their pods any more, and what becomes of the pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from stowplan.models.kubernetes import Node, Pod
from stowplan.models.kubernetes.taints import Taint, tolerated
from stowplan.models.moments import parse_time
from stowplan.models.snapshot import Snapshot
from stowplan.models.words import plural

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"

STALE = timedelta(minutes=10)
"""How much older than the newest heartbeat of all nodes one may be; kubelets write their status every 5 minutes."""

NAMED = 5
"""Pods that a note names at most."""


def dead_by(node: Node) -> Taint | None:
    """Return the taint by which the node lifecycle controller evicts pods from a node, or ``None`` if it is alive.

    A node is dead if it has the taint, or if its condition ``Ready`` is ``False`` or ``Unknown``: then the controller
    is about to set it.
    """
    for taint in node.taints:
        if taint.effect == "NoExecute" and taint.key in (NOT_READY, UNREACHABLE):
            return taint
    if not node.not_ready:
        return None
    unknown = node.readiness is not None and node.readiness.status == "Unknown"
    return Taint(UNREACHABLE if unknown else NOT_READY, "NoExecute")


def dead_nodes(snapshot: Snapshot) -> Mapping[str, Taint]:
    """Return the dead nodes by name, with the taint by which pods are evicted from them."""
    return {node.name: taint for node in snapshot.nodes if (taint := dead_by(node))}


def endangered(pod: Pod, dead: Mapping[str, Taint]) -> bool:
    """Whether a pod is on a dead node that it does not tolerate for good: it will be evicted.

    Parameters
    ----------
    dead
        What `dead_nodes` returned.
    """
    taint = dead.get(pod.node_name)
    if taint is None or pod.finished:
        return False
    return not tolerated(taint, (one for one in pod.spec.tolerations if one.toleration_seconds is None))


def endangered_pods(snapshot: Snapshot) -> Mapping[str, list[Pod]]:
    """Return the endangered pods of each dead node."""
    dead = dead_nodes(snapshot)
    found: dict[str, list[Pod]] = {name: [] for name in dead}
    for pod in snapshot.pods:
        if dead and endangered(pod, dead):
            found[pod.node_name].append(pod)
    return found


def health_notes(snapshot: Snapshot) -> Iterator[str]:
    """Yield what a reader of any answer has to know about nodes: which are dead, and whose heartbeats are old."""
    dead = dead_nodes(snapshot)
    for name, pods in endangered_pods(snapshot).items():
        is_what = "unreachable" if dead[name].key == UNREACHABLE else "not ready"
        keys = ", ".join(pod.key for pod in pods[:NAMED]) + (", …" if len(pods) > NAMED else "")
        are = f"{plural(len(pods), 'pod')} endangered: {keys}" if pods else "no pod is endangered"
        yield f"node {name} is {is_what} and takes no pod; {are}"
        if any(owner.kind == "StatefulSet" for pod in pods if (owner := pod.metadata.controller)):
            yield (
                f"pods of StatefulSets on {name} come up elsewhere only once the node is deleted or has the taint "
                "node.kubernetes.io/out-of-service"
            )
    beats = {node.name: beat for node in snapshot.nodes if node.name not in dead and (beat := _heartbeat(node))}
    newest = max(beats.values(), default=None)
    for name, beat in beats.items():
        if newest is not None and newest - beat > STALE:
            minutes = int((newest - beat).total_seconds() // 60)
            yield f"the last heartbeat of node {name} is {minutes} minutes older than the newest: it may not be ready"


def _heartbeat(node: Node) -> datetime | None:
    stamp = node.readiness.last_heartbeat_time if node.readiness else None
    return parse_time(stamp) if stamp else None
