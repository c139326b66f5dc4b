"""Finds pods that the filters certainly admit where they are, many nodes at a time.

To check a placement, every pod is taken off its node and offered to it again. Most pods pass, and most filters answer
for a node without regard to the pods of other nodes. Those filters are asked about all nodes with pods of a signature
at once, when a pod was taken off each. Others never reject what they admitted with one more pod: they are asked while
all pods are in place. Only where neither is enough, each pod is taken off in turn. Whatever is not certain here is left
to the full cycle, which alone says why a pod is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.plugin import Plugin, implements
from stowplan.plugins_compat.framework.status import SUCCESS, Code, NodeSet, Status


class Screen:
    """The plugins of a profile by what has to be done to ask them about pods that are there already.

    Parameters
    ----------
    framework
        Its cluster may change between two questions.
    """

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        involved = dict.fromkeys([*framework.pre_filters, *framework.filters])
        self.counting = [plugin for plugin in involved if _counts_pods(plugin)]
        self.plain = [plugin for plugin in framework.filters if not _counts_pods(plugin)]

    def surely_admitted(self, pod: Pod, nodes: Ints) -> Bools:
        """``[nodes]`` where the filters admit a pod that is there already, once it is taken off.

        What is true is certain; what is false may be admitted all the same.

        Parameters
        ----------
        pod
            Any pod of the signature.
        nodes
            Different nodes, each with a pod of the signature on it. The cluster is left as it was.
        """
        if self.framework.state.nominator:
            return np.zeros(len(nodes), dtype=np.bool_)
        question = _Question(self, pod)
        passed = question.ask_together(nodes)
        if question.far:
            eased = question.ask_in_place(nodes, passed)
            for position in np.flatnonzero(passed).tolist():
                passed[position] = question.ask_alone(int(nodes[position]), eased=bool(eased[position]))
        return passed


class _Question:
    """The plugins of a screen, as the pods of one signature meet them.

    Attributes
    ----------
    near, far
        Plugins to which the pod itself makes a difference beyond its requests: on its own node, and anywhere.
    together
        Filters that read no more than the requests of a node.
    """

    def __init__(self, screen: Screen, pod: Pod) -> None:
        framework = screen.framework
        self.state = framework.state
        self.cycle = cycle = CycleState(pod, framework.state.signatures.of(pod))
        self.pre_filters, self.filters = framework.pre_filters, framework.filters
        counting = [plugin for plugin in screen.counting if not plugin.idle(cycle)]
        self.near = [plugin for plugin in counting if plugin.reach == "node"]
        self.far = [plugin for plugin in counting if plugin.reach != "node"]
        self.together = [plugin for plugin in screen.plain if plugin.reads == "nothing" or not plugin.idle(cycle)]

    def ask_together(self, nodes: Ints) -> Bools:
        """``[nodes]`` where every plugin that may be asked at once admits the pod, when it is taken off all nodes."""
        with self._off_nodes(nodes):
            passed = self._prepared(self.cycle, (p for p in self.pre_filters if p not in self.far), nodes)
            self._filter(self.cycle, self.together, nodes, passed)
            self._filter(self.cycle, (p for p in self.filters if p in self.near), nodes, passed)
        return passed

    def ask_in_place(self, nodes: Ints, among: Bools) -> Bools:
        """``[nodes]`` where every monotone plugin admits one pod more, so that it admits the pod itself."""
        monotone = [plugin for plugin in self.far if plugin.monotone]
        if not monotone:
            return np.ones(len(nodes), dtype=np.bool_)
        cycle, passed = self._copied(), among.copy()
        passed[among] = self._prepared(cycle, (p for p in self.pre_filters if p in monotone), nodes[among])
        self._filter(cycle, (p for p in self.filters if p in monotone), nodes, passed)
        return passed

    def ask_alone(self, node: int, *, eased: bool) -> bool:
        """Whether the other plugins admit the pod to one node, from which it is taken meanwhile.

        Parameters
        ----------
        eased
            Whether monotone plugins need not be asked.
        """
        asked = [plugin for plugin in self.far if not (eased and plugin.monotone)]
        if not asked:
            return True
        cycle, here = self._copied(), np.array([node], dtype=np.int64)
        self.state.forget(cycle.signature, node)
        try:
            passed = self._prepared(cycle, (p for p in self.pre_filters if p in asked), here)
            self._filter(cycle, (p for p in self.filters if p in asked), here, passed)
            return bool(passed[0])
        finally:
            self.state.assume(cycle.signature, node)

    def _copied(self) -> CycleState:
        return CycleState(self.cycle.pod, self.cycle.signature, dict(self.cycle.data), set(self.cycle.skipped))

    @contextmanager
    def _off_nodes(self, nodes: Ints) -> Iterator[None]:
        """Take a pod off each of these nodes for a while; its requests are enough where no more of it is looked at."""
        signature = self.cycle.signature
        if self.near:
            for node in nodes.tolist():
                self.state.forget(signature, node)
            try:
                yield
            finally:
                for node in nodes.tolist():
                    self.state.assume(signature, node)
            return
        requested, own = self.state.requested, self.state.vector(signature)[:, None]
        requested[:, nodes] -= own
        try:
            yield
        finally:
            requested[:, nodes] += own

    def _prepared(self, cycle: CycleState, plugins: Iterable[Plugin], nodes: Ints) -> Bools:
        """``[nodes]`` that are left when PreFilter was run."""
        passed = np.ones(len(nodes), dtype=np.bool_)
        for plugin in plugins:
            answer = plugin.pre_filter(cycle)
            if isinstance(answer, NodeSet):
                names = answer.names
                passed &= np.array([self.state.nodes[node].name in names for node in nodes.tolist()], dtype=np.bool_)
            elif isinstance(answer, Status) and answer.code is Code.SKIP:
                cycle.skipped.add(plugin.name)
            elif isinstance(answer, Status):
                passed[:] = False
        return passed

    def _filter(self, cycle: CycleState, plugins: Iterable[Plugin], nodes: Ints, passed: Bools) -> None:
        """Clear the nodes that some plugin rejects."""
        alive = nodes if passed.all() else nodes[passed]
        for plugin in plugins:
            if plugin.name not in cycle.skipped and len(alive):
                failed = plugin.filter(cycle, alive) != SUCCESS
                if failed.any():
                    passed[passed] = ~failed
                    alive = alive[~failed]


def _counts_pods(plugin: Plugin) -> bool:
    """Whether the answers of a plugin may depend on more than its node and the requests there."""
    return plugin.reads == "pods" or (plugin.reads == "requests" and implements(type(plugin), "pre_filter"))
