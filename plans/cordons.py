"""Cordons: nodes to which no new pods may come, while pods that are there stay."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Node
from stowplan.models.kubernetes.node import NodeSpec
from stowplan.models.kubernetes.taints import Taint
from stowplan.models.snapshot import Snapshot

CORDONED = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
"""The taint that the node lifecycle controller gives a node with ``spec.unschedulable``."""


def cordon(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """Return a snapshot in which the named nodes are cordoned, as ``kubectl cordon`` leaves them.

    Raises
    ------
    InputError
        If the snapshot has no node of a name.
    """
    for name in names:
        if name not in snapshot.node_index:
            known = ", ".join(node.name for node in snapshot.nodes[:5])
            more = ", …" if len(snapshot.nodes) > 5 else ""
            raise InputError(f"node {name!r} is not in the snapshot, which has {known}{more}")
    wanted = set(names)
    return replace(snapshot, nodes=tuple(_cordoned(n) if n.name in wanted else n for n in snapshot.nodes))


def uncordon(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """Return a snapshot in which the named nodes are not cordoned; names that it does not have are passed over."""
    wanted = set(names)
    return replace(snapshot, nodes=tuple(_uncordoned(n) if n.name in wanted else n for n in snapshot.nodes))


def _uncordoned(node: Node) -> Node:
    if node.spec is None:
        return node
    taints = tuple(taint for taint in node.spec.taints if taint.key != CORDONED.key)
    return replace(node, spec=replace(node.spec, unschedulable=None, taints=taints))


def _cordoned(node: Node) -> Node:
    spec = node.spec or NodeSpec()
    taints = spec.taints if any(taint.key == CORDONED.key for taint in spec.taints) else (*spec.taints, CORDONED)
    return replace(node, spec=replace(spec, unschedulable=True, taints=taints))
