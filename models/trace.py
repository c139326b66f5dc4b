"""Recorded scheduler decisions: a case, what was decided, and where the record was read.

A trace is a file with one recorded case a line; ``docs/formats.md`` describes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

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
    PriorityClass,
    ReplicationController,
    Service,
    StorageClass,
    VolumeAttachment,
    Workload,
)
from stowplan.models.snapshot import Snapshot

Mode = Literal["independent", "sequence", "preempt"]
"""Each pod against the same state; placed pods stay; and PostFilter runs where no node is feasible."""

OBJECTS: dict[str, tuple[str, type[Any]]] = {
    "nodes": ("nodes", Node),
    "pods": ("pods", Pod),
    "namespaces": ("namespaces", Namespace),
    "services": ("services", Service),
    "replicaSets": ("replica_sets", Workload),
    "statefulSets": ("stateful_sets", Workload),
    "replicationControllers": ("replication_controllers", ReplicationController),
    "persistentVolumes": ("persistent_volumes", PersistentVolume),
    "persistentVolumeClaims": ("persistent_volume_claims", PersistentVolumeClaim),
    "storageClasses": ("storage_classes", StorageClass),
    "csiNodes": ("csi_nodes", CSINode),
    "csiDrivers": ("csi_drivers", CSIDriver),
    "csiStorageCapacities": ("csi_storage_capacities", CSIStorageCapacity),
    "volumeAttachments": ("volume_attachments", VolumeAttachment),
    "podDisruptionBudgets": ("pod_disruption_budgets", PodDisruptionBudget),
    "priorityClasses": ("priority_classes", PriorityClass),
}
"""The lists of API objects in a case, with the field of `Snapshot` that each becomes."""


class _Record(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid", frozen=True
    )


class StatusRecord(_Record):
    """A plugin's refusal. The order of reasons is not defined, as upstream walks a hash map."""

    plugin: str = ""
    code: str
    reasons: tuple[str, ...] | None = None

    def same_as(self, other: StatusRecord | None) -> bool:
        """Whether both refuse alike."""
        return (
            other is not None
            and (self.plugin, self.code) == (other.plugin, other.code)
            and sorted(self.reasons or ()) == sorted(other.reasons or ())
        )

    def __str__(self) -> str:
        return f"{self.plugin} {self.code} ({'; '.join(sorted(self.reasons or ()))})"


class Expectation(_Record):
    """What was decided about one pending pod.

    Parameters
    ----------
    pre_filter
        The refusal of the pod for the whole cluster; then nothing else is recorded.
    filter
        The refusal of each node that failed, by the first plugin that refused.
    feasible
        The other nodes, in node order.
    scores
        Weighted, normalized score by plugin and node.
    total
        Their sum by node.
    chosen
        The node with the highest total, the first of several.
    nominated, victims
        Where preemption would make room, and the pods it would evict, sorted.
    """

    pod: str
    pre_filter: StatusRecord | None = None
    filter: dict[str, StatusRecord] | None = None
    feasible: tuple[str, ...] | None = None
    scores: dict[str, dict[str, int]] | None = None
    total: dict[str, int] | None = None
    chosen: str | None = None
    nominated: str | None = None
    victims: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Case:
    """A cluster, the pods to decide about, and how.

    Parameters
    ----------
    config
        A parsed ``KubeSchedulerConfiguration``, or ``None`` for the release's default profile.
    objects
        The API objects as manifests, by list of a trace line, ``pending`` included.
    metrics
        The measured load as a load-watcher document, for load-aware plugins.
    """

    id: str
    mode: Mode
    snapshot: Snapshot
    pending: tuple[Pod, ...]
    config: dict[str, Any] | None
    objects: dict[str, list[dict[str, Any]]]
    metrics: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Trace:
    """One recorded case.

    Parameters
    ----------
    release
        Which kube-scheduler decided.
    source
        File and line.
    """

    release: str
    case: Case
    expect: tuple[Expectation, ...]
    source: str
