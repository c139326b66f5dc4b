"""What a move is for, unless it makes room for another: what is wrong with the node that the pod is on."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.assignment import Assignment
from stowplan.models.snapshot import Snapshot, tied
from stowplan.plugins_compat.admission import populated, rejections
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.requests import EPHEMERAL, PODS

CORDONED = "NodeUnschedulable"
"""The plugin that refuses pods on a cordoned node."""


def reasons(
    snapshot: Snapshot,
    profile: Profile,
    signatures: Signatures | None,
    before: Assignment,
    after: Assignment,
) -> dict[str, str]:
    """Return a few words for every pod whose node changes, by pod key.

    In this order: why the filters would not admit it to its node; that its node is emptied; else how full its
    node and its target are before anything moves, in CPU, memory or the extended resource in which they differ most.
    """
    framework = populated(snapshot, profile, before, signatures)
    state = framework.state
    refused = {r.pod.key: r.status.plugin for r in rejections(framework, before)}
    loose = [pod for pod in snapshot.pods if not pod.finished and not tied(pod)]
    kept = {after[pod.key] for pod in loose if pod.key in after}
    share = _shares(state.requested, state.allocatable)
    names = list(state.resources)
    rows = [row for name, row in state.resources.items() if name not in (PODS, EPHEMERAL)]
    index = snapshot.node_index
    found: dict[str, str] = {}
    for pod in loose:
        source, target = before.get(pod.key), after.get(pod.key)
        if source == target:
            continue
        if source is None:
            found[pod.key] = "pending"
        elif target is None:
            found[pod.key] = "preempted for a pod of higher priority, or for more pods of its own"
        elif pod.key in refused:
            drained = refused[pod.key] == CORDONED and source not in kept
            found[pod.key] = "drained" if drained else f"violates {refused[pod.key]} on {source}"
        elif source not in kept:
            found[pod.key] = f"empties {source}"
        else:
            here, there = index[source], index[target]
            row = rows[int(np.abs(share[rows, here] - share[rows, there]).argmax())]
            found[pod.key] = f"{names[row]} {share[row, here]:.0%} on {source}, {share[row, there]:.0%} on {target}"
    return found


def _shares(requested: Ints, allocatable: Ints) -> Floats:
    """``[r, n]`` what is requested of what nodes offer; 0 where they offer nothing."""
    shares: Floats = np.where(allocatable > 0, requested / np.maximum(allocatable, 1), 0.0)
    return shares
