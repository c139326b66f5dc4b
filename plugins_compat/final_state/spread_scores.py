"""Scores of PodTopologySpread for many pods at once, each on its node."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.objective import HOSTNAME
from stowplan.models.problem import POINTS
from stowplan.plugins_compat.framework.counts import DomainCounts
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.plugins.pod_topology_spread import PodTopologySpread, SoftConstraint

FAR = np.int64(1 << 40)
"""More than any count weighs."""

MOST_LISTED = 64
"""Domains up to which a table of nodes and domains is made."""


class SpreadScores:
    """Scores of PodTopologySpread.

    Each constraint counts, weighs by the number of domains of the candidates, and is added to the others in the order
    of the pod's constraints, so that floating-point sums are those of the plugin to the last bit.
    """

    def __init__(self, plugin: PodTopologySpread, kinds: Sequence[Signature]) -> None:
        self._kinds = kinds
        self._soft = [plugin.preferred(kind) for kind in kinds]
        self._complete = [plugin.needs_all_keys(kind) for kind in kinds]
        self._state: ClusterState = plugin.state
        self._logarithms = np.array([math.log(size + 2) for size in range(plugin.state.size + 2)])
        self._tables: dict[int, Floats] = {}
        self._idle = 0 if plugin.release.skips_idle_scores else POINTS

    def scores(self, c: int, nodes: Ints, feasible: Bools) -> Ints:
        """Count, weigh, round and turn over as the plugin does."""
        if self.flat(c):
            return np.full(feasible.shape, self._idle, dtype=np.int64)
        rounded, candidates, ignored = self._rounded(np.full(len(nodes), c), nodes, feasible)
        highest, lowest = _ends(rounded, candidates)
        points: Ints = np.where(ignored, 0, _turned(rounded, highest[:, None], lowest[:, None]))
        return points

    def in_place(self, cls: Ints, nodes: Ints, feasible: Bools) -> Ints:
        """Count and weigh on all nodes, since the highest and the lowest matter, and turn over the own one."""
        points = np.full(len(cls), self._idle, dtype=np.int64)
        some = np.flatnonzero([not self.flat(c) for c in cls.tolist()])
        if len(some):
            rounded, candidates, ignored = self._rounded(cls[some], nodes[some], feasible[some])
            own = np.arange(len(some)), nodes[some]
            points[some] = np.where(ignored[own], 0, _turned(rounded[own], *_ends(rounded, candidates)))
        return points

    def _rounded(self, cls: Ints, nodes: Ints, feasible: Bools) -> tuple[Ints, Bools, Bools]:
        """``[k, n]`` what counts sum up to, before it is turned over; the candidates; and nodes that are left out."""
        classes, position = np.unique(cls, return_inverse=True)
        without_key = np.zeros((len(classes), self._state.size), dtype=np.bool_)
        for i, c in enumerate(classes.tolist()):
            if self._complete[c]:
                for soft in self._soft[c]:
                    without_key[i] |= soft.constraint.topology.domain < 0
        ignored = without_key[position]
        candidates = feasible & ~ignored
        raw = np.zeros(feasible.shape)
        for q in range(max(len(self._soft[c]) for c in classes.tolist())):
            longer = ((i, c) for i, c in enumerate(classes.tolist()) if len(self._soft[c]) > q)
            for group in _by_topology((i, c, self._soft[c][q]) for i, c in longer):
                within = np.full(len(classes), -1, dtype=np.int64)
                within[[i for i, _, _ in group]] = np.arange(len(group))
                rows = np.flatnonzero(within[position] >= 0)
                raw[rows] += self._worth(group, within[position[rows]], nodes[rows], candidates[rows])
        raw[ignored] = 0.0
        return _half_up(raw), candidates, ignored

    def _worth(
        self, group: Sequence[tuple[int, int, SoftConstraint]], member: Ints, nodes: Ints, candidates: Bools
    ) -> Floats:
        """``[k, n]`` what constraints of one topology are worth, the pod of ``group[member[k]]`` taken off its node."""
        domain = group[0][2].constraint.topology.domain
        counted = self._counted(group, member, nodes)
        weight = self._logarithms[self._sizes(group, member, candidates)]
        skew = np.array([float(soft.constraint.max_skew - 1) for _, _, soft in group])[member]
        return np.where(domain >= 0, counted * weight[:, None] + skew[:, None], 0.0)

    def _counted(self, group: Sequence[tuple[int, int, SoftConstraint]], member: Ints, nodes: Ints) -> Ints:
        """``[k, n]`` the pods that count for each node, the pod of ``group[member[k]]`` taken off its own."""
        first = group[0][2].constraint
        domain = first.topology.domain
        amounts = [[self._state.amount(counts, self._kinds[c]) for counts in soft.counts] for _, c, soft in group]
        if first.key == HOSTNAME:
            counted = np.array([soft.counts[0].per_node for _, _, soft in group])[member]
            counted[np.arange(len(nodes)), nodes] -= np.array([amount[0] for amount in amounts])[member]
        else:
            counted = np.array([_total(soft)[domain] for _, _, soft in group])[member]
            own = np.zeros((len(group), self._state.size), dtype=np.int64)
            for i, (_, _, soft) in enumerate(group):
                for amount, eligible in zip(amounts[i], soft.eligible, strict=True):
                    own[i] += amount * eligible.mask
            home = domain[nodes]
            together = (domain == home[:, None]) & (home >= 0)[:, None]
            counted -= np.where(together, own[member, nodes][:, None], 0)
        found: Ints = counted
        return found

    def _sizes(self, group: Sequence[tuple[int, int, SoftConstraint]], member: Ints, candidates: Bools) -> Ints:
        """``[k]`` number of domains of the candidates; a missing label is a domain too."""
        topology = group[0][2].constraint.topology
        if group[0][2].constraint.key == HOSTNAME:
            hosts: Ints = candidates.sum(axis=1)
            return hosts
        if topology.size > MOST_LISTED:
            sizes = np.array([len(np.unique(topology.domain[row])) for row in candidates], dtype=np.int64)
        else:
            table = self._tables.get(id(topology))
            if table is None:
                listed = topology.domain[:, None] == np.arange(-1, topology.size)
                table = self._tables[id(topology)] = listed.astype(np.float32)
            sizes = (candidates.astype(np.float32) @ table > 0).sum(axis=1)
        return np.where(np.array([soft.repeated for _, _, soft in group])[member], 0, sizes)

    def at_most(self, c: int, nodes: Ints, feasible: Bools, allowed: Bools, filled: int) -> Ints:
        """``[k]`` the most points of a pod of a class on each node, whichever nodes others fill or leave.

        Counts of its own node weigh as little as they may, and those of all others as much: the weight grows with the
        number of domains of the candidates, which is known within limits.

        Parameters
        ----------
        feasible
            ``[k, n]`` the feasible nodes of each today; its own counts as one in any case.
        allowed
            ``[n]`` nodes that may become feasible.
        filled
            How many nodes may become infeasible at most: those with the fewest pods, since the others are compared.
        """
        state, alone = self._state, np.zeros(len(nodes), dtype=np.int64)
        lacking = np.zeros(state.size, dtype=np.bool_)
        if self._complete[c]:
            for soft in self._soft[c]:
                lacking |= soft.constraint.topology.domain < 0
        low, high = np.zeros(feasible.shape), np.zeros(feasible.shape)
        for soft in self._soft[c]:
            topology = soft.constraint.topology
            if soft.constraint.key != HOSTNAME and not topology.size:
                continue
            counted, skew = self._counted([(0, c, soft)], alone, nodes), float(soft.constraint.max_skew - 1)
            for k, row in enumerate(feasible & ~lacking):
                fewest, most = self._range(soft, row, allowed & ~lacking, filled)
                low[k] += np.where(topology.domain >= 0, counted[k] * self._logarithms[fewest] + skew, 0.0)
                high[k] += np.where(topology.domain >= 0, counted[k] * self._logarithms[most] + skew, 0.0)
        own = np.arange(len(nodes)), nodes
        here, there = _half_up(low)[own], _half_up(high)
        others = feasible & ~lacking
        others[own] = False
        lowest = least_left(there, others, filled)
        highest = np.maximum(np.where(allowed & ~lacking, there, 0).max(axis=1, initial=0), there[own])
        turned = POINTS * (highest + np.minimum(0, lowest - here)) // np.maximum(highest, 1)
        points = np.where(highest > 0, turned, POINTS)
        return np.where(lacking[nodes], 0, points)

    def _range(self, soft: SoftConstraint, candidates: Bools, allowed: Bools, filled: int) -> tuple[int, int]:
        """Return the least and the highest number of domains if so many candidates are filled, and others not."""
        if soft.constraint.key == HOSTNAME:
            return max(1, int(candidates.sum()) - filled), int((allowed | candidates).sum())
        if soft.repeated:
            return 0, 0
        place = soft.constraint.topology.domain + 1  # a missing label is a domain too
        sizes = np.bincount(place[candidates])
        sizes = np.sort(sizes[sizes > 0])
        emptied = int(np.searchsorted(np.cumsum(sizes), filled, side="right"))
        return max(1, len(sizes) - emptied), int(np.count_nonzero(np.bincount(place[allowed | candidates])))

    def preferred(self, c: int) -> Sequence[SoftConstraint]:
        """Return the constraints of a class."""
        return self._soft[c]

    def complete(self, c: int) -> bool:
        """Whether nodes that lack a key of a class are left out."""
        return self._complete[c]

    def most(self, c: int) -> int:
        """Return nothing for a pod without constraints, in releases that skip it."""
        return self._idle if self.flat(c) else POINTS

    def counts(self, c: int) -> Iterable[DomainCounts]:
        """Return the counts of all constraints."""
        return [counts for soft in self._soft[c] for counts in soft.counts]

    def flat(self, c: int) -> bool:
        """Whether all nodes are alike."""
        return not self._soft[c]


def _by_topology(
    entries: Iterable[tuple[int, int, SoftConstraint]],
) -> Iterable[Sequence[tuple[int, int, SoftConstraint]]]:
    """Group constraints by topology; those of a key that no node has count nothing and are left out."""
    groups: dict[tuple[int, str], list[tuple[int, int, SoftConstraint]]] = defaultdict(list)
    for i, c, soft in entries:
        key = soft.constraint.key
        if key == HOSTNAME or soft.constraint.topology.size:
            groups[id(soft.constraint.topology), key].append((i, c, soft))
    return groups.values()


def _total(soft: SoftConstraint) -> Ints:
    """``[d]`` pods that count in each domain."""
    topology = soft.constraint.topology
    total = np.zeros(topology.size, dtype=np.int64)
    for counts, eligible in zip(soft.counts, soft.eligible, strict=True):
        total += counts.total(topology, eligible)
    return total


def _ends(rounded: Ints, candidates: Bools) -> tuple[Ints, Ints]:
    """``[k]`` the highest and the lowest of the candidates."""
    far = np.iinfo(np.int64).max
    highest = np.where(candidates, rounded, 0).max(axis=1, initial=0)
    lowest = np.where(candidates, rounded, far).min(axis=1, initial=far)
    return highest, lowest


def least_left(values: Ints, here: Bools, filled: int) -> Ints:
    """``[k]`` the least of ``values[k, n]`` where ``here``, once so many are gone; `FAR` if none is left."""
    if filled >= values.shape[1]:
        return np.full(len(values), FAR)
    least: Ints = np.partition(np.where(here, values, FAR), filled, axis=1)[:, filled]
    return least


def _half_up(raw: Floats) -> Ints:
    """Round as upstream does."""
    whole = np.trunc(raw)
    rounded: Ints = (whole + (raw - whole >= 0.5)).astype(np.int64)
    return rounded


def _turned(rounded: Ints, highest: Ints, lowest: Ints) -> Ints:
    """Turn counts over, so that the fewest pods give the most points."""
    turned = POINTS * (highest + np.where(highest > 0, lowest, 0) - rounded) // np.maximum(highest, 1)
    points: Ints = np.where(highest > 0, turned, POINTS)
    return points
