"""Nodes that come, go, or have other sizes, and what becomes of their pods."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from stowplan.models.interning import freeze
from stowplan.models.kubernetes import Affinity, CSINode, Node, NodeSelector, Pod
from stowplan.models.kubernetes.node import NodeSpec
from stowplan.models.kubernetes.pod import PodStatus
from stowplan.models.kubernetes.selectors import NodeSelectorTerm
from stowplan.models.quantity import Nanos
from stowplan.models.snapshot import STATIC, Snapshot, tied
from stowplan.scenarios.changes import SHORT

LIFECYCLE = "node.kubernetes.io/"
"""Beginning of the taints that a control plane sets on a node for its state of the moment."""
HOSTNAME = SHORT["node"]


def add_nodes(snapshot: Snapshot, like: str, count: int = 1, labels: Mapping[str, str] | None = None) -> Snapshot:
    """Return a snapshot with more nodes like one that it has: ready, uncordoned, and without images.

    The pods that a DaemonSet or the kubelet itself runs on that node run on the new ones too.

    Parameters
    ----------
    like
        Name of the node.
    labels
        Labels that differ.
    """
    model = snapshot.nodes[snapshot.node_index[like]]
    names = _new_names(snapshot, like, count)
    pods = [pod for pod in snapshot.pods if pod.node_name == like and _comes_with_a_node(pod)]
    attaching = [node for node in snapshot.csi_nodes if node.metadata.name == like]
    return replace(
        snapshot,
        nodes=(*snapshot.nodes, *(_copy(model, name, labels or {}) for name in names)),
        pods=(*snapshot.pods, *(_on_copy(pod, like, name) for name in names for pod in pods)),
        csi_nodes=(*snapshot.csi_nodes, *(_csi_copy(node, name) for name in names for node in attaching)),
    )


def remove_nodes(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """Return a snapshot without some nodes, as if their Node objects had been deleted.

    DaemonSet pods, static pods, terminating and finished pods go with their node; all other pods of it are pending
    then, under the same name.
    """
    gone = set(names)
    return replace(
        snapshot,
        nodes=tuple(node for node in snapshot.nodes if node.name not in gone),
        pods=tuple(_after_loss(snapshot, gone)),
        csi_nodes=tuple(node for node in snapshot.csi_nodes if node.metadata.name not in gone),
        volume_attachments=tuple(one for one in snapshot.volume_attachments if one.spec.node_name not in gone),
    )


def resize_nodes(snapshot: Snapshot, names: Collection[str], amounts: Mapping[str, int]) -> Snapshot:
    """Return a snapshot in which some nodes have other allocatable amounts.

    Parameters
    ----------
    amounts
        In nanos, by resource. What the machine has changes by as much.
    """
    chosen = set(names)
    return replace(snapshot, nodes=tuple(_resized(n, amounts) if n.name in chosen else n for n in snapshot.nodes))


def evicted(pod: Pod) -> Pod:
    """Return what replaces a pod whose node is gone: it waits for a node, under the same name."""
    status = PodStatus(phase="Pending", qos_class=pod.status.qos_class if pod.status else "")
    return replace(pod, spec=replace(pod.spec, node_name=None), status=status)


def _after_loss(snapshot: Snapshot, gone: Collection[str]) -> Iterator[Pod]:
    for pod in snapshot.pods:
        if pod.node_name not in gone:
            yield pod
        elif not pod.finished and tied(pod) is None:
            yield evicted(pod)


def _comes_with_a_node(pod: Pod) -> bool:
    return not pod.finished and not pod.terminating and (pod.per_node or tied(pod) == STATIC)


def _new_names(snapshot: Snapshot, like: str, count: int) -> list[str]:
    names: list[str] = []
    i = 0
    while len(names) < count:
        i += 1
        if (name := f"{like}-new-{i}") not in snapshot.node_index:
            names.append(name)
    return names


def _copy(model: Node, name: str, labels: Mapping[str, str]) -> Node:
    own = {**model.labels, **({HOSTNAME: name} if HOSTNAME in model.labels else {}), **labels}
    meta = replace(model.metadata, name=name, uid="", labels=freeze(own), creation_timestamp=None)
    taints = tuple(taint for taint in model.taints if not taint.key.startswith(LIFECYCLE))
    status = model.status and replace(model.status, addresses=(), images=(), conditions=())
    return replace(model, metadata=meta, spec=NodeSpec(taints=taints), status=status)


def _on_copy(pod: Pod, model: str, node: str) -> Pod:
    meta = replace(pod.metadata, name=f"{pod.name}-{node}", uid="", creation_timestamp=None)
    spec = replace(pod.spec, node_name=node, affinity=_affinity_to(pod.spec.affinity, model, node))
    return replace(
        pod, metadata=meta, spec=spec, status=pod.status and replace(pod.status, host_ip="", start_time=None)
    )


def _affinity_to(affinity: Affinity | None, model: str, node: str) -> Affinity | None:
    """Return the affinity of a DaemonSet's pod to its node, for the copy of the node."""
    own = None if affinity is None else affinity.node_affinity
    if affinity is None or own is None or own.required is None:
        return affinity
    terms = tuple(_term_for(term, model, node) for term in own.required.node_selector_terms)
    return replace(affinity, node_affinity=replace(own, required=NodeSelector(terms)))


def _term_for(term: NodeSelectorTerm, model: str, node: str) -> NodeSelectorTerm:
    fields = tuple(replace(one, values=(node,)) if one.values == (model,) else one for one in term.match_fields)
    return replace(term, match_fields=fields)


def _csi_copy(node: CSINode, name: str) -> CSINode:
    return replace(node, metadata=replace(node.metadata, name=name, uid=""))


def _resized(node: Node, amounts: Mapping[str, int]) -> Node:
    if node.status is None:
        return node
    capacity = {
        name: Nanos(max(0, has + amounts[name] - node.allocatable.get(name, 0))) if name in amounts else has
        for name, has in node.capacity.items()
    }
    allocatable = {**node.allocatable, **amounts}
    return replace(node, status=replace(node.status, allocatable=freeze(allocatable), capacity=freeze(capacity)))
