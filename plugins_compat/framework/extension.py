"""Where extenders come in: after the filters, after the scores, and in place of the binder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.problem import POINTS
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.extenders.answers import ExtenderError, Filtered
from stowplan.plugins_compat.extenders.config import ExtenderConfig
from stowplan.plugins_compat.framework.diagnosis import EXTENDED, Diagnosis
from stowplan.plugins_compat.framework.status import Code, Status

MOST_POINTS = 10
"""Points an extender may give; they are stretched to those of plugins."""


Proposal = tuple[Sequence[Pod], int]
"""Pods that would have to leave a node, and how many of them against a disruption budget."""


class Extender(Protocol):
    """One extender; its configuration says which of the verbs are ever called."""

    @property
    def config(self) -> ExtenderConfig:
        """What it does."""

    def is_interested(self, pod: Pod) -> bool:
        """Whether it wants to be asked about a pod."""

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        """Return which nodes suit a pod."""

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, int]:
        """Return scores by node name, 0 to 10."""

    def preempt(self, pod: Pod, victims: Mapping[str, Proposal]) -> dict[str, tuple[list[str], int]]:
        """Return, by node name, uids of the pods that have to leave, and how many of them against a budget."""

    def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod."""


class Extenders:
    """All extenders of a profile.

    Parameters
    ----------
    snapshot
        Names the cluster's nodes.
    points
        Highest score of a plugin, to which scores of extenders are stretched.
    """

    def __init__(self, configs: Sequence[ExtenderConfig], snapshot: Snapshot, points: int = POINTS) -> None:
        self.points = points
        self.all: list[Extender] = []
        if configs:
            # The HTTP library is for those who need it.
            from stowplan.plugins_compat.extenders.client import HTTPExtender

            self.all = [HTTPExtender(config) for config in configs]
        self.nodes = snapshot.nodes
        self.index = snapshot.node_index

    def filter(self, diagnosis: Diagnosis) -> None:
        """Let each interested extender turn nodes down, one after the other."""
        pod = diagnosis.cycle.pod
        asked = [e for e in self.all if e.config.filter_verb and e.is_interested(pod)]
        position = {node: i for i, node in enumerate(diagnosis.nodes.tolist())} if asked else {}
        for extender in asked:
            left = diagnosis.feasible.tolist()
            if not left:
                return
            try:
                answer = extender.filter(pod, [self.nodes[n] for n in left])
            except ExtenderError as error:
                if extender.config.ignorable:
                    continue
                diagnosis.codes[:] = Code.ERROR
                diagnosis.rejected = Status(Code.ERROR, (str(error),))
                return
            passed = {self.index[name] for name in answer.passed}
            for node in set(left) - passed:
                i = position[node]
                name = self.nodes[node].name
                diagnosis.failed_by[i] = EXTENDED
                diagnosis.codes[i] = Code.UNRESOLVABLE if name in answer.unresolvable else Code.UNSCHEDULABLE
                said = answer.unresolvable.get(name) or answer.failed.get(name) or "node(s) failed by an extender"
                diagnosis.extended[node] = said

    def prioritize(self, pod: Pod, feasible: Ints) -> tuple[Ints, Ints]:
        """Return what extenders add to the scores of the feasible nodes, and which of them got a score at all.

        An extender that cannot be reached adds nothing.
        """
        total = np.zeros(len(feasible), dtype=np.int64)
        scored = np.zeros(len(feasible), dtype=np.int64)
        asked = [e for e in self.all if e.config.prioritize_verb and e.is_interested(pod)]
        position = {self.nodes[n].name: i for i, n in enumerate(feasible.tolist())} if asked else {}
        for extender in asked:
            try:
                scores = extender.prioritize(pod, [self.nodes[n] for n in feasible.tolist()])
            except ExtenderError:
                continue
            for name, score in scores.items():
                if name in position:
                    total[position[name]] += score * extender.config.weight
                    scored[position[name]] = 1
        return total * (self.points // MOST_POINTS), scored

    def preempt(self, pod: Pod, victims: Mapping[int, Proposal]) -> dict[int, Proposal]:
        """Let each interested extender drop nodes, or change who has to leave them.

        Parameters
        ----------
        victims
            By node: the pods that would have to leave, and how many of them against a disruption budget.

        Raises
        ------
        ExtenderError
            If one that must not be ignored gives no sensible answer.
        """
        left = dict(victims)
        for extender in self.all:
            if not left or not extender.config.preempt_verb or not extender.is_interested(pod):
                continue
            try:
                named = {self.nodes[node].name: proposal for node, proposal in left.items()}
                answer = extender.preempt(pod, named)
                left = {self.index[name]: _chosen(name, named, uids) for name, uids in answer.items()}
            except ExtenderError:
                if not extender.config.ignorable:
                    raise
        return left

    @property
    def prioritizing(self) -> bool:
        """Whether any extender scores."""
        return any(extender.config.prioritize_verb for extender in self.all)

    @property
    def filtering(self) -> bool:
        """Whether any extender filters."""
        return any(extender.config.filter_verb for extender in self.all)

    def binder(self, pod: Pod) -> Extender | None:
        """Return the extender that binds a pod, if one does."""
        return next((e for e in self.all if e.config.bind_verb and e.is_interested(pod)), None)


def _chosen(name: str, named: Mapping[str, Proposal], answer: tuple[list[str], int]) -> Proposal:
    """Return the pods that an extender names by uid."""
    if name not in named:
        raise ExtenderError(f"the answer names node {name!r}, which was not in the question")
    by_uid = {victim.metadata.uid: victim for victim in named[name][0]}
    uids, violations = answer
    strangers = [uid for uid in uids if uid not in by_uid]
    if strangers:
        raise ExtenderError(f"the answer names pod {strangers[0]!r} on node {name!r}, which was not in the question")
    return [by_uid[uid] for uid in uids], violations
