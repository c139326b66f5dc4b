"""What is read of a live cluster between two steps: as little as the steps need."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec

from stowplan.cluster.kubectl import Kubectl
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.kubernetes.meta import TEMPLATE_LABELS
from stowplan.models.snapshot import Snapshot

T = TypeVar("T")


class _Part(msgspec.Struct, rename="camel"):
    """A part of an object; fields that are not named here pass."""


class ObservedOwner(_Part):
    """Who owns an object."""

    uid: str = ""
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class ObservedMetadata(_Part):
    """Names, and who made the object."""

    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: tuple[ObservedOwner, ...] | None = None
    deletion_timestamp: str | None = None


class ObservedCondition(_Part):
    """One entry of ``status.conditions``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ObservedSpec(_Part):
    """Node of a pod; whether a node is cordoned; number of replicas that a controller wants."""

    node_name: str = ""
    unschedulable: bool | None = None
    replicas: int | None = None


class ObservedWaiting(_Part):
    """Why a container waits, such as ``ImagePullBackOff``."""

    reason: str = ""
    message: str = ""


class ObservedContainerState(_Part):
    """State of a container."""

    waiting: ObservedWaiting | None = None


class ObservedContainer(_Part):
    """How a container fares."""

    name: str = ""
    state: ObservedContainerState = msgspec.field(default_factory=ObservedContainerState)


class ObservedStatus(_Part):
    """How an object fares."""

    phase: str = ""
    container_statuses: tuple[ObservedContainer, ...] | None = None
    conditions: tuple[ObservedCondition, ...] | None = None
    observed_generation: int = 0


class ObservedObject(_Part):
    """A pod, a node, a budget or a controller, as it was seen."""

    metadata: ObservedMetadata
    kind: str = ""
    spec: ObservedSpec = msgspec.field(default_factory=ObservedSpec)
    status: ObservedStatus = msgspec.field(default_factory=ObservedStatus)

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def uid(self) -> str:
        """The object's uid."""
        return self.metadata.uid

    @property
    def node(self) -> str:
        """The node of a pod; empty while it has none."""
        return self.spec.node_name

    @property
    def leaving(self) -> bool:
        """Whether the object is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def finished(self) -> bool:
        """Whether a pod is over."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def ready(self) -> bool:
        """Whether the condition ``Ready`` holds."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions or ())

    @property
    def controller(self) -> ObservedOwner:
        """The controller; without a name if there is none."""
        return next((o for o in self.metadata.owner_references or () if o.controller), ObservedOwner())

    @property
    def owner(self) -> str:
        """The uid of the controller; empty if there is none."""
        return self.controller.uid

    @property
    def template(self) -> str:
        """The hash of the template that a pod was made from; empty if it carries none."""
        labels = self.metadata.labels or {}
        return next((labels[key] for key in TEMPLATE_LABELS if key in labels), "")

    @property
    def waits_for(self) -> str:
        """Why a pod is unscheduled: the scheduler's message."""
        return next((c.message or c.reason for c in self.status.conditions or () if c.type == "PodScheduled"), "")

    @property
    def unready_because(self) -> str:
        """Why a bound pod is not ready: what a container waits for, or what the condition ``Ready`` says."""
        for container in self.status.container_statuses or ():
            if (waiting := container.state.waiting) is not None and waiting.reason:
                return f"container {container.name}: {waiting.reason}" + (
                    f": {waiting.message}" if waiting.message else ""
                )
        return next((c.message or c.reason for c in self.status.conditions or () if c.type == "Ready"), "")


class _List(_Part):
    items: tuple[ObservedObject, ...]


_list = msgspec.json.Decoder(_List)
_one = msgspec.json.Decoder(ObservedObject)


class PodIdentity(NamedTuple):
    """Of a pod that was seen, what tells it from others, and its node, empty if it has none.

    Parameters
    ----------
    owner, template
        Uid of its controller and hash of its template; empty if it has none.
    """

    uid: str
    node: str
    owner: str = ""
    template: str = ""

    @classmethod
    def of(cls, pod: Pod) -> PodIdentity:
        """Return what tells a pod of a snapshot from others."""
        controller = pod.metadata.controller
        return cls(pod.metadata.uid, pod.node_name, controller.uid if controller else "", pod.template_hash)


class ClusterView:
    """Pods, nodes and budgets by name, as one look at the cluster showed them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.pods = {pod.key: pod for pod in snapshot.pods}
        self.nodes = {node.name: node for node in snapshot.nodes}
        self.budgets = {f"{b.metadata.namespace}/{b.metadata.name}": b for b in snapshot.pod_disruption_budgets}

    @property
    def identities(self) -> dict[str, PodIdentity]:
        """Uid and node of each pod that is not finished, by key."""
        return {pod.key: PodIdentity.of(pod) for pod in self.pods.values() if not pod.finished}

    def of_owner(self, uid: str) -> list[Pod]:
        """Return the pods of a controller."""
        return [pod for pod in self.pods.values() if (owner := pod.metadata.controller) and owner.uid == uid]


def seen_pods(data: bytes) -> list[ObservedObject]:
    """Return the pods of a ``List``."""
    return list(_decode(_list, data).items)


def look_at_pod(kubectl: Kubectl, namespace: str, name: str) -> ObservedObject | None:
    """Return a pod as it is now, or ``None`` if there is none of the name."""
    data = kubectl.find("pod", name, namespace)
    return None if data is None else _decode(_one, data)


def look_at(kubectl: Kubectl, kind: str, name: str, namespace: str | None = None) -> ObservedObject | None:
    """Return an object as it is now, or ``None`` if there is none of the name."""
    data = kubectl.find(kind, name, namespace)
    return None if data is None else _decode(_one, data)


def _decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except msgspec.DecodeError as error:
        raise InputError(f"is not what a cluster prints: {error}", "kubectl get") from None
