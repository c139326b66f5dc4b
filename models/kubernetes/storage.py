"""Volumes, claims, classes, and what a node can attach."""

from __future__ import annotations

from models.kubernetes.base import EMPTY, Many, Name, Names, ResourceList, kube
from models.kubernetes.meta import ObjectMeta
from models.kubernetes.pod import AWSElasticBlockStore, GCEPersistentDisk, ResourceRequirements
from models.kubernetes.selectors import LabelSelector, NodeSelector

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"


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

    capacity: ResourceList = EMPTY
    access_modes: Names = ()
    claim_ref: ClaimReference | None = None
    storage_class_name: Name = ""
    node_affinity: VolumeNodeAffinity | None = None
    volume_mode: Name | None = None
    csi: CSISource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None


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


@kube
class PersistentVolumeClaimSpec:
    """The part of a claim's ``spec`` that placement reads."""

    volume_name: Name = ""
    storage_class_name: Name | None = None
    access_modes: Names = ()
    volume_mode: Name | None = None
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
        return self.metadata.annotations.get(BETA_STORAGE_CLASS) or self.spec.storage_class_name or ""


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
        """Whether a node with these labels may have the volume."""
        return all(labels.get(r.key) in r.values for r in self.match_label_expressions)


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
