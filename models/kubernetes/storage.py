"""Volumes, claims, classes, and what a node can attach."""

from __future__ import annotations

from stowplan.models.kubernetes.base import EMPTY, Many, Name, Names, Quantity, StorageList, kube
from stowplan.models.kubernetes.meta import ObjectMeta
from stowplan.models.kubernetes.pod import (
    AnySource,
    AWSElasticBlockStore,
    AzureDisk,
    Cinder,
    GCEPersistentDisk,
    ResourceRequirements,
)
from stowplan.models.kubernetes.selectors import LabelSelector, NodeSelector

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

STORAGE = "storage"
"""The resource of which claims request, and volumes offer, an amount."""


@kube
class ClaimReference:
    """Which claim a volume is bound to."""

    namespace: Name = ""
    name: Name = ""
    uid: Name = ""


@kube
class CSISource:
    """A volume of a CSI driver."""

    driver: Name
    volume_handle: Name = ""


@kube
class VolumeNodeAffinity:
    """Which nodes can reach a volume."""

    required: NodeSelector | None = None


@kube
class PersistentVolumeSpec:
    """The part of a volume's ``spec`` that placement reads."""

    capacity: StorageList = EMPTY
    access_modes: Names = ()
    claim_ref: ClaimReference | None = None
    storage_class_name: Name = ""
    node_affinity: VolumeNodeAffinity | None = None
    volume_mode: Name | None = None
    volume_attributes_class_name: Name | None = None
    csi: CSISource | None = None
    local: AnySource | None = None
    host_path: AnySource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None


@kube
class Phase:
    """A status of which only the phase is read."""

    phase: Name = ""


@kube
class PersistentVolume:
    """A volume of the cluster."""

    metadata: ObjectMeta
    spec: PersistentVolumeSpec
    status: Phase | None = None

    @property
    def class_name(self) -> str:
        """The storage class the volume belongs to; empty if none."""
        return self.metadata.annotations.get(BETA_STORAGE_CLASS, self.spec.storage_class_name)

    @property
    def available(self) -> bool:
        """Whether the volume waits for a claim."""
        return self.status is not None and self.status.phase == "Available"

    @property
    def capacity(self) -> int:
        """What the volume holds, in nanobytes."""
        return self.spec.capacity.get(STORAGE, 0)


@kube
class PersistentVolumeClaimSpec:
    """The part of a claim's ``spec`` that placement reads."""

    volume_name: Name = ""
    storage_class_name: Name | None = None
    access_modes: Names = ()
    volume_mode: Name | None = None
    volume_attributes_class_name: Name | None = None
    resources: ResourceRequirements | None = None
    selector: LabelSelector | None = None


@kube
class PersistentVolumeClaim:
    """A request for a volume, bound to one or not yet."""

    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec
    status: Phase | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace or 'default'}/{self.metadata.name}"

    @property
    def class_name(self) -> str:
        """The storage class asked for; empty if none."""
        return self.metadata.annotations.get(BETA_STORAGE_CLASS, self.spec.storage_class_name or "")

    @property
    def bound(self) -> bool:
        """Whether binding is complete; a claim that only names a volume still waits for its controller."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def selected_node(self) -> str | None:
        """The node that the volume is being made for, if one was chosen."""
        return self.metadata.annotations.get(SELECTED_NODE)

    @property
    def size(self) -> int | None:
        """The amount asked for, in nanobytes, if the claim says."""
        return self.spec.resources.requests.get(STORAGE) if self.spec.resources else None


@kube
class TopologySelectorRequirement:
    """A label key and the values a provisioner may use."""

    key: Name
    values: Names = ()


@kube
class TopologySelectorTerm:
    """An AND of requirements on the labels of the node a volume is provisioned for."""

    match_label_expressions: Many[TopologySelectorRequirement] = ()

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether a node with these labels may have the volume; a term without requirements admits none."""
        return bool(self.match_label_expressions) and all(
            labels.get(r.key) in r.values for r in self.match_label_expressions
        )


@kube
class StorageClass:
    """How volumes of a class are made, and when they are bound."""

    metadata: ObjectMeta
    provisioner: Name = ""
    volume_binding_mode: Name | None = None
    allowed_topologies: Many[TopologySelectorTerm] = ()

    @property
    def waits_for_consumer(self) -> bool:
        """Whether binding waits until a pod that uses the claim is scheduled."""
        return self.volume_binding_mode == "WaitForFirstConsumer"


@kube
class VolumeCount:
    """How many volumes of a driver a node can attach; ``None`` means no limit."""

    count: int | None = None


@kube
class CSINodeDriver:
    """A CSI driver on a node."""

    name: Name
    allocatable: VolumeCount | None = None


@kube
class CSINodeSpec:
    """The drivers of a node."""

    drivers: Many[CSINodeDriver] = ()


@kube
class CSINode:
    """What a node's CSI drivers can attach; named as the node."""

    metadata: ObjectMeta
    spec: CSINodeSpec | None = None

    def limits(self) -> dict[str, int]:
        """The attach limit of each driver that states one."""
        return {
            driver.name: driver.allocatable.count
            for driver in (self.spec.drivers if self.spec else ())
            if driver.allocatable is not None and driver.allocatable.count is not None
        }

    @property
    def migrated_plugins(self) -> frozenset[str]:
        """In-tree volume plugins whose volumes the node's CSI drivers have taken over."""
        return frozenset(filter(None, self.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")))


@kube
class AttachedVolume:
    """What is attached; only persistent volumes have a name here."""

    persistent_volume_name: Name | None = None


@kube
class VolumeAttachmentSpec:
    """The part of an attachment's ``spec`` that placement reads."""

    attacher: Name = ""
    node_name: Name = ""
    source: AttachedVolume | None = None


@kube
class VolumeAttachment:
    """A volume that a CSI driver has attached to a node, whether or not a pod there still uses it."""

    metadata: ObjectMeta
    spec: VolumeAttachmentSpec


@kube
class CSIDriverSpec:
    """The part of a driver's ``spec`` that placement reads."""

    storage_capacity: bool | None = None


@kube
class CSIDriver:
    """A CSI driver of the cluster; some say where how much storage is left."""

    metadata: ObjectMeta
    spec: CSIDriverSpec | None = None

    @property
    def tells_capacity(self) -> bool:
        """Whether `CSIStorageCapacity` objects decide where the driver can make a volume."""
        return bool(self.spec and self.spec.storage_capacity)


@kube
class CSIStorageCapacity:
    """How much storage of a class is left for some of the nodes."""

    metadata: ObjectMeta
    storage_class_name: Name = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None

    @property
    def largest(self) -> int | None:
        """The largest volume that can be made, in nanobytes, if the driver says."""
        return self.capacity if self.maximum_volume_size is None else self.maximum_volume_size
