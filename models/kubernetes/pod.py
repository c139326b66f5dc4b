"""Pods: everything kube-scheduler reads of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from stowplan.models.kubernetes.base import EMPTY, Many, Name, Names, ResourceList, StringMap, kube
from stowplan.models.kubernetes.meta import ObjectMeta
from stowplan.models.kubernetes.selectors import LabelSelector, NodeSelector, NodeSelectorTerm
from stowplan.models.kubernetes.taints import Toleration

GRACE = 30
"""Seconds that a pod may take to end if it does not say how many."""


@kube
class ContainerPort:
    """A port; only those with a positive ``host_port`` occupy something on the node."""

    container_port: int = 0
    host_port: int | None = None
    host_ip: Annotated[Name | None, Field(alias="hostIP")] = None
    protocol: Name = "TCP"


@kube
class ResourceRequirements:
    """Requests and limits, in nanos by resource name."""

    requests: ResourceList = EMPTY
    limits: ResourceList = EMPTY


@kube
class ContainerRestartRule:
    """What the kubelet does when a container exits in a certain way; only the action is read."""

    action: Name = ""


@kube
class Container:
    """A container or init container; ``restart_policy == "Always"`` makes an init container a sidecar."""

    name: Name = ""
    image: Name = ""
    resources: ResourceRequirements | None = None
    ports: Many[ContainerPort] = ()
    restart_policy: Name | None = None
    restart_policy_rules: Many[ContainerRestartRule] = ()

    @property
    def requests(self) -> ResourceList:
        """Requests in nanos by resource name."""
        return self.resources.requests if self.resources else EMPTY

    @property
    def limits(self) -> ResourceList:
        """Limits in nanos by resource name."""
        return self.resources.limits if self.resources else EMPTY


@kube
class PodAffinityTerm:
    """Company sought or shunned: pods matching a selector, in a topology domain."""

    topology_key: Name
    label_selector: LabelSelector | None = None
    namespaces: Names = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: Names = ()
    mismatch_label_keys: Names = ()


@kube
class WeightedPodAffinityTerm:
    """A preferred `PodAffinityTerm`; weights are 1 to 100."""

    weight: int
    pod_affinity_term: PodAffinityTerm


@kube
class PodAffinity:
    """Required and preferred terms, for affinity and for anti-affinity alike."""

    required: Annotated[Many[PodAffinityTerm], Field(alias="requiredDuringSchedulingIgnoredDuringExecution")] = ()
    preferred: Annotated[
        Many[WeightedPodAffinityTerm], Field(alias="preferredDuringSchedulingIgnoredDuringExecution")
    ] = ()


@kube
class PreferredSchedulingTerm:
    """A preferred node selector term."""

    weight: int
    preference: NodeSelectorTerm


@kube
class NodeAffinity:
    """Required and preferred properties of the node."""

    required: Annotated[NodeSelector | None, Field(alias="requiredDuringSchedulingIgnoredDuringExecution")] = None
    preferred: Annotated[
        Many[PreferredSchedulingTerm], Field(alias="preferredDuringSchedulingIgnoredDuringExecution")
    ] = ()


@kube
class Affinity:
    """The three affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


@kube
class TopologySpreadConstraint:
    """How unevenly matching pods may be spread over the domains of a topology key."""

    max_skew: int
    topology_key: Name
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: Names = ()


@kube
class ClaimSource:
    """A volume that is a PersistentVolumeClaim."""

    claim_name: Name
    read_only: bool = False


@kube
class GCEPersistentDisk:
    """An inline GCE disk."""

    pd_name: Name
    read_only: bool = False


@kube
class AWSElasticBlockStore:
    """An inline EBS volume."""

    volume_id: Annotated[Name, Field(alias="volumeID")]
    read_only: bool = False


@kube
class AzureDisk:
    """An inline Azure disk."""

    disk_name: Name = ""
    disk_uri: Annotated[Name, Field(alias="diskURI")] = ""


@kube
class Cinder:
    """An inline OpenStack volume."""

    volume_id: Annotated[Name, Field(alias="volumeID")]


@kube
class ISCSI:
    """An inline iSCSI volume."""

    iqn: Name
    read_only: bool = False


@kube
class RBD:
    """An inline Ceph RBD volume."""

    monitors: Names = ()
    image: Name = ""
    pool: Name = "rbd"
    read_only: bool = False


@kube
class AnySource:
    """A volume source of which only the presence matters."""


@kube
class EmptyDir:
    """Scratch space that ends with the pod; in memory if ``medium`` is ``Memory``."""

    medium: Name = ""


@kube
class HostPath:
    """A directory or file of the node.

    ``read_only`` is no field of the API: `PodSpec` works it out from the containers' mounts, which are not kept, since
    the names of token volumes make the mounts of every pod differ.
    """

    read_only: Annotated[bool, Field(exclude=True)] = False


@kube
class ImageSource:
    """The contents of an image as a volume."""

    reference: Name = ""


@kube
class Volume:
    """A volume of a pod; sources that say nothing about placement are not kept."""

    name: Name = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: AnySource | None = None
    empty_dir: EmptyDir | None = None
    host_path: HostPath | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    image: ImageSource | None = None


@kube
class NamedReference:
    """Something of which only the name is read, such as a scheduling gate or a resource claim."""

    name: Name = ""


@kube
class PodSpec:
    """The part of a pod's ``spec`` that placement and plans read.

    ``missing_volumes`` is no field of the API: containers mount volumes that the pod does not have, which no API server
    accepts, so the volumes were left out.
    """

    containers: Many[Container] = ()
    init_containers: Many[Container] = ()
    node_name: Name | None = None
    scheduler_name: Name = "default-scheduler"
    node_selector: StringMap = EMPTY
    affinity: Affinity | None = None
    tolerations: Many[Toleration] = ()
    topology_spread_constraints: Many[TopologySpreadConstraint] = ()
    volumes: Many[Volume] = ()
    priority: int | None = None
    priority_class_name: Name | None = None
    preemption_policy: Name | None = None
    overhead: ResourceList = EMPTY
    resources: ResourceRequirements | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    scheduling_gates: Many[NamedReference] = ()
    resource_claims: Many[NamedReference] = ()
    termination_grace_period_seconds: int | None = None
    missing_volumes: Annotated[bool, Field(exclude=True)] = False

    @model_validator(mode="before")
    @classmethod
    def _read_mounts(cls, data: Any) -> Any:
        """Mark the host paths that every mount reads only, and pods without the volumes that they mount."""
        if not isinstance(data, dict):
            return data
        volumes = data.get("volumes")
        if not isinstance(volumes, list):
            return {**data, "missingVolumes": True} if any(_mounts(data)) else data
        names = {volume.get("name") for volume in volumes if isinstance(volume, dict)}
        if any(mount.get("name") not in names for mount in _mounts(data)):
            data = {**data, "missingVolumes": True}
        if not any(isinstance(volume, dict) and isinstance(volume.get("hostPath"), dict) for volume in volumes):
            return data
        read_only = _mounted_read_only(data)
        marked = [
            {**volume, "hostPath": {**volume["hostPath"], "readOnly": True}}
            if isinstance(volume, dict) and isinstance(volume.get("hostPath"), dict) and volume.get("name") in read_only
            else volume
            for volume in volumes
        ]
        return {**data, "volumes": marked}


def _mounted_read_only(spec: dict[str, Any]) -> set[str]:
    """Return the names of the volumes that are mounted, and nowhere for writing."""
    written: dict[str, bool] = {}
    for mount in _mounts(spec):
        if isinstance(name := mount.get("name"), str):
            written[name] = written.get(name, False) or mount.get("readOnly") is not True
    return {name for name, writes in written.items() if not writes}


def _mounts(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the volume mounts of all containers."""
    for key in ("containers", "initContainers", "ephemeralContainers"):
        containers = spec.get(key)
        for container in containers if isinstance(containers, list) else ():
            mounts = container.get("volumeMounts") if isinstance(container, dict) else None
            for mount in mounts if isinstance(mounts, list) else ():
                if isinstance(mount, dict):
                    yield mount


@kube
class PodCondition:
    """One entry of ``status.conditions``."""

    type: Name
    status: Name = ""
    reason: Name | None = None


@kube
class ContainerStatus:
    """What a container runs with: ``resources`` as actuated, ``allocated_resources`` as the kubelet admitted them."""

    name: Name = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = EMPTY


@kube
class PodStatus:
    """The part of a pod's ``status`` that placement reads."""

    phase: Name = ""
    qos_class: Name = ""
    host_ip: Annotated[Name, Field(alias="hostIP")] = ""
    start_time: Name | None = None
    nominated_node_name: Name | None = None
    conditions: Many[PodCondition] = ()
    container_statuses: Many[ContainerStatus] = ()
    init_container_statuses: Many[ContainerStatus] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = EMPTY


@kube
class Pod:
    """A pod, bound to a node or waiting for one."""

    metadata: ObjectMeta
    spec: PodSpec
    status: PodStatus | None = None

    @property
    def name(self) -> str:
        """The pod's name inside its namespace."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The pod's namespace; what has none is in ``default``, as kubectl has it."""
        return self.metadata.namespace or "default"

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.metadata.name}"

    @property
    def priority(self) -> int:
        """The pod's priority; unset counts as 0."""
        return self.spec.priority or 0

    @property
    def phase(self) -> str:
        """The pod's phase; empty if it has no status."""
        return self.status.phase if self.status else ""

    @property
    def node_name(self) -> str:
        """The node the pod is bound to; empty while it waits for one."""
        return self.spec.node_name or ""

    @property
    def grace(self) -> int:
        """Seconds that the pod may take to end once it is deleted."""
        seconds = self.spec.termination_grace_period_seconds
        return GRACE if seconds is None else max(1, seconds)

    @property
    def finished(self) -> bool:
        """Whether the pod is over and holds nothing on its node any more."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def ready(self) -> bool:
        """Whether the pod's condition ``Ready`` is ``True``."""
        conditions = self.status.conditions if self.status else ()
        return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)

    @property
    def unready(self) -> str | None:
        """Why the pod's condition ``Ready`` is not ``True``, maybe in no words; ``None`` if it is, or is not given."""
        conditions = self.status.conditions if self.status else ()
        found = (c.reason or "" for c in conditions if c.type == "Ready" and c.status != "True")
        return next(found, None)

    @property
    def terminating(self) -> bool:
        """Whether the pod's deletion has been asked for."""
        return self.metadata.deletion_timestamp is not None

    @property
    def per_node(self) -> bool:
        """Whether the pod comes and goes with its node, as those of a DaemonSet and static pods do.

        Such a pod does not keep a node in use, and belongs to no workload that could be spread.
        """
        controller = self.metadata.controller
        return controller is not None and controller.kind in ("DaemonSet", "Node")

    @property
    def template_hash(self) -> str:
        """What tells the template the pod was made from; empty if nothing does."""
        return self.metadata.template_hash

    @property
    def gated(self) -> bool:
        """Whether a scheduling gate keeps the pod out of the scheduler's queue."""
        return bool(self.spec.scheduling_gates) and not self.node_name
