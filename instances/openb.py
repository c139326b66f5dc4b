"""The openb traces of Alibaba's GPU cluster (2023): one CSV of nodes and one CSV of pods.

Every pod of the list is pending, whatever became of it in the trace, as the published experiments do. What it
asks of GPUs is said twice: by annotations, as the simulator of these experiments has it, so that a share comes from one
device; and as a resource in thousandths, so that a scheduler without devices counts what a node has.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from stowplan.instances.documents import Document
from stowplan.models.errors import InputError
from stowplan.models.interning import FrozenMap, interning
from stowplan.models.kubernetes import (
    Affinity,
    Container,
    Node,
    NodeSelector,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
)
from stowplan.models.kubernetes.devices import DEVICE, GPU_COUNT, GPU_MILLI, GPU_MODEL, MOST_DEVICES
from stowplan.models.kubernetes.pod import NodeAffinity, ResourceRequirements
from stowplan.models.kubernetes.selectors import NodeSelectorRequirement, NodeSelectorTerm
from stowplan.models.quantity import parse_quantity
from stowplan.models.snapshot import Snapshot

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
PODS_PER_NODE = 1001
NOTE = "openb: all pods of the list wait, whatever became of them in the trace"

T = TypeVar("T", Node, Pod)


def is_openb(document: Document) -> bool:
    """Whether a document is a node list or a pod list of openb."""
    return _columns(document)[:5] in (NODE_COLUMNS, POD_COLUMNS)


def read_openb(documents: Sequence[Document]) -> Snapshot:
    """Read one node list and one pod list.

    A list that the user names comes before those of a directory; what else there is in a directory is passed over.

    Raises
    ------
    InputError
        If there is not one of each, or a row that is not numbers where numbers belong.
    """
    nodes = _named_first([d for d in documents if _columns(d)[:5] == NODE_COLUMNS])
    pods = _named_first([d for d in documents if _columns(d)[:5] == POD_COLUMNS])
    others = [d for d in documents if d.chosen and not is_openb(d)]
    if len(nodes) != 1 or len(pods) != 1 or others:
        raise InputError(
            "an openb instance is one node list and one pod list; "
            f"found {_listed(nodes, 'node list')}, {_listed(pods, 'pod list')} and {len(others)} others",
            file=documents[0].name,
        )
    with interning():
        snapshot = Snapshot(nodes=_rows(nodes[0], _node), pods=_rows(pods[0], _pod), notes=(NOTE,))
    snapshot.check()
    return snapshot


def _named_first(documents: list[Document]) -> list[Document]:
    return [document for document in documents if document.chosen] or documents


def _listed(documents: list[Document], what: str, most: int = 4) -> str:
    """Count lists, and name those of a directory if one of them has to be chosen."""
    counted = f"{len(documents)} {what}{'' if len(documents) == 1 else 's'}"
    if len(documents) < 2 or documents[0].chosen:
        return counted
    names = ", ".join(Path(document.name).name for document in documents[:most])
    return f"{counted} ({names}{', …' if len(documents) > most else ''}: name one)"


def _columns(document: Document) -> tuple[str, ...]:
    first = document.data[:4096].partition(b"\n")[0].decode("utf-8", "replace")
    return tuple(first.strip().split(","))


def _rows(document: Document, make: Callable[[dict[str, str]], T]) -> tuple[T, ...]:
    made = []
    for number, row in enumerate(csv.DictReader(io.StringIO(document.data.decode("utf-8", "replace"))), start=2):
        try:
            made.append(make(row))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"line {number}: {error}", file=document.name) from None
    return tuple(made)


def _number(row: dict[str, str], column: str, most: int | None = None) -> int:
    text = row[column]
    if text is None or not text.strip().isdigit():
        raise ValueError(f"{column} is {text!r}; must be an integer of 0 or more")
    if most is not None and int(text) > most:
        raise ValueError(f"{column} is {text!r}; must be at most {most}")
    return int(text)


def _node(row: dict[str, str]) -> Node:
    labels = {"kubernetes.io/hostname": row["sn"]} | ({GPU_MODEL: row["model"]} if row["model"] else {})
    devices = _number(row, "gpu")
    offered = _amounts(_number(row, "cpu_milli"), _number(row, "memory_mib"), devices * DEVICE)
    if devices:
        offered = FrozenMap({**offered, GPU_COUNT: parse_quantity(devices)})
    status = NodeStatus(FrozenMap({**offered, "pods": parse_quantity(PODS_PER_NODE)}))
    return Node(ObjectMeta(row["sn"], labels=FrozenMap(labels)), status=status)


def _pod(row: dict[str, str]) -> Pod:
    count, milli = _number(row, "num_gpu", MOST_DEVICES), _number(row, "gpu_milli", DEVICE)
    requests = _amounts(_number(row, "cpu_milli"), _number(row, "memory_mib"), count * milli)
    devices = FrozenMap({GPU_COUNT: str(count), GPU_MILLI: str(milli)} if count * milli else {})
    container = Container("main", resources=ResourceRequirements(requests))
    spec = PodSpec(containers=(container,), affinity=_affinity(row.get("gpu_spec") or ""))
    return Pod(ObjectMeta(row["name"], "openb", annotations=devices), spec, PodStatus("Pending"))


def _amounts(cpu_milli: int, memory_mib: int, gpu_milli: int) -> FrozenMap[int]:
    texts = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"} | ({GPU_MILLI: str(gpu_milli)} if gpu_milli else {})
    return FrozenMap({name: parse_quantity(text) for name, text in texts.items()})


def _affinity(models: str) -> Affinity | None:
    if not models:
        return None
    requirement = NodeSelectorRequirement(GPU_MODEL, "In", tuple(models.split("|")))
    return Affinity(NodeAffinity(NodeSelector((NodeSelectorTerm((requirement,)),))))
