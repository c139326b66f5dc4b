"""What a pod's controller does: how many replicas it is to have, and how it names replacements."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.plans.disruption import GROUPS

SMALL, MEDIUM = 4, 10
"""Workloads below, and up to, this many replicas have a fixed number that may migrate at once."""


class Workloads:
    """Replicas wanted, by controller, as koordinator's descheduler finds out.

    It asks for the ReplicaSet, StatefulSet or ReplicationController, and finds 0 replicas where there is
    none. A snapshot without any object of the kind says nothing about it; then, as for controllers of other kinds,
    the pods that name the controller are counted. Jobs have no replicas at all.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._wanted: dict[tuple[str, str, str], int] = {}
        self._listed: set[str] = set()
        for kind, owners in (
            ("ReplicaSet", snapshot.replica_sets),
            ("StatefulSet", snapshot.stateful_sets),
            ("ReplicationController", snapshot.replication_controllers),
        ):
            if owners:
                self._listed.add(kind)
            for owner in owners:
                replicas = owner.spec.replicas if owner.spec else None
                self._wanted[kind, owner.metadata.namespace or "default", owner.metadata.name] = (
                    1 if replicas is None else replicas
                )
        self._seen = Counter(_controller(pod) for pod in snapshot.pods if not pod.finished)

    def replicas(self, pod: Pod) -> int:
        """Return how many replicas the controller of a pod is to have."""
        key = _controller(pod)
        if key is None or key[0] == "Job":
            return 0
        if key[0] in self._listed:
            return self._wanted.get(key, 0)
        return self._seen[key]


class HasKind(Protocol):
    """A reference to a controller, as pods and plans have it."""

    @property
    def kind(self) -> str:
        """The kind of the controller."""


class HasGroup(HasKind, Protocol):
    """A reference to a controller with the version of its API."""

    @property
    def api_version(self) -> str:
        """``group/version``, or ``v1`` for the core group; empty if it is not said."""


def replicates(controller: HasGroup) -> bool:
    """Whether a controller is one of Kubernetes' own that replaces a pod once it is gone.

    Kinds of the same name in other groups, such as Kruise's StatefulSet, are not; no group at all is not held against
    one.
    """
    group, slash, _ = controller.api_version.partition("/")
    groups = GROUPS.get(controller.kind, ())
    return bool(groups) and (not controller.api_version or (group if slash else "") in groups)


def keeps_name(controller: HasKind | None) -> bool:
    """Whether replacements have the names of the pods they replace: a StatefulSet makes them once those are gone."""
    return controller is not None and controller.kind == "StatefulSet"


def may_migrate(replicas: int) -> int:
    """Return how many replicas koordinator migrates at once, and lets be unavailable, by default."""
    if replicas > MEDIUM:
        return replicas // 10
    return min(replicas, 2 if replicas >= SMALL else 1)


def _controller(pod: Pod) -> tuple[str, str, str] | None:
    controller = pod.metadata.controller
    return None if controller is None else (controller.kind, pod.namespace, controller.name)
