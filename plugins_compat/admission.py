"""The final-state judge: would the real filters admit every pod where it stands?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.status import Code, Status


@dataclass(frozen=True, slots=True)
class Rejection:
    """A pod that the filters would not admit where it stands."""

    pod: Pod
    node: str
    status: Status

    def __str__(self) -> str:
        return f"{self.pod.key} on {self.node}: {self.status.plugin}: {', '.join(self.status.reasons)}"


def populated(
    snapshot: Snapshot, profile: Profile, where: Mapping[str, str], signatures: Signatures | None = None, seed: int = 0
) -> Framework:
    """Return a framework on the cluster with pods where ``where`` puts them.

    Parameters
    ----------
    where
        Node name by pod key. A pod that is not named is nowhere; finished pods never count.
    """
    state = ClusterState(snapshot, profile.release, signatures)
    for pod, node in standing(snapshot, where):
        state.put(pod, node)
    return Framework(profile, state, seed)


def standing(snapshot: Snapshot, where: Mapping[str, str]) -> Iterable[tuple[Pod, int]]:
    """Iterate over the unfinished pods that have a node, with the node's index."""
    for pod in snapshot.pods:
        if not pod.finished and (node := where.get(pod.key)):
            yield pod, snapshot.node_index[node]


def rejections(framework: Framework, where: Mapping[str, str]) -> list[Rejection]:
    """Take every pod off, offer it to its node again, and return those that the filters refuse.

    Parameters
    ----------
    framework
        On the cluster as `populated` returns it; it is left as it was.
    """
    state = framework.state
    judged: dict[tuple[int, int], Status | None] = {}
    refused: list[Rejection] = []
    for pod, node in standing(state.snapshot, where):
        signature = state.signatures.of(pod)
        key = (signature.index, node)
        if key not in judged:
            judged[key] = _judge(framework, pod, node)
        status = judged[key]
        if status is not None:
            refused.append(Rejection(pod, state.nodes[node].name, status))
    return refused


def _judge(framework: Framework, pod: Pod, node: int) -> Status | None:
    cycle = framework.cycle(pod)
    framework.state.forget(cycle.signature, node)
    try:
        diagnosis = framework.run_filters(cycle, np.array([node]))
        if diagnosis.rejected is not None:
            return diagnosis.rejected
        return None if diagnosis.codes[0] == Code.SUCCESS else diagnosis.why(0)
    finally:
        framework.state.assume(cycle.signature, node)
