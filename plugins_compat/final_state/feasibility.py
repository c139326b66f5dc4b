"""The nodes that the filters leave to a pod which is taken off its node, with all others in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.plugins_compat.framework.counts import DomainCounts
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code, NodeSet, Status
from stowplan.plugins_compat.plugins.inter_pod_affinity import InterPodAffinity
from stowplan.plugins_compat.plugins.node_resources_fit import NodeResourcesFit
from stowplan.plugins_compat.plugins.pod_topology_spread import PodTopologySpread

SUCCESS = int(Code.SUCCESS)
NOT_COMPARED = np.int64(-(1 << 62))
"""Request of a resource that the filter does not compare: it fits everywhere."""


class Feasibility:
    """Feasible nodes of the pods of some signatures, kept up to date as pods move.

    What depends on the node alone is computed once. Requests are compared for all signatures at once. The other filters
    are asked about each pod, taken off its node, as far as they are not idle for it.

    Parameters
    ----------
    framework
        On the cluster with all pods in place.
    kinds
        ``[c]`` the signatures.
    """

    def __init__(self, framework: Framework, kinds: Sequence[Signature]) -> None:
        self._framework = framework
        self._state = framework.state
        self._kinds = kinds
        size = self._state.size
        involved = list(dict.fromkeys([*framework.pre_filters, *framework.filters]))
        self._fit = next((p for p in involved if type(p) is NodeResourcesFit), None)
        self._static = np.ones((len(kinds), size), dtype=np.bool_)
        self._apart: list[list[Plugin]] = []
        self._skipped: list[set[str]] = []
        for c, kind in enumerate(kinds):
            cycle = CycleState(kind.pod, kind)
            idle = {p for p in involved if p.reads != "nothing" and p.idle(cycle)}
            apart = [p for p in involved if p is not self._fit and p not in idle and _depends_on_pods(p)]
            known = [p for p in involved if p is not self._fit and p not in idle and p not in apart]
            self._static[c] = self._admitted(cycle, known)
            self._apart.append(apart)
            self._skipped.append(cycle.skipped)
        vectors = [self._state.vector(kind) for kind in kinds]
        self._vectors = np.array(vectors, dtype=np.int64).reshape(len(kinds), len(self._state.resources))
        self._needs = np.full((len(kinds), len(self._state.resources)), NOT_COMPARED)
        if self._fit is not None:
            for c, kind in enumerate(kinds):
                rows, amounts = self._fit.compared(kind)
                self._needs[c, rows] = amounts
        self._roomy = self._static & self._with_room(np.arange(size))

    def _admitted(self, cycle: CycleState, plugins: Iterable[Plugin]) -> Bools:
        """``[n]`` the nodes that are left by plugins which ask for nothing but the node."""
        state = self._state
        passed = np.ones(state.size, dtype=np.bool_)
        plugins = list(plugins)
        for plugin in plugins:
            if plugin in self._framework.pre_filters:
                passed &= self._prepared(cycle, plugin)
        for plugin in plugins:
            if plugin in self._framework.filters and plugin.name not in cycle.skipped:
                passed &= plugin.filter(cycle, np.arange(state.size)) == SUCCESS
        return passed

    def _prepared(self, cycle: CycleState, plugin: Plugin) -> Bools:
        """``[n]`` the nodes that PreFilter leaves."""
        state = self._state
        answer = plugin.pre_filter(cycle)
        if isinstance(answer, NodeSet):
            return np.array([node.name in answer.names for node in state.nodes], dtype=np.bool_)
        if isinstance(answer, Status):
            if answer.code is not Code.SKIP:
                return np.zeros(state.size, dtype=np.bool_)
            cycle.skipped.add(plugin.name)
        return np.ones(state.size, dtype=np.bool_)

    def _with_room(self, nodes: Ints) -> Bools:
        """``[c, nodes]`` where one more pod's requests fit."""
        free = self._state.allocatable[:, nodes] - self._state.requested[:, nodes]
        fits = np.ones((len(self._kinds), len(nodes)), dtype=np.bool_)
        for row in range(len(free)):
            fits &= self._needs[:, row, None] <= free[row]
        return fits

    # -- what changes -------------------------------------------------------------------------------------------

    def refresh(self, nodes: Ints) -> Bools:
        """Compare requests again on nodes whose pods have changed; return ``[c]`` for which pods an answer differs."""
        now = self._static[:, nodes] & self._with_room(nodes)
        changed: Bools = (now != self._roomy[:, nodes]).any(axis=1)
        self._roomy[:, nodes] = now
        return changed

    def always_changes(self, c: int) -> bool:
        """Whether filters are asked about each pod that may read any other pod."""
        return any(not isinstance(plugin, InterPodAffinity | PodTopologySpread) for plugin in self._apart[c])

    def counts(self, c: int) -> Iterator[DomainCounts]:
        """Yield the counts that the filters read."""
        for plugin in self._apart[c]:
            if isinstance(plugin, InterPodAffinity | PodTopologySpread):
                yield from plugin.required_counts(self._kinds[c])

    # -- answers ------------------------------------------------------------------------------------------------

    def allowed(self, c: int) -> Bools:
        """``[n]`` the nodes that the node alone makes feasible, whatever pods there are. Do not change it."""
        found: Bools = self._static[c]
        return found

    def room(self, c: int) -> Bools:
        """``[n]`` the nodes that take one more pod, as far as requests and the node alone tell. Do not change it."""
        found: Bools = self._roomy[c]
        return found

    def stays(self, cls: Ints, nodes: Ints) -> Bools:
        """``[k]`` whether nodes would take pods that are there again, as far as requests and the node alone tell."""
        free = self._state.allocatable[:, nodes] - self._state.requested[:, nodes]
        fits: Bools = self._static[cls, nodes] & (self._needs[cls] - self._vectors[cls] <= free.T).all(axis=1)
        return fits

    def feasible(self, c: int, nodes: Ints) -> Bools:
        """``[k, n]`` the nodes that are feasible for a pod which is on ``nodes[k]``, once it is taken off."""
        found = np.repeat(self._roomy[c][None], len(nodes), axis=0)
        found[np.arange(len(nodes)), nodes] = self.stays(np.full(len(nodes), c), nodes)
        if self._apart[c]:
            for k, node in enumerate(nodes.tolist()):
                self._ask_apart(c, node, found[k])
        return found

    def _ask_apart(self, c: int, node: int, passed: Bools) -> None:
        """Clear the nodes that filters reject which read other pods."""
        kind = self._kinds[c]
        cycle = CycleState(kind.pod, kind, skipped=set(self._skipped[c]))
        self._state.forget(kind, node)
        try:
            passed &= self._admitted_alive(cycle, self._apart[c], passed)
        finally:
            self._state.assume(kind, node)

    def _admitted_alive(self, cycle: CycleState, plugins: Sequence[Plugin], alive: Bools) -> Bools:
        passed = alive.copy()
        for plugin in plugins:
            if plugin in self._framework.pre_filters:
                passed &= self._prepared(cycle, plugin)
        for plugin in plugins:
            left = np.flatnonzero(passed)
            if len(left) and plugin in self._framework.filters and plugin.name not in cycle.skipped:
                passed[left] = plugin.filter(cycle, left) == SUCCESS
        return passed


def _depends_on_pods(plugin: Plugin) -> bool:
    """Whether the answers of a plugin may depend on more than the node."""
    return plugin.reads != "nothing"
