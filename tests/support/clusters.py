"""Small clusters by hand: a few words to build one."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from stowplan.models.kubernetes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    Service,
    StorageClass,
    VolumeAttachment,
    Workload,
)
from stowplan.models.kubernetes.devices import GPU_COUNT, GPU_MILLI, GPU_MODEL
from stowplan.models.snapshot import Snapshot

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}

_FIELDS: dict[str, type[Any]] = {
    "nodes": Node,
    "pods": Pod,
    "namespaces": Namespace,
    "services": Service,
    "replica_sets": Workload,
    "stateful_sets": Workload,
    "deployments": Workload,
    "persistent_volumes": PersistentVolume,
    "persistent_volume_claims": PersistentVolumeClaim,
    "storage_classes": StorageClass,
    "csi_nodes": CSINode,
    "csi_drivers": CSIDriver,
    "csi_storage_capacities": CSIStorageCapacity,
    "volume_attachments": VolumeAttachment,
    "pod_disruption_budgets": PodDisruptionBudget,
}
_ADAPTERS = {field: TypeAdapter(tuple[model, ...]) for field, model in _FIELDS.items()}  # type: ignore[valid-type]

Manifest = dict[str, Any]


def snapshot(**objects: list[Manifest]) -> Snapshot:
    """Build a snapshot from lists of manifests, by field name."""
    return Snapshot(**{field: _ADAPTERS[field].validate_python(items) for field, items in objects.items()})


def node(name: str, cpu: str = "4", memory: str = "8Gi", pods: int = 110, **more: Any) -> Manifest:
    """Build a node manifest. ``labels``, ``taints``, ``unschedulable`` and other resources go by keyword."""
    labels = {HOSTNAME: name, **more.pop("labels", {})}
    spec = {key: more.pop(key) for key in ("taints", "unschedulable") if key in more}
    allocatable = {"cpu": cpu, "memory": memory, "pods": str(pods), **more.pop("extended", {})}
    return {"metadata": {"name": name, "labels": labels, **more}, "spec": spec, "status": {"allocatable": allocatable}}


def pod(name: str, at: str | None = None, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> Manifest:
    """Build a pod manifest, bound to ``at`` or pending; metadata such as ``labels`` and ``owner`` goes by keyword."""
    meta: Manifest = {"name": name, "namespace": spec.pop("namespace", "default"), "labels": spec.pop("labels", {})}
    if owner := spec.pop("owner", None):
        kind, _, owner_name = owner.partition("/")
        meta["ownerReferences"] = [{"kind": kind, "name": owner_name, "controller": True}]
    meta |= {key: spec.pop(key) for key in ("deletionTimestamp", "annotations") if key in spec}
    requests = {**({"cpu": cpu} if cpu else {}), **({"memory": memory} if memory else {}), **spec.pop("extended", {})}
    ports = spec.pop("ports", [])
    container = {"name": "main", "image": "app:1", "resources": {"requests": requests}, "ports": ports}
    status = {"phase": spec.pop("phase", "Running" if at else "Pending")}
    if "conditions" in spec:
        status["conditions"] = spec.pop("conditions")
    return {
        "metadata": meta,
        "spec": {"containers": [container], **({"nodeName": at} if at else {}), **spec},
        "status": status,
    }


def labels(**match: str) -> Manifest:
    """Build a label selector."""
    return {"matchLabels": match}


def gpu(count: int | None = None, milli: int | None = None, models: str = "") -> Manifest:
    """Build the annotations of a pod that asks for devices."""
    asked = {GPU_COUNT: count, GPU_MILLI: milli, GPU_MODEL: models}
    return {key: str(value) for key, value in asked.items() if value not in (None, "")}


# -- volumes --------------------------------------------------------------------------------------------------


def storage_class(name: str, provisioner: str = "csi.x", **more: Any) -> Manifest:
    """Build a class whose claims wait for their first consumer."""
    return {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **more,
    }


def claim(name: str, size: str = "1Gi", cls: str = "local", volume: str = "", **more: Any) -> Manifest:
    """Build a claim, bound to ``volume`` or unbound. Metadata goes by ``meta``, the rest of the spec by keyword."""
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": BOUND if volume else {}}
    spec = {"storageClassName": cls, "resources": {"requests": {"storage": size}}, "accessModes": ["ReadWriteOnce"]}
    if volume:
        spec["volumeName"] = volume
    status = {"phase": more.pop("phase", "Bound" if volume else "Pending")}
    return {"metadata": {**meta, **more.pop("meta", {})}, "spec": {**spec, **more}, "status": status}


def volume(name: str, size: str = "1Gi", cls: str = "local", at: tuple[str, ...] = (), **more: Any) -> Manifest:
    """Build a volume that waits for a claim, on the named nodes or reachable from all."""
    spec: Manifest = {"storageClassName": cls, "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]}
    if at:
        term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": list(at)}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    meta, phase = more.pop("meta", {}), more.pop("phase", "Available")
    return {"metadata": {"name": name, **meta}, "spec": {**spec, **more}, "status": {"phase": phase}}


def using(*claims: str) -> list[Manifest]:
    """Build the volumes of a pod that uses these claims."""
    return [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(claims)]


def csi_node(name: str, migrated: str = "", **limits: int) -> Manifest:
    """Build a CSINode with the attach limit of each driver (``_`` stands for a dot)."""
    drivers = [{"name": key.replace("_", "."), "allocatable": {"count": count}} for key, count in limits.items()]
    note = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
    return {"metadata": {"name": name, "annotations": note if migrated else {}}, "spec": {"drivers": drivers}}
