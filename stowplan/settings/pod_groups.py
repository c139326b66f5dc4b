"""Which pods a group holds that a user names: by namespace, workload, or labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stowplan.models.kubernetes import Pod
from stowplan.models.move_limits import PodGroup
from stowplan.models.snapshot import Snapshot

TEMPLATE_HASH = "pod-template-hash"

Owners = Mapping[tuple[str, str], str]
"""The controller of each ReplicaSet, by namespace and name."""


def owners_of(snapshot: Snapshot) -> Owners:
    """Return the controller of each ReplicaSet that has one."""
    return {
        (owned.metadata.namespace, owned.metadata.name): owned.metadata.controller.name
        for owned in snapshot.replica_sets
        if owned.metadata.controller is not None
    }


def membership(group: PodGroup, owners: Owners) -> Callable[[Pod], bool]:
    """Return whether a pod is of a group."""
    if group.namespace is not None:
        return lambda pod: pod.namespace == group.namespace
    if group.selector is not None:
        selector = group.selector
        return lambda pod: selector.matches(pod.metadata.labels)
    if group.pod is not None:
        return lambda pod: (pod.namespace, pod.name) == group.pod
    return lambda pod: any((pod.namespace, name) == group.workload for name in workloads(pod, owners))


def workloads(pod: Pod, owners: Owners) -> set[str]:
    """Return the names of a pod's controller, and of the Deployment behind it.

    Where the ReplicaSet is not in the snapshot, its name tells that of the Deployment.
    """
    controller = pod.metadata.controller
    if controller is None:
        return set()
    names = {controller.name}
    if controller.kind == "ReplicaSet":
        guessed = controller.name.removesuffix("-" + pod.metadata.labels.get(TEMPLATE_HASH, ""))
        names.add(owners.get((pod.namespace, controller.name), guessed))
    return names
