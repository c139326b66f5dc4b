"""A first guess at how to get pods in: clear one node a pod, and let kube-scheduler place what has to leave it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from stowplan.answers.solve import today
from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.plans.movability.costs import move_weight
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.scheduler import examine

TRIED = 60
"""Nodes that are tried for a pod, those with the smallest shortage first."""


def make_room(
    compiled: Compiled, wanted: Sequence[Pod], *, seed: int = 0, stopped: Callable[[], bool] = lambda: False
) -> Assignment:
    """Return the assignment once room was made for as many of the wanted pods as this way finds room for.

    The largest comes first. A node is cleared of the largest pods until the filters admit the wanted one, and of no
    more than that takes; whatever left is placed by kube-scheduler, without preemption. Of the nodes for which all of
    that succeeds, the cheapest is taken. It is a start for the search, and proves nothing.
    """
    node_of = dict(today(compiled))
    framework = populated(compiled.snapshot, compiled.profile, today(compiled), compiled.signatures, seed)
    room = _Room(compiled, framework, node_of, {pod.key for pod in wanted})
    state = framework.state
    sizes = {pod.key: room.size(pod) for pod in wanted}
    for pod in sorted(wanted, key=lambda pod: sizes[pod.key], reverse=True):
        if stopped():
            break
        found = examine(framework, pod).node
        moves = {pod.key: found} if found is not None else room.cheapest(pod, stopped)
        for key, node in (moves or {}).items():
            mover = room.pods[key]
            if key in node_of:
                state.take(mover, state.snapshot.node_index[node_of[key]])
            state.put(mover, node)
            node_of[key] = state.nodes[node].name
    return Assignment(node_of)


class _Room:
    """The cluster while nodes are tried; what is tried is undone."""

    def __init__(self, compiled: Compiled, framework: Framework, node_of: Mapping[str, str], wanted: set[str]) -> None:
        self.framework = framework
        self.state = framework.state
        self.node_of = node_of
        self.pods = {pod.key: pod for pod in compiled.snapshot.pods}
        self.movable = [pod for pod in compiled.pods if pod.node_name and pod.key not in wanted]
        self._capacity = np.maximum(1, self.state.allocatable.max(axis=1))

    def size(self, pod: Pod) -> float:
        """Return the pod's largest share of any resource of the node that has the most of it."""
        return float((self.state.vector(self.state.signatures.of(pod)) / self._capacity).max())

    def cheapest(self, pod: Pod, stopped: Callable[[], bool]) -> dict[str, int] | None:
        """Return the cheapest moves, the pod's own included, that get a pod in, as node by pod key."""
        best: dict[str, int] | None = None
        for node in self._near(pod)[:TRIED].tolist():
            if stopped():
                break
            with self._undone() as done:
                moves = self._clear(pod, node, done)
            if moves is not None and (best is None or self._cost(moves) < self._cost(best)):
                best = moves
        return best

    def _near(self, pod: Pod) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the nodes by how much of what the pod requests is missing on them."""
        asked = self.state.vector(self.state.signatures.of(pod))[:, None]
        missing = np.maximum(0, asked - (self.state.allocatable - self.state.requested))
        return np.argsort((missing / self._capacity[:, None]).max(axis=0), kind="stable")

    def _clear(self, pod: Pod, node: int, done: list[tuple[Pod, int, bool]]) -> dict[str, int] | None:
        name = self.state.nodes[node].name
        here = [other for other in self.movable if self.node_of.get(other.key) == name]
        removed: list[Pod] = []
        for other in sorted(here, key=self.size, reverse=True):
            if self._fits(pod, node):
                break
            self._take(other, node, done)
            removed.append(other)
        if not self._fits(pod, node):
            return None
        for other in list(removed):
            self._put(other, node, done)
            if self._fits(pod, node):
                removed.remove(other)
            else:
                self._take(other, node, done)
        self._put(pod, node, done)
        moves = {pod.key: node}
        for other in removed:
            target = examine(self.framework, other).node
            if target is None:
                return None
            self._put(other, target, done)
            moves[other.key] = target
        return moves

    def _cost(self, moves: Mapping[str, int]) -> float:
        return sum(move_weight(self.pods[key]) for key in moves if key in self.node_of)

    def _fits(self, pod: Pod, node: int) -> bool:
        verdict = self.framework.run_filters(self.framework.cycle(pod), np.array([node]))
        return len(verdict.feasible) > 0

    def _put(self, pod: Pod, node: int, done: list[tuple[Pod, int, bool]]) -> None:
        self.state.put(pod, node)
        done.append((pod, node, True))

    def _take(self, pod: Pod, node: int, done: list[tuple[Pod, int, bool]]) -> None:
        self.state.take(pod, node)
        done.append((pod, node, False))

    @contextmanager
    def _undone(self) -> Iterator[list[tuple[Pod, int, bool]]]:
        """Undo in the end what was done inside."""
        done: list[tuple[Pod, int, bool]] = []
        try:
            yield done
        finally:
            for pod, node, was_put in reversed(done):
                (self.state.take if was_put else self.state.put)(pod, node)
