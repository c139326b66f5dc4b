"""Finds pods that the filters certainly admit where they are, many nodes at a time.

To check a placement, every pod is taken off its node and offered to it again. Most pods pass, and most filters answer
for a node without regard to the pods of other nodes. Those filters are asked about all nodes with pods of a signature
at once, when a pod was taken off each. Others never reject what they admitted with one more pod: they are asked while
all pods are in place. Only where neither is enough, each pod is taken off in turn. Whatever is not certain here is left
to the full cycle, which alone says why a pod is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass

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
        Its cluster may change between two questions; what does not depend on its pods is asked once.
    """

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        self._known: dict[int, _Known] = {}
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
        known = self.known(pod)
        question = _Question(self.framework, CycleState(pod, self.framework.state.signatures.of(pod)))
        passed = question.ask_together(known, nodes)
        if known.far:
            eased = question.ask_in_place(known, nodes, passed)
            for position in np.flatnonzero(passed).tolist():
                passed[position] = question.ask_alone(known, int(nodes[position]), eased=bool(eased[position]))
        return passed

    def known(self, pod: Pod) -> _Known:
        """Return what holds for the pods of a signature wherever the others are."""
        signature = self.framework.state.signatures.of(pod)
        found = self._known.get(signature.index)
        if found is None:
            cycle = CycleState(pod, signature)
            counting = [plugin for plugin in self.counting if not plugin.idle(cycle)]
            far = [plugin for plugin in counting if plugin.reach != "node"]
            found = self._known[signature.index] = _Known(
                near=[plugin for plugin in counting if plugin.reach == "node"],
                far=far,
                eased=[plugin for plugin in far if not plugin.monotone],
                requests=[plugin for plugin in self.plain if plugin.reads != "nothing" and not plugin.idle(cycle)],
                admitted=self._admitted(cycle),
            )
        return found

    def _admitted(self, cycle: CycleState) -> Bools:
        """``[n]`` nodes that every plugin admits which reads no pods."""
        question, nodes = _Question(self.framework, cycle), np.arange(self.framework.state.size)
        static = [plugin for plugin in self.plain if plugin.reads == "nothing"]
        passed = question.prepared((p for p in self.framework.pre_filters if p in static), nodes)
        question.filter(static, nodes, passed)
        return passed


@dataclass(frozen=True, slots=True)
class _Known:
    """What holds for the pods of one signature wherever the other pods are.

    Parameters
    ----------
    near, far
        Plugins to which the pod itself makes a difference beyond its requests: on its own node, and anywhere.
    eased
        Those of `far` that are left where monotone plugins need not be asked.
    requests
        Filters that read no more than the requests of a node.
    admitted
        ``[n]`` nodes that all filters admit which read no pods.
    """

    near: Sequence[Plugin]
    far: Sequence[Plugin]
    eased: Sequence[Plugin]
    requests: Sequence[Plugin]
    admitted: Bools


class _Question:
    """One cycle of a pod, in which the plugins of a screen are asked."""

    def __init__(self, framework: Framework, cycle: CycleState) -> None:
        self.state, self.cycle = framework.state, cycle
        self.pre_filters, self.filters = framework.pre_filters, framework.filters

    def ask_together(self, known: _Known, nodes: Ints) -> Bools:
        """``[nodes]`` where every plugin that may be asked at once admits the pod, when it is taken off all nodes."""
        passed = known.admitted[nodes]
        with self._off_nodes(nodes, real=bool(known.near)):
            passed &= self.prepared((p for p in self.pre_filters if p not in known.far), nodes)
            self.filter(known.requests, nodes, passed)
            self.filter(known.near, nodes, passed)
        return passed

    def ask_in_place(self, known: _Known, nodes: Ints, among: Bools) -> Bools:
        """``[nodes]`` where every monotone plugin admits one pod more, so that it admits the pod itself."""
        monotone = [plugin for plugin in known.far if plugin.monotone]
        if not monotone:
            return np.ones(len(nodes), dtype=np.bool_)
        question, passed = self._apart(), among.copy()
        passed[among] = question.prepared((p for p in self.pre_filters if p in monotone), nodes[among])
        question.filter((p for p in self.filters if p in monotone), nodes, passed)
        return passed

    def ask_alone(self, known: _Known, node: int, *, eased: bool) -> bool:
        """Whether the other plugins admit the pod to one node, from which it is taken meanwhile.

        Parameters
        ----------
        eased
            Whether monotone plugins need not be asked.
        """
        asked = known.eased if eased else known.far
        if not asked:
            return True
        question, here = self._apart(), np.array([node], dtype=np.int64)
        self.state.forget(self.cycle.signature, node)
        try:
            passed = question.prepared((p for p in self.pre_filters if p in asked), here)
            question.filter((p for p in self.filters if p in asked), here, passed)
            return bool(passed[0])
        finally:
            self.state.assume(self.cycle.signature, node)

    def _apart(self) -> _Question:
        """Return a question that goes on from here, and leaves this one as it is."""
        cycle, question = self.cycle, copy(self)
        question.cycle = CycleState(cycle.pod, cycle.signature, dict(cycle.data), set(cycle.skipped))
        return question

    @contextmanager
    def _off_nodes(self, nodes: Ints, *, real: bool) -> Iterator[None]:
        """Take a pod off each of these nodes for a while; unless ``real``, of its requests alone."""
        signature = self.cycle.signature
        if real:
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

    def prepared(self, plugins: Iterable[Plugin], nodes: Ints) -> Bools:
        """``[nodes]`` that are left when PreFilter was run."""
        passed = np.ones(len(nodes), dtype=np.bool_)
        for plugin in plugins:
            answer = plugin.pre_filter(self.cycle)
            if isinstance(answer, NodeSet):
                names = answer.names
                passed &= np.array([self.state.nodes[node].name in names for node in nodes.tolist()], dtype=np.bool_)
            elif isinstance(answer, Status) and answer.code is Code.SKIP:
                self.cycle.skipped.add(plugin.name)
            elif isinstance(answer, Status):
                passed[:] = False
        return passed

    def filter(self, plugins: Iterable[Plugin], nodes: Ints, passed: Bools) -> None:
        """Clear the nodes that some plugin rejects."""
        alive = nodes if passed.all() else nodes[passed]
        for plugin in plugins:
            if plugin.name not in self.cycle.skipped and len(alive):
                failed = plugin.filter(self.cycle, alive) != SUCCESS
                if failed.any():
                    passed[passed] = ~failed
                    alive = alive[~failed]


def _counts_pods(plugin: Plugin) -> bool:
    """Whether the answers of a plugin may depend on more than its node and the requests there."""
    return plugin.reads == "pods" or (plugin.reads == "requests" and implements(type(plugin), "pre_filter"))
