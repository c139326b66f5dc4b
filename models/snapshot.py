"""A cluster at one moment: everything placement depends on, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property

from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.html import html_table
from stowplan.models.kubernetes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Job,
    LabelSelector,
    Namespace,
    Node,
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
from stowplan.models.kubernetes.devices import annotated_devices
from stowplan.models.metrics import LoadMetrics
from stowplan.models.words import plural


@dataclass(frozen=True)
class Snapshot:
    """Immutable contents of a cluster.

    Objects keep the order in which they were read; the scheduler's cache would have the same order.

    Parameters
    ----------
    nodes, pods, namespaces, services, replica_sets, stateful_sets, deployments, replication_controllers, jobs
        Objects of the core, apps, and batch groups.
    persistent_volumes, persistent_volume_claims, storage_classes, csi_nodes, csi_drivers, csi_storage_capacities
        Objects of storage.
    volume_attachments, pod_disruption_budgets, priority_classes
        Further objects.
    skipped
        Number of objects of each kind that were ignored because placement does not depend on them.
    notes
        Limits of the snapshot that readers of every answer have to know.
    gaps
        What the snapshot lacks although the cluster has it, and what is unknown for that reason; also among the notes.
    fatal_gaps
        Gaps with which a plan would be unsafe.
    metrics
        Measured load, for the plugins that read it.
    annotations
        Keys of annotations that were asked for when it was read, besides those that are always kept.
    """

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    services: tuple[Service, ...] = ()
    replica_sets: tuple[Workload, ...] = ()
    stateful_sets: tuple[Workload, ...] = ()
    deployments: tuple[Workload, ...] = ()
    replication_controllers: tuple[ReplicationController, ...] = ()
    jobs: tuple[Job, ...] = ()
    persistent_volumes: tuple[PersistentVolume, ...] = ()
    persistent_volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    csi_drivers: tuple[CSIDriver, ...] = ()
    csi_storage_capacities: tuple[CSIStorageCapacity, ...] = ()
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    fatal_gaps: tuple[str, ...] = ()
    metrics: LoadMetrics | None = None
    annotations: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"<Snapshot: {plural(len(self.nodes), 'node')}, {plural(len(self.pods), 'pod')}>"

    def _repr_html_(self) -> str:
        rows = [
            (one.name.replace("_", " "), len(getattr(self, one.name)))
            for one in fields(self)
            if one.name not in ("skipped", "metrics", "annotations") and getattr(self, one.name)
        ]
        return html_table("Snapshot", rows)

    @cached_property
    def assignment(self) -> Assignment:
        """Nodes of the unfinished pods that have one."""
        return Assignment((pod.key, pod.node_name) for pod in self.pods if not pod.finished)

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Position of each node by name."""
        return {node.name: i for i, node in enumerate(self.nodes)}

    @cached_property
    def namespace_labels(self) -> dict[str, Mapping[str, str]]:
        """Labels of each namespace by name; an unknown namespace has none."""
        return {ns.metadata.name: ns.metadata.labels for ns in self.namespaces}

    @cached_property
    def claims(self) -> dict[str, PersistentVolumeClaim]:
        """Claims by ``namespace/name``."""
        return {claim.key: claim for claim in self.persistent_volume_claims}

    @cached_property
    def volumes(self) -> dict[str, PersistentVolume]:
        """Persistent volumes by name."""
        return {volume.metadata.name: volume for volume in self.persistent_volumes}

    @cached_property
    def classes(self) -> dict[str, StorageClass]:
        """Storage classes by name."""
        return {cls.metadata.name: cls for cls in self.storage_classes}

    @cached_property
    def controller_selectors(self) -> dict[tuple[str, str, str], LabelSelector]:
        """Selector of each replicating controller by kind, namespace and name."""
        found = {
            (kind, _namespace(owner), owner.metadata.name): owner.spec.selector
            for kind, owners in (("ReplicaSet", self.replica_sets), ("StatefulSet", self.stateful_sets))
            for owner in owners
            if owner.spec and owner.spec.selector
        }
        for rc in self.replication_controllers:
            if rc.spec and rc.spec.selector:
                key = ("ReplicationController", _namespace(rc), rc.metadata.name)
                found[key] = LabelSelector(rc.spec.selector)
        return found

    @cached_property
    def pinned_nodes(self) -> dict[tuple[str, str, str], str]:
        """Node that a controller's pod template names, by kind, namespace and name of the controller."""
        kinds: tuple[tuple[str, Iterable[Workload | ReplicationController]], ...] = (
            ("ReplicaSet", self.replica_sets),
            ("StatefulSet", self.stateful_sets),
            ("ReplicationController", self.replication_controllers),
        )
        return {
            (kind, _namespace(owner), owner.metadata.name): owner.spec.template.spec.node_name
            for kind, owners in kinds
            for owner in owners
            if owner.spec and owner.spec.template and owner.spec.template.spec and owner.spec.template.spec.node_name
        }

    @cached_property
    def services_by_label(self) -> dict[tuple[str, str, str], list[Service]]:
        """Services by namespace and the first label, key and value, that they select."""
        found: dict[tuple[str, str, str], list[Service]] = {}
        for service in self.services:
            selector = service.spec.selector if service.spec else None
            if selector:
                key, value = next(iter(selector.items()))
                found.setdefault((service.metadata.namespace or "default", key, value), []).append(service)
        return found

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the names of nodes, of pods with their nodes, of cordons, and of terminating pods."""
        lines = [f"node {node.name}" for node in self.nodes]
        lines += [f"pod {pod.key} {pod.metadata.uid} {pod.node_name} {pod.finished}" for pod in self.pods]
        lines += [f"cordon {node.name}" for node in self.nodes if node.unschedulable]
        lines += [f"terminating {pod.key}" for pod in self.pods if pod.terminating]
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()

    def on_known_nodes(self) -> Snapshot:
        """Return the snapshot without unfinished pods on nodes that it does not hold."""
        known = (pod for pod in self.pods if pod.finished or not pod.node_name or pod.node_name in self.node_index)
        return replace(self, pods=tuple(known))

    def check(self) -> None:
        """Check what the parts cannot know about each other.

        Raises
        ------
        InputError
            If there is no node, if two objects have one name, if a pod that is not over is bound to a node that the
            snapshot does not hold, or if its annotations ask for devices that cannot be.
        """
        if not self.nodes:
            raise InputError("no Node object was found; dump nodes and pods: kubectl get nodes,pods,… -A -o json")
        self.check_names()
        for pod in self.pods:
            annotated_devices(pod)
            if pod.node_name and not pod.finished and pod.node_name not in self.node_index:
                raise InputError(
                    f"node {pod.node_name!r} is not in the snapshot; add its Node object, "
                    "or ignore such pods with --skip-unknown-nodes",
                    obj=f"Pod {pod.key}",
                    field="spec.nodeName",
                )

    def check_names(self) -> None:
        """Check that no two nodes and no two pods have one name.

        Raises
        ------
        InputError
            With the first name that appears twice.
        """
        _refuse_twins("Node", (node.name for node in self.nodes))
        _refuse_twins("Pod", (pod.key for pod in self.pods))


def _namespace(owner: Workload | ReplicationController) -> str:
    return owner.metadata.namespace or "default"


def _refuse_twins(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError("appears twice; names must be unique", obj=f"{kind} {name}", field="metadata.name")
        seen.add(name)


class Participation(StrEnum):
    """How a pod of a snapshot takes part in the problem. Every pod has exactly one participation."""

    PLACED = "placed"
    """Bound to a node, and free to move."""
    PENDING = "pending"
    """Without a node."""
    FIXED = "fixed"
    """Bound to a node, and not free to move."""
    FINISHED = "finished"
    """Succeeded or failed: it holds nothing any more."""


MIRROR = "kubernetes.io/config.mirror"
SOURCE = "kubernetes.io/config.source"
STATIC = "static pod"
"""What `tied` says of a pod that a kubelet runs by itself; the scheduler is never asked about it."""


def tied(pod: Pod) -> str | None:
    """Return why a bound pod can never be on another node, or ``None`` if it can.

    Only the kind of the pod counts here; which executor may evict it, and at what cost, is decided for plans.
    """
    controller = pod.metadata.controller
    if MIRROR in pod.metadata.annotations or pod.metadata.annotations.get(SOURCE, "api") != "api":
        return STATIC
    if pod.per_node and controller is not None:
        return STATIC if controller.kind == "Node" else controller.kind
    if pod.terminating:
        return "terminating"
    return None
