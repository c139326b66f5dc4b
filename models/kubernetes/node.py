"""Nodes: what they offer and what they refuse."""

from __future__ import annotations

from stowplan.models.kubernetes.base import EMPTY, Many, Name, Names, ResourceList, kube
from stowplan.models.kubernetes.meta import ObjectMeta
from stowplan.models.kubernetes.taints import Taint


@kube
class NodeSpec:
    """The part of a node's ``spec`` that placement reads."""

    unschedulable: bool | None = None
    taints: Many[Taint] = ()


@kube
class ContainerImage:
    """An image present on a node, with its size in bytes."""

    names: Names = ()
    size_bytes: int = 0


@kube
class NodeAddress:
    """A name or an IP address under which a node is known."""

    address: Name = ""


@kube
class NodeCondition:
    """One entry of ``status.conditions``."""

    type: Name
    status: Name = ""
    last_heartbeat_time: Name | None = None


@kube
class NodeSystemInfo:
    """The part of ``status.nodeInfo`` that is read: it tells which kube-scheduler fits the cluster."""

    kubelet_version: Name = ""


@kube
class NodeStatus:
    """The part of a node's ``status`` that placement reads; amounts in nanos by resource name."""

    allocatable: ResourceList = EMPTY
    capacity: ResourceList = EMPTY
    addresses: Many[NodeAddress] = ()
    images: Many[ContainerImage] = ()
    conditions: Many[NodeCondition] = ()
    declared_features: Names = ()
    node_info: NodeSystemInfo | None = None


@kube
class Node:
    """A node."""

    metadata: ObjectMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels."""
        return self.metadata.labels

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The node's taints."""
        return self.spec.taints if self.spec else ()

    @property
    def kubelet_version(self) -> str:
        """Version of the node's kubelet, such as ``v1.31.4``; empty if the node does not say."""
        return self.status.node_info.kubelet_version if self.status and self.status.node_info else ""

    @property
    def unschedulable(self) -> bool:
        """Whether the node is cordoned."""
        return bool(self.spec and self.spec.unschedulable)

    @property
    def readiness(self) -> NodeCondition | None:
        """Its condition ``Ready``, or ``None`` if the node does not say whether it is ready."""
        conditions = self.status.conditions if self.status else ()
        return next((condition for condition in conditions if condition.type == "Ready"), None)

    @property
    def not_ready(self) -> bool:
        """Whether the node says of itself that it is not ready; one that says nothing counts as ready."""
        return self.readiness is not None and self.readiness.status != "True"

    @property
    def allocatable(self) -> dict[str, int]:
        """What pods may use, in nanos by resource name."""
        return self.status.allocatable if self.status else EMPTY

    @property
    def capacity(self) -> dict[str, int]:
        """What the machine has, in nanos by resource name."""
        return self.status.capacity if self.status else EMPTY
