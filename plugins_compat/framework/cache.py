"""The life of a pod in the scheduler's cache: assumed, bound, added, expired, forgotten.

A pod is *assumed* on a node once it is chosen, before the binding is written; from then on it is counted there. When
the API server reports the binding, the pod is *added*. If the report never comes, the pod *expires*: only after the
binding has finished, and strictly after a deadline. A pod that is reported before its node is kept for it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from stowplan.models.kubernetes import Node, Pod
from stowplan.plugins_compat.release import Release
from stowplan.plugins_compat.requests import CPU, MEMORY, PODS, requests


class CacheError(Exception):
    """A pod is not in the state that an operation needs."""


@dataclass(slots=True)
class NodeAccount:
    """What the pods on a node are charged.

    Parameters
    ----------
    node
        ``None`` while pods are reported for a node that is not.
    pods
        Keys of the pods.
    requested, nonzero
        Requests in scheduler units, and CPU and memory as scores count them.
    """

    node: Node | None = None
    pods: set[str] = field(default_factory=set)
    requested: Counter[str] = field(default_factory=Counter)
    nonzero: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _PodState:
    """A pod with what it was charged, which is what it gives back."""

    pod: Pod
    node: str
    requested: dict[str, int]
    nonzero: dict[str, int]
    assumed: bool = False
    binding_finished: bool = False
    deadline: float | None = None


class SchedulerCache:
    """Accounts of nodes, and the state of each pod.

    Parameters
    ----------
    release
        Decides what pods are charged.
    lifetime
        Seconds after the end of its binding until an assumed pod expires; ``None`` never.
    """

    def __init__(self, release: Release, lifetime: float | None = None) -> None:
        self.release = release
        self.lifetime = lifetime
        self.nodes: dict[str, NodeAccount] = {}
        self._states: dict[str, _PodState] = {}

    # -- pods -------------------------------------------------------------------------------------------------

    def assume(self, pod: Pod, node: str) -> None:
        """Count a pod on a node before its binding is known; one that is in the cache already is an error."""
        if pod.key in self._states:
            raise CacheError(f"pod {pod.key} is in the cache, so can't be assumed")
        self._charge(pod, node, assumed=True)

    def finish_binding(self, pod: Pod, now: float) -> None:
        """Note that the binding of an assumed pod was written: from now on it can expire."""
        state = self._states.get(pod.key)
        if state is not None and state.assumed:
            state.binding_finished = True
            state.deadline = None if self.lifetime is None else now + self.lifetime

    def forget(self, pod: Pod, node: str) -> None:
        """Give back what an assumed pod was charged, because its placement failed."""
        state = self._states.get(pod.key)
        if state is not None and state.node != node:
            raise CacheError(f"pod {pod.key} was assumed on {node} but assigned to {state.node}")
        if state is None or not state.assumed:
            raise CacheError(f"pod {pod.key} wasn't assumed so cannot be forgotten")
        self._release(pod.key)

    def add(self, pod: Pod, node: str) -> None:
        """Confirm a pod on the node that it is reported on: it moves there, or comes back if it has expired."""
        state = self._states.get(pod.key)
        if state is None:
            self._charge(pod, node)
        elif not state.assumed:
            raise CacheError(f"pod {pod.key} was already in added state")
        elif state.node != node:
            self._release(pod.key)
            self._charge(pod, node)
        else:
            state.assumed, state.deadline, state.pod = False, None, pod

    def update(self, pod: Pod) -> None:
        """Charge an added pod as it is now, in place of what it was charged; one that is only assumed is an error."""
        state = self._states.get(pod.key)
        if state is None or state.assumed:
            raise CacheError(f"pod {pod.key} is not added to scheduler cache, so cannot be updated")
        self._release(pod.key)
        self._charge(pod, state.node)

    def remove(self, pod: Pod) -> None:
        """Give back what an added pod was charged, whatever its annotations say by now."""
        if pod.key not in self._states:
            raise CacheError(f"pod {pod.key} is not found in scheduler cache, so cannot be removed from it")
        self._release(pod.key)

    def expire(self, now: float) -> list[str]:
        """Drop assumed pods whose binding has finished and whose deadline lies before ``now``; return their keys."""
        gone = [
            key
            for key, state in self._states.items()
            if state.assumed and state.binding_finished and state.deadline is not None and now > state.deadline
        ]
        for key in gone:
            self._release(key)
        return gone

    def is_assumed(self, pod: Pod) -> bool:
        """Whether a pod is assumed, and neither confirmed nor expired."""
        state = self._states.get(pod.key)
        return state is not None and state.assumed

    def node_of(self, pod: Pod) -> str | None:
        """Return the node that a pod is counted on."""
        state = self._states.get(pod.key)
        return state.node if state is not None else None

    # -- nodes ------------------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """Add a node; pods that were reported before it are on it."""
        self.nodes.setdefault(node.name, NodeAccount()).node = node

    def remove_node(self, name: str) -> None:
        """Remove a node; its account stays as long as there are pods on it, whose removal is reported separately."""
        account = self.nodes.get(name)
        if account is None:
            raise CacheError(f"node {name} is not found")
        account.node = None
        if not account.pods:
            del self.nodes[name]

    # -- accounts ---------------------------------------------------------------------------------------------

    def _charge(self, pod: Pod, node: str, *, assumed: bool = False) -> None:
        requested = {PODS: 1, **requests(pod, self.release)}
        amounts = requests(pod, self.release, nonzero=True)
        nonzero = {name: amounts[name] for name in (CPU, MEMORY) if name in amounts}
        self._states[pod.key] = _PodState(pod, node, requested, nonzero, assumed)
        account = self.nodes.setdefault(node, NodeAccount())
        account.pods.add(pod.key)
        account.requested.update(requested)
        account.nonzero.update(nonzero)

    def _release(self, key: str) -> None:
        state = self._states.pop(key)
        account = self.nodes[state.node]
        account.pods.remove(key)
        account.requested.subtract(state.requested)
        account.nonzero.subtract(state.nonzero)
        if account.node is None and not account.pods:
            del self.nodes[state.node]
