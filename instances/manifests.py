"""Cluster snapshots from what ``kubectl get … -o json`` and ``kubectl cluster-info dump`` print."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import TypeAdapter, ValidationError

from stowplan.instances.defaulting import Defaults, complete_claim
from stowplan.instances.documents import Document
from stowplan.instances.items import Item, split
from stowplan.instances.own_pins import without_pin
from stowplan.models.errors import InputError
from stowplan.models.interning import FrozenMap, interning
from stowplan.models.kubernetes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Job,
    Namespace,
    Node,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ReplicationController,
    Service,
    StorageClass,
    VolumeAttachment,
    Workload,
)
from stowplan.models.snapshot import Snapshot
from stowplan.models.validation import explain
from stowplan.models.words import plural

# Kinds are known by API group too: Longhorn has Nodes and Knative has Services of its own.
CORE, APPS, STORAGE = ("",), ("apps", "extensions"), ("storage.k8s.io",)
READ: dict[str, tuple[tuple[str, ...], str, type[Any]]] = {
    "Node": (CORE, "nodes", Node),
    "Pod": (CORE, "pods", Pod),
    "Namespace": (CORE, "namespaces", Namespace),
    "Service": (CORE, "services", Service),
    "ReplicationController": (CORE, "replication_controllers", ReplicationController),
    "ReplicaSet": (APPS, "replica_sets", Workload),
    "StatefulSet": (APPS, "stateful_sets", Workload),
    "Deployment": (APPS, "deployments", Workload),
    "Job": (("batch",), "jobs", Job),
    "PersistentVolume": (CORE, "persistent_volumes", PersistentVolume),
    "PersistentVolumeClaim": (CORE, "persistent_volume_claims", PersistentVolumeClaim),
    "StorageClass": (STORAGE, "storage_classes", StorageClass),
    "CSINode": (STORAGE, "csi_nodes", CSINode),
    "CSIDriver": (STORAGE, "csi_drivers", CSIDriver),
    "CSIStorageCapacity": (STORAGE, "csi_storage_capacities", CSIStorageCapacity),
    "VolumeAttachment": (STORAGE, "volume_attachments", VolumeAttachment),
    "PodDisruptionBudget": (("policy",), "pod_disruption_budgets", PodDisruptionBudget),
    "PriorityClass": (("scheduling.k8s.io",), "priority_classes", PriorityClass),
}


def read_snapshot(documents: Iterator[Document], *, skip_unknown_nodes: bool = False, check: bool = True) -> Snapshot:
    """Read a snapshot from documents; unknown kinds and fields pass. See `stowplan.instances.load.load`.

    Parameters
    ----------
    check
        ``False`` leaves out `Snapshot.check`: pods may be bound to nodes that the snapshot lacks, as in a live cluster
        whose kinds are listed one after the other.
    """
    reader = _Reader()
    with _no_collection(), interning():
        for document in documents:
            for item in split(document):
                reader.add(item, document.name, gathered=document.is_gathered)
            del document
        return reader.snapshot(skip_unknown_nodes, check)


class _Reader:
    """Collects objects by kind and remembers where each was read."""

    def __init__(self) -> None:
        self.objects: dict[str, list[Any]] = {field: [] for _, field, _ in READ.values()}
        self.origin: dict[str, str] = {}
        self.skipped: Counter[str] = Counter()
        self.again = 0
        self.uids: dict[str, str] = {}
        self.parsers: dict[str, Callable[[Item], Any]] = {}

    def add(self, item: Item, file: str, *, gathered: bool = False) -> None:
        """Parse an object and keep it.

        Parameters
        ----------
        gathered
            The file is of a must-gather: of an object that it holds twice, the list that is read first counts.
        """
        groups, field, model = READ.get(item.kind, ((), "", None))
        if model is None or (item.group is not None and item.group not in groups):
            self.skipped[item.kind] += 1
            return
        try:
            parsed = self.parser(item.kind, model)(item)
        except ValidationError as error:
            raise explain(error, item.kind, item.content).in_file(file) from None
        obj = f"{item.kind} {_key(parsed)}"
        if gathered and obj in self.uids and self.uids[obj] == parsed.metadata.uid:
            self.again += 1
            return
        if gathered and parsed.metadata.uid:
            self.uids[obj] = parsed.metadata.uid
        if obj in self.origin:
            also = "" if self.origin[obj] == file else f", first in {self.origin[obj]}"
            raise InputError(f"appears twice{also}; names must be unique", file, obj, "metadata.name")
        self.origin[obj] = file
        self.objects[field].append(parsed)

    def parser(self, kind: str, model: type[Any]) -> Callable[[Item], Any]:
        if kind not in self.parsers:
            adapter = TypeAdapter(model)

            def parse(item: Item) -> Any:
                if isinstance(item.content, bytes):
                    return adapter.validate_json(item.content)
                return adapter.validate_python(item.content)

            self.parsers[kind] = parse
        return self.parsers[kind]

    def snapshot(self, skip_unknown_nodes: bool, check: bool) -> Snapshot:
        names = {node.name for node in self.objects["nodes"]}
        pods: list[Pod] = self.objects["pods"]
        notes = [] if pods else ["the snapshot holds no pod; dump pods too: kubectl get nodes,pods,… -A -o json"]
        if self.again:
            one = self.again == 1
            told = f"{plural(self.again, 'object')} of the must-gather {'is in it' if one else 'are in it'} twice"
            notes.append(f"{told}; what was read first counts")
        if skip_unknown_nodes:
            known = [pod for pod in pods if pod.finished or not pod.node_name or pod.node_name in names]
            if left_out := len(pods) - len(known):
                many = f"{left_out} pods on nodes that the snapshot lacks are left out"
                notes.append("1 pod on a node that the snapshot lacks is left out" if left_out == 1 else many)
            pods = known
        self._add_namespaces(pods)
        defaults = Defaults(self.objects["priority_classes"])
        self.objects["pods"] = [without_pin(defaults.apply(pod)) for pod in pods]
        claims: list[PersistentVolumeClaim] = self.objects["persistent_volume_claims"]
        self.objects["persistent_volume_claims"] = [complete_claim(claim) for claim in claims]
        objects: dict[str, Any] = {field: tuple(found) for field, found in self.objects.items()}
        snapshot = Snapshot(**objects, skipped=dict(+self.skipped), notes=tuple(notes))
        try:
            if check:
                snapshot.check()
        except InputError as error:
            raise error.in_file(self.origin.get(error.obj or "", "")) from None
        return snapshot

    def _add_namespaces(self, pods: list[Pod]) -> None:
        """Add the namespaces that pods live in and the input does not show; their only sure label is their name."""
        known = {namespace.metadata.name for namespace in self.objects["namespaces"]}
        for name in sorted({pod.namespace for pod in pods} - known):
            labels = FrozenMap({"kubernetes.io/metadata.name": name})
            self.objects["namespaces"].append(Namespace(ObjectMeta(name, labels=labels)))


def _key(parsed: Any) -> str:
    meta = parsed.metadata
    if isinstance(parsed, Pod | PersistentVolumeClaim):
        return str(parsed.key)
    return f"{meta.namespace}/{meta.name}" if meta.namespace else str(meta.name)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Hold the cyclic garbage collector off: nothing that is built here has cycles, and a pass costs seconds."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
