"""What a list of objects says of itself: which kinds were read to their end, and how many objects of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stowplan.instances.documents import Document

ASKED = "stowplan-asked"
"""Annotation of a ``List`` by ``stowplan snapshot``: ``RESOURCE=COUNT`` of each kind that was read to its end."""

PRUNED = "stowplan-annotations"
"""Annotation of a ``List`` by ``stowplan snapshot``, unless it is a full one: which annotations it holds besides those
that are always read, separated by commas."""

RESOURCES: Mapping[str, tuple[str, str]] = {
    "nodes": ("nodes", "Node"),
    "pods": ("pods", "Pod"),
    "namespaces": ("namespaces", "Namespace"),
    "services": ("services", "Service"),
    "replicationcontrollers": ("replication_controllers", "ReplicationController"),
    "replicasets.apps": ("replica_sets", "ReplicaSet"),
    "statefulsets.apps": ("stateful_sets", "StatefulSet"),
    "deployments.apps": ("deployments", "Deployment"),
    "jobs.batch": ("jobs", "Job"),
    "persistentvolumes": ("persistent_volumes", "PersistentVolume"),
    "persistentvolumeclaims": ("persistent_volume_claims", "PersistentVolumeClaim"),
    "storageclasses.storage.k8s.io": ("storage_classes", "StorageClass"),
    "csinodes.storage.k8s.io": ("csi_nodes", "CSINode"),
    "csidrivers.storage.k8s.io": ("csi_drivers", "CSIDriver"),
    "csistoragecapacities.storage.k8s.io": ("csi_storage_capacities", "CSIStorageCapacity"),
    "volumeattachments.storage.k8s.io": ("volume_attachments", "VolumeAttachment"),
    "poddisruptionbudgets.policy": ("pod_disruption_budgets", "PodDisruptionBudget"),
    "priorityclasses.scheduling.k8s.io": ("priority_classes", "PriorityClass"),
}
"""All kinds that a snapshot is read from, as the API names them: field of the snapshot, and kind."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a list says of itself.

    Parameters
    ----------
    asked
        Resources that were read to the end, such as ``poddisruptionbudgets.policy``, with the number of their objects;
        ``None`` for a number, or for the whole, that the list does not say.
    rest
        Objects that the list lacks; -1 for an unknown number.
    version
        Its resource version; empty if it has none, as the lists that kubectl puts together.
    annotations
        Keys of the annotations that were kept besides those that are always read; ``None`` if all were.
    """

    asked: Mapping[str, int | None] | None = None
    rest: int = 0
    version: str = ""
    annotations: frozenset[str] | None = None


class _ListMeta(msgspec.Struct, rename="camel"):
    annotations: dict[str, str] | None = None
    remaining_item_count: int | None = None
    resource_version: str | int | None = None
    more: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct):
    kind: str = ""
    metadata: _ListMeta | None = None


_list = msgspec.json.Decoder(_List)


def listing(document: Document) -> Listing:
    """Return what a JSON list says of itself; any other document says nothing."""
    try:
        read = _list.decode(document.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # what reads the objects says what is wrong
        return Listing()
    meta = read.metadata
    if meta is None or not read.kind.endswith("List"):
        return Listing()
    asked = (meta.annotations or {}).get(ASKED)
    rest = meta.remaining_item_count or (-1 if meta.more else 0)
    kept = (meta.annotations or {}).get(PRUNED)
    return Listing(
        None if asked is None else _read(asked),
        rest,
        str(meta.resource_version or ""),
        None if kept is None else frozenset(filter(None, kept.split(","))),
    )


def statement(counts: Iterable[tuple[str, int]]) -> str:
    """Return what `ASKED` says: the number of objects of each resource that was read to its end."""
    return ",".join(f"{resource}={count}" for resource, count in counts)


def statement_of(items: Sequence[Mapping[str, Any]]) -> str:
    """Return what `ASKED` says of a list that holds all objects that there are, as manifests."""
    counts = Counter(item["kind"] for item in items)
    return statement((resource, counts[kind]) for resource, (_, kind) in RESOURCES.items())


def _read(asked: str) -> Mapping[str, int | None]:
    stated: dict[str, int | None] = {}
    for word in asked.split(","):
        resource, _, count = word.partition("=")
        stated[resource] = int(count) if count.isdecimal() else None
    return stated
