"""The openb traces of Alibaba's GPU cluster (2023): one CSV of nodes and one CSV of pods.

Every pod of the list is taken as waiting, whatever became of it in the trace, as the published experiments do.
GPUs are a resource of the node, in thousandths: that a fraction has to come from a single device is not modelled,
so a placement may split one. Bounds stay valid, since the relaxed problem only has more placements.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import TypeVar

from instances.documents import Document
from models.errors import InputError
from models.interning import FrozenMap, interning
from models.kubernetes import Affinity, Container, Node, NodeSelector, NodeStatus, ObjectMeta, Pod, PodSpec, PodStatus
from models.kubernetes.pod import NodeAffinity, ResourceRequirements
from models.kubernetes.selectors import NodeSelectorRequirement, NodeSelectorTerm
from models.quantity import parse_quantity
from models.snapshot import Snapshot

GPU = "alibabacloud.com/gpu-milli"
MODEL = "alibabacloud.com/gpu-model"
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
PODS_PER_NODE = 1001
NOTE = "openb: GPUs are a node's resource in thousandths; that a fraction must come from one device is not modelled"

T = TypeVar("T", Node, Pod)


def is_openb(document: Document) -> bool:
    """Whether a document is a node list or a pod list of openb."""
    return _columns(document)[:5] in (NODE_COLUMNS, POD_COLUMNS)


def read_openb(documents: Sequence[Document]) -> Snapshot:
    """Read one node list and one pod list.

    Raises
    ------
    InputError
        If there is not one of each, or a row that is not numbers where numbers belong.
    """
    nodes = [d for d in documents if _columns(d)[:5] == NODE_COLUMNS]
    pods = [d for d in documents if _columns(d)[:5] == POD_COLUMNS]
    if len(nodes) != 1 or len(pods) != 1 or len(documents) != 2:
        others = len(documents) - len(nodes) - len(pods)
        raise InputError(
            "an openb instance is one node list and one pod list; "
            f"given are {len(nodes)} node lists, {len(pods)} pod lists and {others} others",
            file=documents[0].name,
        )
    with interning():
        snapshot = Snapshot(nodes=_rows(nodes[0], _node), pods=_rows(pods[0], _pod), notes=(NOTE,))
    snapshot.check()
    return snapshot


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


def _number(row: dict[str, str], column: str) -> int:
    text = row[column]
    if text is None or not text.strip().isdigit():
        raise ValueError(f"{column} is {text!r}, must be a whole number that is not negative")
    return int(text)


def _node(row: dict[str, str]) -> Node:
    labels = {"kubernetes.io/hostname": row["sn"]} | ({MODEL: row["model"]} if row["model"] else {})
    offered = _amounts(_number(row, "cpu_milli"), _number(row, "memory_mib"), _number(row, "gpu") * 1000)
    status = NodeStatus(FrozenMap({**offered, "pods": parse_quantity(PODS_PER_NODE)}))
    return Node(ObjectMeta(row["sn"], labels=FrozenMap(labels)), status=status)


def _pod(row: dict[str, str]) -> Pod:
    gpu = _number(row, "num_gpu") * _number(row, "gpu_milli")
    requests = _amounts(_number(row, "cpu_milli"), _number(row, "memory_mib"), gpu)
    container = Container("main", resources=ResourceRequirements(requests))
    spec = PodSpec(containers=(container,), affinity=_affinity(row.get("gpu_spec") or ""))
    return Pod(ObjectMeta(row["name"], "openb"), spec, PodStatus("Pending"))


def _amounts(cpu_milli: int, memory_mib: int, gpu_milli: int) -> FrozenMap[int]:
    texts = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"} | ({GPU: str(gpu_milli)} if gpu_milli else {})
    return FrozenMap({name: parse_quantity(text) for name, text in texts.items()})


def _affinity(models: str) -> Affinity | None:
    if not models:
        return None
    requirement = NodeSelectorRequirement(MODEL, "In", tuple(models.split("|")))
    return Affinity(NodeAffinity(NodeSelector((NodeSelectorTerm((requirement,)),))))
