"""The points of InterPodAffinity that pods miss wherever they are.

Its scores are scaled between the lowest and the highest feasible node. So a pod has none where no feasible node is
worth less than its own: alone in the cluster, or where hard constraints leave only nodes that are all alike, as they do
to replicas each of which must be on a node of its own. Which nodes are full is not known, so a pod counts as missing
points only if no node that takes it, when all others are empty, is worth less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import comb, gcd

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import POINTS, Placement
from stowplan.plugins_compat.final_state.plugin_scores import AffinityScores
from stowplan.plugins_compat.final_state.scorer import FinalStateScorer, classes_in
from stowplan.plugins_compat.framework.counts import DomainCounts
from stowplan.plugins_compat.plugins.inter_pod_affinity import InterPodAffinity
from stowplan.plugins_compat.plugins.pod_topology_spread import PodTopologySpread

MOST_WAYS = 3_000
"""Ways to place the pods of a class up to which they are compared."""

MOST_COMPARED, EACH_WAY = 50_000_000, 5_000
"""Pairs of a pod and a node that are compared for all classes, and as many of them as take the time of one more way."""


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """Pods that are counted by domain.

    Parameters
    ----------
    domain
        ``[n]`` where a pod on each node counts, -1 if nowhere.
    at
        ``[n]`` the domain that each node reads, -1 if none.
    held
        ``[d]`` pods that are not of the class.
    own
        What a pod of the class counts for.
    """

    domain: Ints
    at: Ints
    held: Ints
    own: int

    def beside(self, pods: Ints, nodes: Ints) -> Ints:
        """``[k, d]`` what is counted while a pod of ``nodes[k]`` is taken off, with ``pods[n]`` on each node."""
        counts = self.domain >= 0
        total = self.held + self.own * np.bincount(self.domain[counts], pods[counts], len(self.held)).astype(np.int64)
        found = np.repeat(total[None], len(nodes), axis=0)
        gone = np.flatnonzero(self.domain[nodes] >= 0)
        found[gone, self.domain[nodes[gone]]] -= self.own
        return found

    def read(self, counted: Ints) -> Ints:
        """``[k, n]`` what each node reads of ``counted[k, d]``; 0 without a domain."""
        if not counted.shape[1]:
            return np.zeros((len(counted), len(self.at)), dtype=np.int64)
        found: Ints = np.where(self.at >= 0, counted[:, self.at], 0)
        return found

    @property
    def key(self) -> tuple[bytes, bytes, bytes, int]:
        """What tells two readings apart."""
        return self.domain.tobytes(), self.at.tobytes(), self.held.tobytes(), self.own


@dataclass(frozen=True, slots=True, eq=False)
class _Limit:
    """A hard constraint of PodTopologySpread: ``compared`` domains, and what a pod counts for that comes.

    Where there are fewer domains than it asks for, the least of them counts as 0.
    """

    reading: _Reading
    compared: Ints
    least_is_zero: bool
    arrives: int
    max_skew: int

    def admits(self, pods: Ints, nodes: Ints) -> Bools:
        """``[k, n]`` the nodes that take the pod of ``nodes[k]`` again."""
        counted = self.reading.beside(pods, nodes)
        least = (
            counted[:, self.compared].min(axis=1) if not self.least_is_zero else np.zeros(len(nodes), dtype=np.int64)
        )
        skew = self.reading.read(counted) + self.arrives - least[:, None]
        found: Bools = (self.reading.at >= 0) & (skew <= self.max_skew)
        return found

    @property
    def key(self) -> tuple[object, ...]:
        """What tells two constraints apart."""
        return self.reading.key, self.compared.tobytes(), self.least_is_zero, self.arrives, self.max_skew


@dataclass(frozen=True, slots=True, eq=False)
class _Workload:
    """A class whose pods are worth nodes by each other alone.

    Parameters
    ----------
    allowed, can_be
        ``[n]`` nodes that filters admit which read no pods, and these with those on which pods of the class are today.
    worths
        What a node is worth: readings, and what each counted pod adds.
    limits, apart
        Hard constraints; and readings of which a node must have none.
    """

    allowed: Bools
    can_be: Bools
    worths: Sequence[tuple[_Reading, int]]
    limits: Sequence[_Limit]
    apart: Sequence[_Reading]

    @property
    def key(self) -> tuple[object, ...]:
        """What tells two workloads apart: those of one key miss the same."""
        return (
            self.allowed.tobytes(),
            self.can_be.tobytes(),
            tuple((reading.key, worth) for reading, worth in self.worths),
            tuple(limit.key for limit in self.limits),
            tuple(reading.key for reading in self.apart),
        )

    def missing(self, pods: Ints) -> int:
        """Return how many pods have no points at all where ``pods[n]`` are on each node."""
        nodes = np.flatnonzero(pods)
        admitted = np.repeat(self.allowed[None], len(nodes), axis=0)
        for limit in self.limits:
            admitted &= limit.admits(pods, nodes)
        for reading in self.apart:
            admitted &= reading.read(reading.beside(pods, nodes)) == 0
        worth = sum((w * r.read(r.beside(pods, nodes)) for r, w in self.worths), np.zeros_like(admitted, np.int64))
        own = np.arange(len(nodes)), nodes
        lower = (admitted & (worth < worth[own][:, None])).any(axis=1)
        return int(pods[nodes][~(lower & admitted[own])].sum())

    def cells(self) -> Sequence[Ints]:
        """Return sets of nodes that are alike to the class: they can be exchanged for one another."""
        alike: list[Ints] = [self.allowed.astype(np.int64)]
        readings = [*(r for r, _ in self.worths), *(limit.reading for limit in self.limits), *self.apart]
        for reading in readings:
            for domain in (reading.domain, reading.at):
                alike.append(_place(domain, reading))
        for limit in self.limits:
            compared = np.zeros(len(limit.reading.held) + 1, dtype=np.int64)
            compared[limit.compared] = 1
            alike.append(compared[limit.reading.at])
        nodes = np.flatnonzero(self.can_be)
        _, cell = np.unique(np.array(alike)[:, nodes], axis=1, return_inverse=True)
        return [nodes[cell.reshape(-1) == i] for i in range(int(cell.max(initial=-1)) + 1)]


def _place(domain: Ints, reading: _Reading) -> Ints:
    """``[n]`` a number that nodes share if they are alike: of the domain, or of what it holds where it is one node."""
    here = domain >= 0
    nodes = np.bincount(reading.domain[reading.domain >= 0], minlength=len(reading.held))
    both = np.bincount(domain[here], minlength=len(reading.held))
    single = (nodes <= 1) & (both <= 1)
    found = np.full(len(domain), -1, dtype=np.int64)
    found[here] = np.where(single[domain[here]], -2 - reading.held[domain[here]], domain[here])
    return found


class AffinityFloor:
    """Points that pods miss at least on each node, on an average of the pods of a class.

    Parameters
    ----------
    scorer
        Without any of the pods.
    size
        ``[c]`` how many there are; any number of them may be placed.
    start
        Where they are today; they may stay where filters would refuse them now.
    """

    def __init__(self, scorer: FinalStateScorer, one: AffinityScores, size: Ints, start: Placement) -> None:
        self._scorer, self._one, self._size, self._start = scorer, one, size, start
        self._counting = scorer.classes_counted()
        self._known: dict[tuple[object, ...], float] = {}
        self._left = MOST_COMPARED

    def points_missed(self, classes: range) -> Floats:
        """``[c, n]`` for some classes."""
        scorer, one, start = self._scorer, self._one, self._start
        missed = np.zeros((len(classes), scorer.framework.state.size))
        for row, c in enumerate(classes):
            if one.flat(c):
                continue
            counted = classes_in(self._counting, one.counts(c))
            if not counted:
                missed[row] = POINTS * _at_the_lowest(one, c, scorer.feasibility.allowed(c))
            elif counted == {c} and not scorer.feasibility.always_changes(c):
                today = np.zeros(missed.shape[1], dtype=np.bool_)
                today[start.only(np.array([c])).node] = True
                workload = _workload(scorer, one, c, self._counting, today)
                key = (int(self._size[c]), *workload.key)
                if key not in self._known:
                    self._known[key], self._left = _share(workload, int(self._size[c]), self._left)
                missed[row] = POINTS * self._known[key]
        return missed


def _at_the_lowest(one: AffinityScores, c: int, allowed: Bools) -> Bools:
    """``[n]`` whether no node that is allowed is worth less, whatever pods are placed."""
    worth = np.zeros(len(allowed), dtype=np.int64)
    for counts, topology, each in one.worths(c):
        if topology.size:
            worth += np.where(topology.domain >= 0, counts.total(topology)[topology.domain] * each, 0)
    found: Bools = worth <= worth[allowed].min(initial=np.iinfo(np.int64).max)
    return found


def _workload(
    scorer: FinalStateScorer, one: AffinityScores, c: int, counting: Mapping[int, set[int]], today: Bools
) -> _Workload:
    """Read a class. Filters that count pods of other classes are left out: they can only refuse more nodes."""
    kind, state = scorer.kinds[c], scorer.framework.state

    def reading(counts: DomainCounts, domain: Ints, at: Ints, size: int) -> _Reading:
        here = domain >= 0
        held = np.bincount(domain[here], counts.per_node[here], size).astype(np.int64)
        return _Reading(domain, at, held, state.amount(counts, kind) if c in classes_in(counting, [counts]) else 0)

    def alone(counts: DomainCounts) -> bool:
        return classes_in(counting, [counts]) <= {c}

    limits, apart = [], []
    for plugin in scorer.feasibility.reading_pods(c):
        if type(plugin) is PodTopologySpread:
            for constraint, counts, eligible, domains in plugin.required(kind):
                if alone(counts) and len(domains):
                    at = constraint.topology.domain
                    read = reading(counts, np.where(eligible.mask, at, -1), at, constraint.topology.size)
                    few = len(domains) < constraint.min_domains
                    limits.append(_Limit(read, domains, few, int(constraint.counts_self), constraint.max_skew))
        elif type(plugin) is InterPodAffinity:
            for counts, topology in plugin.required(kind)[2]:
                if alone(counts):
                    apart.append(reading(counts, topology.domain, topology.domain, topology.size))
    each = [(reading(counts, t.domain, t.domain, t.size), worth) for counts, t, worth in one.worths(c)]
    unit = gcd(*(worth for _, worth in each)) or 1  # what matters is which node is worth more
    worths = [(read, worth // unit) for read, worth in each]
    allowed = scorer.feasibility.allowed(c)
    return _Workload(allowed, allowed | today, worths, limits, apart)


def _share(workload: _Workload, size: int, left: int) -> tuple[float, int]:
    """Return what share of the pods miss all points at least, however many are placed, and what may be compared yet."""
    least, nodes = 1.0, len(workload.allowed)
    cells = workload.cells()
    # As many as there are ways to divide the pods among the cells, or more.
    if not cells or left <= 0 or comb(size + len(cells), size) > MOST_WAYS:
        return 0.0, left
    ways = list(islice(_ways(cells, size), MOST_WAYS + 1))
    if len(ways) > MOST_WAYS:
        return 0.0, left
    for way in ways:
        pods = np.zeros(nodes, dtype=np.int64)
        for node, count in way:
            pods[node] = count
        left -= len(way) * nodes + EACH_WAY
        if left < 0:
            return 0.0, left
        least = min(least, workload.missing(pods) / pods.sum())
        if not least:
            break
    return least, left


def _ways(cells: Sequence[Ints], size: int) -> Iterator[Sequence[tuple[int, int]]]:
    """Yield the ways to place up to so many pods, as nodes and numbers; those that differ by like nodes but once."""
    for placed in range(1, size + 1):
        for shares in _shares(placed, len(cells)):
            parts = [list(_parts(number, number, len(cell))) for number, cell in zip(shares, cells, strict=True)]
            for way in product(*parts):
                yield [
                    (int(node), count)
                    for cell, counts in zip(cells, way, strict=True)
                    for node, count in zip(cell, counts, strict=False)
                ]


def _shares(pods: int, cells: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to divide pods among cells."""
    if cells <= 1:
        yield (pods,) * cells
        return
    for first in range(pods + 1):
        for others in _shares(pods - first, cells - 1):
            yield (first, *others)


def _parts(pods: int, most: int, nodes: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to divide pods among nodes that are alike: each as numbers that do not increase."""
    if not pods:
        yield ()
    elif nodes:
        for first in range(min(pods, most), 0, -1):
            for others in _parts(pods - first, first, nodes - 1):
                yield (first, *others)
