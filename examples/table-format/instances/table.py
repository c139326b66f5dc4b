"""A cluster as one CSV table: ``kind,name,cpu,memory,at``, a node or a pod a line."""

from __future__ import annotations

import csv
import io

from stowplan.instances.documents import Document
from stowplan.models.errors import InputError
from stowplan.models.interning import FrozenMap, interning
from stowplan.models.kubernetes import Container, Node, NodeStatus, ObjectMeta, Pod, PodSpec, PodStatus
from stowplan.models.kubernetes.pod import ResourceRequirements
from stowplan.models.quantity import parse_quantity
from stowplan.models.snapshot import Snapshot

COLUMNS = ["kind", "name", "cpu", "memory", "at"]
PODS_PER_NODE = "110"


def is_table(document: Document) -> bool:
    """Whether a document is such a table."""
    return document.data[:200].partition(b"\n")[0].decode("utf-8", "replace").strip().split(",") == COLUMNS


def read_table(document: Document) -> Snapshot:
    """Read a table.

    Raises
    ------
    InputError
        With the line that cannot be used.
    """
    nodes: list[Node] = []
    pods: list[Pod] = []
    with interning():
        for number, row in enumerate(csv.DictReader(io.StringIO(document.data.decode("utf-8", "replace"))), start=2):
            try:
                if None in row.values():
                    raise ValueError("has too few columns")
                if row["kind"] == "node":
                    nodes.append(_node(row))
                elif row["kind"] == "pod":
                    pods.append(_pod(row))
                else:
                    raise ValueError(f"kind is {row['kind']!r}; must be node or pod")
            except ValueError as error:
                raise InputError(f"line {number}: {error}", file=document.name) from None
    snapshot = Snapshot(nodes=tuple(nodes), pods=tuple(pods))
    try:
        snapshot.check()
    except InputError as error:
        raise error.in_file(document.name) from None
    return snapshot


def _node(row: dict[str, str]) -> Node:
    labels = FrozenMap({"kubernetes.io/hostname": row["name"]})
    offered = {**_amounts(row), "pods": parse_quantity(PODS_PER_NODE)}
    return Node(ObjectMeta(row["name"], labels=labels), status=NodeStatus(FrozenMap(offered)))


def _pod(row: dict[str, str]) -> Pod:
    container = Container("main", resources=ResourceRequirements(FrozenMap(_amounts(row))))
    spec = PodSpec(containers=(container,), node_name=row["at"])
    return Pod(ObjectMeta(row["name"], "default"), spec, PodStatus("Running" if row["at"] else "Pending"))


def _amounts(row: dict[str, str]) -> dict[str, int]:
    return {name: parse_quantity(row[name]) for name in ("cpu", "memory")}
