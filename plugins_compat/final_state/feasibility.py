"""The nodes that the filters leave to a pod which is taken off its node, with all others in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

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
from stowplan.plugins_compat.plugins.volume_binding import VolumeBinding

SUCCESS = int(Code.SUCCESS)
NOT_COMPARED = np.int64(-(1 << 62))
"""Request of a resource that the filter does not compare: it fits everywhere."""


class Feasibility:
    """Feasible nodes of the pods of some signatures, kept up to date as pods move.

    What depends on the node alone is computed once. Requests are compared for all signatures at once. Filters that look
    at the pods of the node alone are asked again about the nodes whose pods have changed. The other filters are asked
    about each pod, taken off its node, as far as they are not idle for it.

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
        self._near: list[list[Plugin]] = []
        self._apart: list[list[Plugin]] = []
        self._skipped: list[set[str]] = []
        for c, kind in enumerate(kinds):
            cycle = CycleState(kind.pod, kind)
            idle = {p for p in involved if p.reads != "nothing" and p.idle(cycle)}
            apart = [p for p in involved if p is not self._fit and p not in idle and _depends_on_pods(p)]
            known = [p for p in involved if p is not self._fit and p not in idle and p not in apart]
            self._static[c] = self._admitted(cycle, known)
            self._near.append([p for p in apart if p.reach == "node"])
            self._apart.append([p for p in apart if p.reach != "node"])
            self._skipped.append(cycle.skipped)
        vectors = [self._state.vector(kind) for kind in kinds]
        self._vectors = np.array(vectors, dtype=np.int64).reshape(len(kinds), len(self._state.resources))
        self._needs = np.full((len(kinds), len(self._state.resources)), NOT_COMPARED)
        if self._fit is not None:
            for c, kind in enumerate(kinds):
                rows, amounts = self._fit.compared(kind)
                self._needs[c, rows] = amounts
        self._asked = [c for c, plugins in enumerate(self._near) if plugins]
        self._passed = np.ones((len(kinds), size), dtype=np.bool_)
        self._own: dict[tuple[int, int], bool] = {}
        self._answers: dict[int, dict[int, NDArray[np.uint8]]] = {}
        self._minding: dict[tuple[str, int], bool] = {}
        self._ask_near(self._asked, np.arange(size))
        self._roomy = self._static & self._passed & self._with_room(np.arange(size))

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

    def refresh(self, nodes: Ints, moved: Iterable[int]) -> Bools:
        """Ask again about nodes whose pods have changed; return ``[c]`` for which pods an answer differs.

        Parameters
        ----------
        moved
            The classes of the pods that came or went.
        """
        came = set(moved)
        stale = [c for c in self._asked if any(self._minds(plugin, m) for plugin in self._near[c] for m in came)]
        if stale:
            self._ask_near(stale, nodes)
            for c in stale:
                for node in nodes.tolist():
                    self._own.pop((c, node), None)
        now = self._static[:, nodes] & self._passed[:, nodes] & self._with_room(nodes)
        changed: Bools = (now != self._roomy[:, nodes]).any(axis=1)
        self._roomy[:, nodes] = now
        return changed

    def _minds(self, plugin: Plugin, moved: int) -> bool:
        key = (plugin.name, moved)
        known = self._minding.get(key)
        if known is None:
            known = self._minding[key] = plugin.minds(self._kinds[moved])
        return known

    def _ask_near(self, classes: Sequence[int], nodes: Ints) -> None:
        """Ask the filters that look at the pods of a node alone about one more pod there."""
        for c in classes:
            cycle = CycleState(self._kinds[c].pod, self._kinds[c], skipped=set(self._skipped[c]))
            self._passed[c, nodes] = self._filtered(cycle, self._near[c], nodes)

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

    def passes(self, c: int, plugin: Plugin) -> Bools:
        """``[n]`` the nodes that one filter admits as things are."""
        cycle = CycleState(self._kinds[c].pod, self._kinds[c], skipped=set(self._skipped[c]))
        return self._filtered(cycle, [plugin], np.arange(self._state.size))

    def room(self, c: int) -> Bools:
        """``[n]`` the nodes that take one more pod, as far as requests and the node alone tell. Do not change it."""
        found: Bools = self._roomy[c]
        return found

    def room_beside(self, most: Ints, size: Ints) -> Bools:
        """``[c, n]`` the nodes that have room for a pod of a class wherever all other pods are.

        Parameters
        ----------
        most, size
            ``[c, n]`` and ``[c]``: the most pods of each class on each node, and in all.
        """
        found = np.ones((len(self._kinds), self._state.size), dtype=np.bool_)
        free = self._state.allocatable - self._state.requested
        itself = most >= size[:, None]  # of a class whose pods can all be there, one less is there beside the pod
        for row in range(len(free)):
            own = self._vectors[:, row]
            others = (own @ most)[None, :] - np.where(itself, own[:, None], 0)
            found &= self._needs[:, row, None] <= free[row] - others
        return found

    @property
    def needs(self) -> Ints:
        """``[c, r]`` requests that are compared with what is free; `NOT_COMPARED` where none is."""
        return self._needs

    @property
    def adds(self) -> Ints:
        """``[c, r]`` what a pod on a node takes of it."""
        return self._vectors

    def reading_pods(self, c: int) -> Sequence[Plugin]:
        """Return the filters that may read other pods, but for their requests; a plugin may be turned off as one."""
        turned_on = self._framework.filters
        return [
            plugin
            for plugin in (*self._near[c], *self._apart[c])
            if plugin in turned_on or type(plugin) is VolumeBinding
        ]

    @property
    def limited(self) -> Bools:
        """``[r]`` the resources of which the filter admits no more than there is."""
        compared: Bools = ((self._vectors == 0) | (self._needs != NOT_COMPARED)).all(axis=0)
        return compared

    def minds(self, c: int, others: Iterable[int]) -> bool:
        """Whether a filter that looks at the pods of a node alone minds any of some classes beside a pod."""
        return any(self._minds(plugin, other) for plugin in self._near[c] for other in others)

    def stays(self, cls: Ints, nodes: Ints) -> Bools:
        """``[k]`` whether nodes would take pods that are there again, as far as no pods of other nodes matter."""
        free = self._state.allocatable[:, nodes] - self._state.requested[:, nodes]
        fits: Bools = self._static[cls, nodes] & (self._needs[cls] - self._vectors[cls] <= free.T).all(axis=1)
        for k in np.flatnonzero(fits).tolist():
            c = int(cls[k])
            if self._near[c]:
                fits[k] = self._takes_back(c, int(nodes[k]))
        return fits

    def feasible(self, cls: Ints, nodes: Ints) -> Bools:
        """``[k, n]`` the nodes that are feasible for a pod of ``cls[k]`` on ``nodes[k]``, once it is taken off."""
        found: Bools = self._roomy[cls]
        found[np.arange(len(nodes)), nodes] = self.stays(cls, nodes)
        for k, (c, node) in enumerate(zip(cls.tolist(), nodes.tolist(), strict=True)):
            if self._apart[c]:
                found[k] &= self._answer(c, node)
        return found

    def forget(self, classes: Iterable[int]) -> None:
        """Ask the filters that look at all nodes again about the pods of some classes."""
        for c in classes:
            self._answers.pop(c, None)

    def _answer(self, c: int, node: int) -> Bools:
        """``[n]`` what the filters that look at all nodes say of a pod, once it is taken off its own node."""
        known = self._answers.setdefault(c, {})
        if node not in known:
            admitted = self._without(c, node, self._apart[c], np.flatnonzero(self._static[c]))
            passed = np.zeros(self._state.size, dtype=np.bool_)
            passed[self._static[c]] = admitted
            known[node] = np.packbits(passed)
        return np.unpackbits(known[node], count=self._state.size).view(np.bool_)

    def _takes_back(self, c: int, node: int) -> bool:
        """Whether the filters that look at a node alone would take a pod that is there again."""
        known = self._own.get((c, node))
        if known is None:
            known = self._own[c, node] = bool(self._without(c, node, self._near[c], np.array([node]))[0])
        return known

    def _without(self, c: int, node: int, plugins: Sequence[Plugin], nodes: Ints) -> Bools:
        """``[nodes]`` what filters admit of some nodes while a pod is taken off its own."""
        kind = self._kinds[c]
        cycle = CycleState(kind.pod, kind, skipped=set(self._skipped[c]))
        self._state.forget(kind, node)
        try:
            return self._filtered(cycle, plugins, nodes)
        finally:
            self._state.assume(kind, node)

    def _filtered(self, cycle: CycleState, plugins: Sequence[Plugin], nodes: Ints) -> Bools:
        """``[nodes]`` what PreFilter and Filter of some plugins leave of nodes."""
        passed = np.ones(len(nodes), dtype=np.bool_)
        for plugin in plugins:
            if plugin in self._framework.pre_filters:
                passed &= self._prepared(cycle, plugin)[nodes]
        for plugin in plugins:
            left = np.flatnonzero(passed)
            if len(left) and plugin in self._framework.filters and plugin.name not in cycle.skipped:
                passed[left] = plugin.filter(cycle, nodes[left]) == SUCCESS
        return passed


def _depends_on_pods(plugin: Plugin) -> bool:
    """Whether the answers of a plugin may depend on more than the node."""
    return plugin.reads != "nothing"
