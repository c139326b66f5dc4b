"""Exact arithmetic of the disruption controller (``pkg/controller/disruption/disruption.go``)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from stowplan.models.kubernetes import OwnerReference, Pod, PodDisruptionBudget, Workload
from stowplan.models.moments import parse_time
from stowplan.models.snapshot import Snapshot

DELETION_TIMEOUT = timedelta(minutes=2)
"""How long an eviction that was granted counts before the pod's deletion is seen."""

_PERCENT = re.compile(r"[+-]?\d+%", re.ASCII)
GROUPS = {"ReplicationController": ("",), "ReplicaSet": ("apps", "extensions"), "StatefulSet": ("apps",)}
"""Kinds whose controllers make a pod again once one is gone, with their API groups."""
_WITHOUT_SCALE = {"Job", "DaemonSet", "Node", "CronJob"}


class SyncFailed(Exception):
    """The controller's sync ends in an error, and the budget allows nothing."""


class NotInSnapshot(Exception):
    """The snapshot lacks an object that the controller would read."""


def expected_pods(source: PodDisruptionBudget, pods: Sequence[Pod], scales: Scales) -> tuple[int, int]:
    """Return ``getExpectedPodCount``: how many pods there should be, and how many of them healthy.

    Both percentages round up: of 7 pods, 50 % available are 4, and 30 % unavailable are 3.
    """
    spec = source.spec
    if spec is None:
        return 0, 0
    if spec.max_unavailable is not None:
        expected = scales.total(pods)
        return expected, max(0, expected - _scaled(spec.max_unavailable, expected))
    if isinstance(spec.min_available, int):
        return len(pods), spec.min_available
    if spec.min_available is not None:
        expected = scales.total(pods)
        return expected, _scaled(spec.min_available, expected)
    return 0, 0


def _scaled(amount: int | str, total: int) -> int:
    """Return ``GetScaledValueFromIntOrPercent``, rounding up."""
    if isinstance(amount, int):
        return amount
    if not _PERCENT.fullmatch(amount):
        raise SyncFailed(f"{amount!r} is neither a number nor a percentage")
    return math.ceil(int(amount[:-1]) * total / 100)


class Scales:
    """Replicas that controllers want (``getExpectedScale`` and its finders)."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._owners = {
            kind: {((o.metadata.namespace or "default"), o.metadata.name): o for o in owners}
            for kind, owners in (
                ("ReplicationController", snapshot.replication_controllers),
                ("ReplicaSet", snapshot.replica_sets),
                ("StatefulSet", snapshot.stateful_sets),
                ("Deployment", snapshot.deployments),
            )
        }

    def total(self, pods: Iterable[Pod]) -> int:
        """Add up the scales of the distinct controllers of some pods; pods without one count for nothing.

        Raises
        ------
        SyncFailed
            If a controller has no scale.
        NotInSnapshot
            If the snapshot does not tell.
        """
        found: dict[tuple[str, str, str], int] = {}
        asked: set[tuple[str, str, str, str]] = set()
        for pod in pods:
            controller = pod.metadata.controller
            if controller is None:
                continue
            question = (pod.namespace, controller.kind, controller.name, controller.uid)
            if question not in asked:
                asked.add(question)
                identity, scale = self._scale(controller, pod)
                found[identity] = scale
        return sum(found.values())

    def _scale(self, controller: OwnerReference, pod: Pod) -> tuple[tuple[str, str, str], int]:
        kind, group = controller.kind, controller.api_version.rpartition("/")[0]
        if kind not in GROUPS or (controller.api_version and group not in GROUPS[kind]):
            if kind in _WITHOUT_SCALE:
                raise SyncFailed(f"{kind} {controller.name} has no scale")
            raise NotInSnapshot(f"the scale of {kind} {controller.name} is not in the snapshot")
        owner = self._owners[kind].get((pod.namespace, controller.name))
        if owner is None or owner.metadata.uid != controller.uid:
            if self._owners[kind]:
                raise SyncFailed(f"Pod {pod.name} names a {kind} that is not there, {controller.name}")
            raise NotInSnapshot(f"the snapshot has no {kind}s")
        chief = owner.metadata.controller
        if kind == "ReplicaSet" and chief is not None and chief.kind == "Deployment":
            owner = self._deployment(pod, chief)
            kind = "Deployment"
        replicas = owner.spec.replicas if owner.spec and owner.spec.replicas is not None else 1
        return (kind, pod.namespace, owner.metadata.name), replicas

    def _deployment(self, pod: Pod, chief: OwnerReference) -> Workload:
        found = self._owners["Deployment"].get((pod.namespace, chief.name))
        if isinstance(found, Workload) and found.metadata.uid == chief.uid:
            return found
        if self._owners["Deployment"]:
            raise SyncFailed(f"the ReplicaSet of Pod {pod.name} names a Deployment that is not there, {chief.name}")
        raise NotInSnapshot("the snapshot has no Deployments")


def under_way(source: PodDisruptionBudget, pods: Iterable[Pod], now: datetime) -> set[str]:
    """Return ``buildDisruptedPodMap``: pods whose eviction was granted and is not seen yet."""
    stated: Mapping[str, str] = source.status.disrupted_pods if source.status else {}
    found = set()
    for pod in pods:
        since = parse_time(stated[pod.name]) if pod.name in stated and not pod.terminating else None
        if since is not None and since + DELETION_TIMEOUT > now:
            found.add(pod.name)
    return found
