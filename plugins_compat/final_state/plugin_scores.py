"""Scores of single plugins for many pods at once; each equals what the plugin's own extension points would give.

A plugin falls into one of four groups by what its score of a pod on its node depends on:

- the node's usage, or nothing at all (`OnNode`): NodeResourcesFit, NodeResourcesBalancedAllocation, ImageLocality;
- the feasible nodes, over which it is normalized (`OverFeasible`): TaintToleration, NodeAffinity;
- these, and counts of pods by domain: PodTopologySpread, InterPodAffinity;
- whatever it reads (`ByFramework`): plugins of other packages are asked pod by pod.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import POINTS, Topology
from stowplan.plugins_compat.final_state.spread_scores import SpreadScores, least_left
from stowplan.plugins_compat.framework.counts import DomainCounts
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.plugins.dynamic_resources import DynamicResources
from stowplan.plugins_compat.plugins.image_locality import ImageLocality
from stowplan.plugins_compat.plugins.inter_pod_affinity import InterPodAffinity
from stowplan.plugins_compat.plugins.node_affinity import NodeAffinity
from stowplan.plugins_compat.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from stowplan.plugins_compat.plugins.node_resources_fit import NodeResourcesFit
from stowplan.plugins_compat.plugins.pod_topology_spread import PodTopologySpread
from stowplan.plugins_compat.plugins.resource_scores import ResourceSpec, Scored
from stowplan.plugins_compat.plugins.taint_toleration import TaintToleration
from stowplan.plugins_compat.plugins.volume_binding import VolumeBinding
from stowplan.plugins_compat.requests import CPU, MEMORY, NATIVE


class OnNode(Protocol):
    """A score that depends on the node and on what its pods use."""

    def scores(self, cls: Ints, nodes: Ints) -> Ints:
        """``[k]`` the score of a pod of each class, which is on the node given beside it."""

    def most(self, c: int) -> int:
        """Return what a pod of a class can score at most."""


@runtime_checkable
class OverFeasible(Protocol):
    """A score that is normalized over the feasible nodes."""

    def scores(self, c: int, nodes: Ints, feasible: Bools) -> Ints:
        """``[k, n]`` what a pod on ``nodes[k]`` scores on each node, once it is taken off; valid on feasible nodes."""

    def in_place(self, cls: Ints, nodes: Ints, feasible: Bools) -> Ints:
        """``[k]`` what a pod of each class scores on the node beside it, where that is feasible.

        Parameters
        ----------
        cls
            ``[k]`` in ascending order.
        feasible
            ``[k, n]`` the feasible nodes of each.
        """

    def most(self, c: int) -> int:
        """Return what a pod of a class can score at most."""

    def counts(self, c: int) -> Iterable[DomainCounts] | None:
        """Return the counts of pods that the score reads; ``None`` if it may read any pod."""

    def flat(self, c: int) -> bool:
        """Whether all nodes are alike for a pod of a class, wherever other pods are."""


class ClassByClass(ABC):
    """Scores in place by asking for the pods of one class after the other."""

    @abstractmethod
    def scores(self, c: int, nodes: Ints, feasible: Bools) -> Ints:
        """As `OverFeasible.scores` says."""

    def in_place(self, cls: Ints, nodes: Ints, feasible: Bools) -> Ints:
        """Pick each pod's own node from what it would score on every one."""
        found = np.zeros(len(cls), dtype=np.int64)
        for c in np.unique(cls).tolist():
            own = slice(*np.searchsorted(cls, (c, c + 1)))
            table = self.scores(c, nodes[own], feasible[own])
            found[own] = table[np.arange(len(table)), nodes[own]]
        return found


class Usage:
    """What the resources of a score amount to, for pods on their nodes.

    Parameters
    ----------
    scored
        The resources.
    """

    def __init__(self, scored: Scored, kinds: Sequence[Signature]) -> None:
        self._scored = scored
        state = scored.state
        self._rows = [state.resources[spec.name] for spec in scored.specs]
        self.weights = np.array([spec.weight or 1 for spec in scored.specs], dtype=np.int64)
        shape = (len(scored.specs), len(kinds))
        self.asked, self.own = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        self.counted = np.zeros(shape, dtype=np.bool_)
        for c, kind in enumerate(kinds):
            asked = scored.requests(kind)
            for i, spec in enumerate(scored.specs):
                self.asked[i, c] = asked.get(spec.name, 0)
                self.counted[i, c] = spec.name in NATIVE or bool(asked.get(spec.name))
                if scored.nonzero and spec.name in (CPU, MEMORY):
                    self.own[i, c] = state.nonzero_vector(kind)[0 if spec.name == CPU else 1]
                else:
                    self.own[i, c] = state.vector(kind)[state.resources[spec.name]]

    @property
    def specs(self) -> Sequence[ResourceSpec]:
        """The resources."""
        return self._scored.specs

    @property
    def of_the_node(self) -> bool:
        """Whether a node's usage is the same for all its pods: what counts, and what a pod counts for on its own."""
        here = self.allocatable.any(axis=1)
        counted = self.counted[here]
        return bool((counted == counted[:, :1]).all()) and bool((self.asked == self.own).all())

    @property
    def held(self) -> Ints:
        """``[r, n]`` what is used of each node."""
        used = [self._scored.on_nodes(spec.name) for spec in self.specs]
        return np.array(used, dtype=np.int64).reshape(len(used), self._scored.state.size)

    @property
    def allocatable(self) -> Ints:
        """``[r, n]`` what nodes have."""
        found: Ints = self._scored.state.allocatable[self._rows]
        return found

    @property
    def capacity(self) -> Ints:
        """``[r, n]`` what nodes have of the resources that count for the pods of the first class; 0 of the others."""
        found: Ints = np.where(self.counted[:, :1], self.allocatable, 0)
        return found

    @property
    def counts_for_all(self) -> bool:
        """Whether all resources count for all pods."""
        return bool(self.counted.all())

    def of(self, cls: Ints, nodes: Ints, *, there: bool = True) -> tuple[Ints, Ints, Ints]:
        """Return usage without and with the pod, and capacity, each ``[r, k]``; capacity 0 where none counts.

        Parameters
        ----------
        there
            Whether the pods are on their nodes already.
        """
        present = [self._scored.on_nodes(spec.name)[nodes] for spec in self._scored.specs]
        before = np.array(present, dtype=np.int64).reshape(len(self._rows), len(nodes))
        if there:
            before = before - self.own[:, cls]
        capacity = np.where(self.counted[:, cls], self.allocatable[:, nodes], 0)
        return before, before + self.asked[:, cls], capacity


class FitScores:
    """Scores of NodeResourcesFit."""

    def __init__(self, plugin: NodeResourcesFit, kinds: Sequence[Signature]) -> None:
        self.plugin = plugin
        self.usage = Usage(plugin.scored(), kinds)

    def scores(self, cls: Ints, nodes: Ints) -> Ints:
        """Score by the usage with the pod."""
        _, after, capacity = self.usage.of(cls, nodes)
        return self.plugin.points(after, capacity, self.usage.weights)

    def most(self, c: int) -> int:
        """Return what the scale allows."""
        return POINTS


class BalancedScores:
    """Scores of NodeResourcesBalancedAllocation."""

    def __init__(self, plugin: NodeResourcesBalancedAllocation, kinds: Sequence[Signature]) -> None:
        self.plugin = plugin
        self.usage = Usage(plugin.scored(), kinds)
        self.scored = np.array([plugin.pre_score(CycleState(kind.pod, kind), np.zeros(0, int)) for kind in kinds])

    def scores(self, cls: Ints, nodes: Ints) -> Ints:
        """Score by the usage with the pod, and without it in releases that compare."""
        before, after, capacity = self.usage.of(cls, nodes)
        points: Ints = np.where(self.scored[cls], self.plugin.points(before, after, capacity), 0)
        return points

    def arriving(self, cls: Ints, nodes: Ints) -> Ints:
        """``[k]`` the score of a pod of each class that comes to the node beside it."""
        before, after, capacity = self.usage.of(cls, nodes, there=False)
        points: Ints = np.where(self.scored[cls], self.plugin.points(before, after, capacity), 0)
        return points

    def most(self, c: int) -> int:
        """Return nothing for a pod that is not scored."""
        return POINTS if self.scored[c] else 0


class FixedScores:
    """Scores that depend on the pod and the node alone.

    Parameters
    ----------
    table
        Returns ``[n]`` the scores of a signature; without it, all are 0.
    """

    def __init__(self, kinds: Sequence[Signature], table: Callable[[Signature], Ints] | None = None) -> None:
        self._tables = [table(kind) for kind in kinds] if table else None

    def scores(self, cls: Ints, nodes: Ints) -> Ints:
        """Look scores up."""
        if self._tables is None:
            return np.zeros(len(nodes), dtype=np.int64)
        return np.array([self._tables[c][n] for c, n in zip(cls.tolist(), nodes.tolist(), strict=True)], dtype=np.int64)

    def row(self, c: int) -> Ints | None:
        """Return ``[n]`` the scores of a class; ``None`` if all are 0."""
        return self._tables[c] if self._tables is not None else None

    def most(self, c: int) -> int:
        """Return the best node's score."""
        return int(self._tables[c].max(initial=0)) if self._tables is not None else 0


class ScaledScores:
    """Scores that are scaled by the highest of the feasible nodes, like those of TaintToleration and NodeAffinity."""

    def __init__(self, kinds: Sequence[Signature], raw: Callable[[Signature], Ints], *, reverse: bool) -> None:
        self.raw = [raw(kind) for kind in kinds]
        self.reverse = reverse

    def scores(self, c: int, nodes: Ints, feasible: Bools) -> Ints:
        """Scale as ``DefaultNormalizeScore`` does."""
        highest = np.where(feasible, self.raw[c], 0).max(axis=1, initial=0)
        return self._scaled(self.raw[c], highest[:, None])

    def in_place(self, cls: Ints, nodes: Ints, feasible: Bools) -> Ints:
        """Scale the own node only."""
        points = np.full(len(cls), POINTS if self.reverse else 0, dtype=np.int64)
        differ = np.flatnonzero([not self.flat(c) for c in cls.tolist()])
        if len(differ):
            raw = np.array([self.raw[c] for c in cls[differ].tolist()])
            highest = np.where(feasible[differ], raw, 0).max(axis=1, initial=0)
            points[differ] = self._scaled(raw[np.arange(len(differ)), nodes[differ]], highest)
        return points

    def _scaled(self, raw: Ints, highest: Ints) -> Ints:
        scaled = np.where(highest > 0, raw * POINTS // np.maximum(highest, 1), 0)
        scaled = np.minimum(scaled, POINTS)  # infeasible nodes may be higher than all that count
        points: Ints = POINTS - scaled if self.reverse else scaled
        return points

    def most(self, c: int) -> int:
        """Return nothing where no node has anything."""
        return POINTS if self.reverse or self.raw[c].any() else 0

    def counts(self, c: int) -> Iterable[DomainCounts]:
        """Return none: pods matter only as far as they make nodes infeasible."""
        return ()

    def flat(self, c: int) -> bool:
        """Whether all nodes are alike."""
        return not self.raw[c].any()


class AffinityScores(ClassByClass):
    """Scores of InterPodAffinity."""

    def __init__(self, plugin: InterPodAffinity, kinds: Sequence[Signature]) -> None:
        self._state: ClusterState = plugin.state
        self._each = [list(plugin.worths(kind)) for kind in kinds]
        self._kinds = kinds

    def scores(self, c: int, nodes: Ints, feasible: Bools) -> Ints:
        """Sum, and scale between the lowest and the highest feasible node, dividing first as upstream does."""
        raw = self._raw(c, nodes)
        far = np.iinfo(np.int64).max
        lowest = np.where(feasible, raw, far).min(axis=1, initial=far)[:, None]
        highest = np.where(feasible, raw, -far).max(axis=1, initial=-far)[:, None]
        points: Ints = np.where(feasible, _between(raw, lowest, highest), 0)
        return points

    def at_most(self, c: int, nodes: Ints, feasible: Bools, allowed: Bools, filled: int) -> Ints:
        """``[k]`` the most points of a pod of a class on each node, whichever nodes others fill or leave.

        Parameters are those of `SpreadScores.at_most`. The highest nodes count as filled, and any that may be feasible
        as the lowest.
        """
        raw, own = self._raw(c, nodes), (np.arange(len(nodes)), nodes)
        far = np.iinfo(np.int64).max
        lowest = np.minimum(np.where(allowed, raw, far).min(axis=1, initial=far), raw[own])
        others = feasible.copy()
        others[own] = False
        return _between(raw[own], lowest, np.maximum(-least_left(-raw, others, filled), raw[own]))

    def _raw(self, c: int, nodes: Ints) -> Ints:
        """``[k, n]`` what nodes are worth to a pod that is taken off ``nodes[k]``."""
        raw = np.zeros((len(nodes), self._state.size), dtype=np.int64)
        for counts, topology, weight in self._each[c]:
            if not topology.size:
                continue
            domain = topology.domain
            raw += np.where(domain >= 0, counts.total(topology)[domain] * weight, 0)
            if own := self._state.amount(counts, self._kinds[c]):
                home = domain[nodes]
                raw -= ((domain == home[:, None]) & (home >= 0)[:, None]) * (own * weight)
        return raw

    def worths(self, c: int) -> Sequence[tuple[DomainCounts, Topology, int]]:
        """Return what is counted for a class, by which domains, and what each of it is worth."""
        return self._each[c]

    def most(self, c: int) -> int:
        """Return nothing for a pod that no term is about."""
        return 0 if self.flat(c) else POINTS

    def counts(self, c: int) -> Iterable[DomainCounts]:
        """Return the counts of all terms."""
        return [counts for counts, _, _ in self._each[c]]

    def flat(self, c: int) -> bool:
        """Whether all nodes are alike."""
        return not self._each[c]


def _between(raw: Ints, lowest: Ints, highest: Ints) -> Ints:
    """Scale between two values, dividing first; nothing where they are the same."""
    span = np.where(highest > lowest, highest - lowest, 1)
    scaled = float(POINTS) * ((raw - lowest).astype(np.float64) / span.astype(np.float64))
    points: Ints = np.where(highest > lowest, scaled, 0.0).astype(np.int64)
    return points


class ByFramework(ClassByClass):
    """Scores of any other plugin, asked pod by pod, on the release's own scale."""

    def __init__(self, plugin: Plugin, kinds: Sequence[Signature]) -> None:
        self.plugin = plugin
        self._kinds = kinds
        self._unit = plugin.release.score_unit

    def scores(self, c: int, nodes: Ints, feasible: Bools) -> Ints:
        """Run PreScore, Score and NormalizeScore on the feasible nodes."""
        plugin, kind = self.plugin, self._kinds[c]
        found = np.zeros(feasible.shape, dtype=np.int64)
        order = plugin.state.order
        for k, node in enumerate(nodes.tolist()):
            listed = order[feasible[k][order]]
            cycle = CycleState(kind.pod, kind)
            plugin.state.forget(kind, node)
            try:
                plugin.pre_filter(cycle)
                if len(listed) and plugin.pre_score(cycle, listed):
                    raw: Any = plugin.score(cycle, listed)
                    normal = plugin.normalize(cycle, listed, raw)
                    found[k, listed] = np.rint(normal * self._unit) if self._unit > 1 else normal
            finally:
                plugin.state.assume(kind, node)
        return found

    def most(self, c: int) -> int:
        """Return what the scale allows."""
        return self.plugin.release.points * self._unit

    def counts(self, c: int) -> None:
        """Return ``None``: nothing is known of what the plugin reads."""
        return

    def flat(self, c: int) -> bool:
        """Return that nodes may differ."""
        return False


def scores_of(plugin: Plugin, kinds: Sequence[Signature]) -> OnNode | OverFeasible:
    """Return the scores of a plugin for the pods of some signatures, in the unit of `Release.score_unit`."""
    kind = type(plugin)  # not isinstance: a plugin derived from one of these may score otherwise
    if kind is NodeResourcesBalancedAllocation and plugin.release.balances_volumes:
        return ByFramework(plugin, kinds)  # it reads the disks on the node too
    if isinstance(plugin, NodeResourcesFit) and kind is NodeResourcesFit:
        return FitScores(plugin, kinds)
    if isinstance(plugin, NodeResourcesBalancedAllocation) and kind is NodeResourcesBalancedAllocation:
        return BalancedScores(plugin, kinds)
    if isinstance(plugin, ImageLocality) and kind is ImageLocality:
        return FixedScores(kinds, plugin.scores)
    if kind is VolumeBinding or kind is DynamicResources:
        return FixedScores(kinds)
    if isinstance(plugin, TaintToleration) and kind is TaintToleration:
        return ScaledScores(kinds, plugin.untolerated, reverse=True)
    if isinstance(plugin, NodeAffinity) and kind is NodeAffinity:
        return ScaledScores(kinds, plugin.weights, reverse=False)
    if isinstance(plugin, PodTopologySpread) and kind is PodTopologySpread:
        return SpreadScores(plugin, kinds)
    if isinstance(plugin, InterPodAffinity) and kind is InterPodAffinity:
        return AffinityScores(plugin, kinds)
    return ByFramework(plugin, kinds)
