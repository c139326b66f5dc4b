"""Limits on the moves of some pods: which pods they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from stowplan.models.kubernetes import Pod
from stowplan.models.move_limits import LimitedGroup, read_group
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.compiler.compile import GroupLimit

TEMPLATE_HASH = "pod-template-hash"


def group_limits(snapshot: Snapshot, words: Sequence[str]) -> list[GroupLimit]:
    """Return limits on the moves of some pods.

    Parameters
    ----------
    words
        As `Settings.max_moves_of` has them.
    """
    owners = _owners(snapshot)
    return [GroupLimit(group.name, _membership(group, owners), group.limit) for group in map(read_group, words)]


def idle_limits(limits: Iterable[GroupLimit], pods: Sequence[Pod]) -> list[str]:
    """Return a note for each limit that concerns none of the pods that may move."""
    return [
        f"--max-moves {limit.name}:{limit.limit} limits nothing: none of its pods may move"
        for limit in limits
        if not any(limit.holds(pod) for pod in pods if pod.node_name)
    ]


def _owners(snapshot: Snapshot) -> Mapping[tuple[str, str], str]:
    """Return the controller of each ReplicaSet, by namespace and name."""
    return {
        (owned.metadata.namespace, owned.metadata.name): owned.metadata.controller.name
        for owned in snapshot.replica_sets
        if owned.metadata.controller is not None
    }


def _membership(group: LimitedGroup, owners: Mapping[tuple[str, str], str]) -> Callable[[Pod], bool]:
    if group.namespace is not None:
        return lambda pod: pod.namespace == group.namespace
    if group.selector is not None:
        selector = group.selector
        return lambda pod: selector.matches(pod.metadata.labels)
    return lambda pod: any((pod.namespace, name) == group.workload for name in _workloads(pod, owners))


def _workloads(pod: Pod, owners: Mapping[tuple[str, str], str]) -> set[str]:
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
