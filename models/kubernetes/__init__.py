"""The Kubernetes objects that placement reads, exactly as far as it reads them."""

from stowplan.models.kubernetes.meta import ObjectMeta, OwnerReference
from stowplan.models.kubernetes.node import Node, NodeSpec, NodeStatus
from stowplan.models.kubernetes.pod import Affinity, Container, Pod, PodSpec, PodStatus, TopologySpreadConstraint
from stowplan.models.kubernetes.selectors import LabelSelector, LabelSelectorRequirement, NodeSelector
from stowplan.models.kubernetes.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from stowplan.models.kubernetes.taints import Taint, Toleration
from stowplan.models.kubernetes.workload import (
    Job,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicationController,
    Service,
    Workload,
)

__all__ = [
    "Affinity",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "Container",
    "Job",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Namespace",
    "Node",
    "NodeSelector",
    "NodeSpec",
    "NodeStatus",
    "ObjectMeta",
    "OwnerReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PodSpec",
    "PodStatus",
    "PriorityClass",
    "ReplicationController",
    "Service",
    "StorageClass",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "VolumeAttachment",
    "Workload",
]
