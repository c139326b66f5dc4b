"""Limits on the moves of some pods: which pods they are about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stowplan.models.kubernetes import Pod
from stowplan.models.move_limits import read_group
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.compiler.compile import GroupLimit
from stowplan.settings.pod_groups import membership, owners_of


def group_limits(snapshot: Snapshot, words: Sequence[str]) -> list[GroupLimit]:
    """Return limits on the moves of some pods.

    Parameters
    ----------
    words
        As `Settings.max_moves_of` has them.
    """
    owners = owners_of(snapshot)
    return [
        GroupLimit(group.pods.name, membership(group.pods, owners), group.limit) for group in map(read_group, words)
    ]


def idle_limits(limits: Iterable[GroupLimit], pods: Sequence[Pod]) -> list[str]:
    """Return a note for each limit that concerns none of the pods that may move."""
    return [
        f"--max-moves {limit.name}:{limit.limit} limits nothing: none of its pods may move"
        for limit in limits
        if not any(limit.holds(pod) for pod in pods if pod.node_name)
    ]
