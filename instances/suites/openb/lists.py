"""A node list and a pod list, as arrays."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stowplan.instances.documents import Document
from stowplan.models.arrays import Ints
from stowplan.models.errors import InputError

WHOLE = 1000
"""Thousandths of a device that make one."""


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Nodes and pods; axes are ``n`` node, ``p`` pod.

    Parameters
    ----------
    nodes, pods
        Names.
    room
        ``[n, 2]`` millicores and MiB of a node.
    devices
        ``[n]`` number of devices.
    model
        ``[n]`` which model they are.
    asks
        ``[p, 2]`` millicores and MiB of a pod.
    whole, share
        ``[p]`` whole devices of a pod, and thousandths of one more; one of the two is 0.
    models
        ``[p]`` the models a pod runs on, all if empty.
    """

    nodes: tuple[str, ...]
    room: Ints
    devices: Ints
    model: tuple[str, ...]
    pods: tuple[str, ...]
    asks: Ints
    whole: Ints
    share: Ints
    models: tuple[tuple[str, ...], ...]


def read_lists(nodes: Document, pods: Document) -> Cluster:
    """Read a node list and a pod list.

    Raises
    ------
    InputError
        With the line of the first row that cannot be used.
    """
    offered = list(_rows(nodes, "sn", ("cpu_milli", "memory_mib", "gpu")))
    asked = list(_rows(pods, "name", ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")))
    for line, row, (_, _, devices, share) in asked:
        if not (devices == share == 0 or (devices == 1 and 0 < share <= WHOLE) or (devices > 1 and share == WHOLE)):
            what = f"num_gpu {devices} with gpu_milli {share}; must be none, a share of one device, or whole devices"
            raise InputError(what, file=pods.name, obj=row["name"], field=f"line {line}")
    room = np.array([numbers for _, _, numbers in offered], dtype=np.int64).reshape(-1, 3)
    asks = np.array([numbers for _, _, numbers in asked], dtype=np.int64).reshape(-1, 4)
    shared = (asks[:, 2] == 1) & (asks[:, 3] < WHOLE)
    return Cluster(
        nodes=tuple(row["sn"] for _, row, _ in offered),
        room=room[:, :2],
        devices=room[:, 2],
        model=tuple(row.get("model") or "" for _, row, _ in offered),
        pods=tuple(row["name"] for _, row, _ in asked),
        asks=asks[:, :2],
        whole=np.where(shared, 0, asks[:, 2]),
        share=np.where(shared, asks[:, 3], 0),
        models=tuple(
            tuple((row.get("gpu_spec") or "").split("|")) if row.get("gpu_spec") else () for _, row, _ in asked
        ),
    )


def _rows(
    document: Document, key: str, columns: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, str], tuple[int, ...]]]:
    """Yield line, row and numbers of each row; names must differ."""
    seen: set[str] = set()
    lines = csv.DictReader(io.StringIO(document.data.decode("utf-8", "replace")))
    for line, row in enumerate(lines, 2):
        for column in (key, *columns):
            if row.get(column) is None:
                raise InputError(f"has no {column}", file=document.name, field=f"line {line}")
        numbers = []
        for column in columns:
            text = row[column].strip()
            if not (text.isascii() and text.isdigit() and len(text) <= 15):
                wanted = f"{column} is {row[column]!r}; must be an integer of 0 or more"
                raise InputError(wanted, file=document.name, field=f"line {line}")
            numbers.append(int(text))
        if row[key] in seen:
            raise InputError(
                f"{row[key]} appears twice; names must be unique", file=document.name, field=f"line {line}"
            )
        seen.add(row[key])
        yield line, row, tuple(numbers)
