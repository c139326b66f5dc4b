"""Checks final states: would the filters of the scheduler admit every pod to its node?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import STATIC, Snapshot, tied
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.status import Code, Status
from stowplan.plugins_compat.screening import Screen


@dataclass(frozen=True, slots=True)
class Rejection:
    """A pod that the filters would not admit to the node that it is on."""

    pod: Pod
    node: str
    status: Status

    def __str__(self) -> str:
        return f"{self.pod.key} on {self.node}: {self.status.plugin}: {', '.join(self.status.reasons)}"


def populated(
    snapshot: Snapshot, profile: Profile, assignment: Assignment, signatures: Signatures | None = None, seed: int = 0
) -> Framework:
    """Return a framework on the cluster with pods on their nodes.

    Parameters
    ----------
    assignment
        Node name by pod key. A pod that is not named is nowhere; finished pods never count.
    """
    state = ClusterState(snapshot, profile.release, signatures)
    for pod, node in standing(snapshot, assignment):
        state.put(pod, node)
    return Framework(profile, state, seed)


def standing(snapshot: Snapshot, assignment: Mapping[str, str]) -> Iterable[tuple[Pod, int]]:
    """Iterate over the unfinished pods that have a node, with the node's index."""
    for pod in snapshot.pods:
        if not pod.finished and (node := assignment.get(pod.key)):
            yield pod, snapshot.node_index[node]


class AdmissionCheck:
    """Asks the filters about assignments of one snapshot, each of them once.

    One framework serves them all: between two assignments only the pods are moved that differ.
    """

    def __init__(self, snapshot: Snapshot, profile: Profile, signatures: Signatures) -> None:
        self._snapshot = snapshot
        self._at = Assignment()
        self._framework = populated(snapshot, profile, self._at, signatures)
        self._screen = Screen(self._framework)
        self._pods = {pod.key: pod for pod in snapshot.pods if not pod.finished}
        self._refused: list[tuple[Assignment, Sequence[Rejection]]] = []

    def framework(self, assignment: Assignment) -> Framework:
        """Return the framework with pods on their nodes, as `populated` does.

        It is the same one each time: it holds until the next call, and is to be left as it is.
        """
        state, index = self._framework.state, self._snapshot.node_index
        moved = [
            (self._pods[key], *nodes) for key, nodes in assignment.moved_from(self._at).items() if key in self._pods
        ]
        for pod, source, _ in moved:
            if source:
                state.take(pod, index[source])
        for pod, _, target in moved:
            if target:
                state.put(pod, index[target])
        self._at = assignment
        return self._framework

    def refused(self, assignment: Assignment) -> Sequence[Rejection]:
        """Return the pods that the filters would not admit to the nodes that they are on, as `rejections` does."""
        known = next((refused for other, refused in self._refused if other == assignment), None)
        if known is None:
            known = rejections(self.framework(assignment), assignment, self._screen)
            self._refused.append((assignment, known))
        return known


def rejections(framework: Framework, assignment: Assignment, screen: Screen | None = None) -> list[Rejection]:
    """Take every pod off, offer it to its node again, and return those that the filters refuse.

    Static pods are left out: the kubelet runs them without asking the scheduler. Pods of one signature on one node are
    checked once. Those that `Screen.surely_admitted` finds need no cycle of their own.

    Parameters
    ----------
    framework
        On the cluster as `populated` returns it; it is left as it was.
    screen
        That of this framework, if other placements were checked with it.
    """
    state = framework.state
    on_node: dict[int, dict[int, Pod]] = defaultdict(dict)  # a pod by signature and node
    pods: list[tuple[Pod, int, int]] = []
    for pod, node in standing(state.snapshot, assignment):
        if tied(pod) == STATIC:
            continue
        signature = state.signatures.of(pod).index
        on_node[signature].setdefault(node, pod)
        pods.append((pod, signature, node))
    judged: dict[tuple[int, int], Status] = {}
    screen = screen or Screen(framework)
    for signature, alike in on_node.items():
        nodes = np.fromiter(alike, dtype=np.int64, count=len(alike))
        admitted = screen.surely_admitted(next(iter(alike.values())), nodes)
        for node in nodes[~admitted].tolist():
            status = status_on(framework, alike[node], node)
            if status is not None:
                judged[signature, node] = status
    return [
        Rejection(pod, state.nodes[node].name, judged[signature, node])
        for pod, signature, node in pods
        if (signature, node) in judged
    ]


def status_on(framework: Framework, pod: Pod, node: int) -> Status | None:
    """Take one pod off its node, and return why the filters would not admit it there again; ``None`` if they would."""
    cycle = CycleState(pod, framework.state.signatures.of(pod))  # as it is on its node, not as it would be created
    framework.state.forget(cycle.signature, node)
    try:
        diagnosis = framework.run_filters(cycle, np.array([node]))
        if diagnosis.rejected is not None:
            return diagnosis.rejected
        return None if diagnosis.codes[0] == Code.SUCCESS else diagnosis.why(0)
    finally:
        framework.state.assume(cycle.signature, node)
