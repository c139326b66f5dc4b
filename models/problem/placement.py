"""A placement: the number of pods of each class on each node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Bools, Ints

NOWHERE = -1
"""The node of a pod that is unplaced."""


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The positive entries of ``y[c, n]``, sorted by class, then node.

    Parameters
    ----------
    cls, node, count
        ``[k]`` class, node and number of pods of each entry.
    """

    cls: Ints
    node: Ints
    count: Ints

    @classmethod
    def of(cls, entries: Iterable[tuple[int, int, int]]) -> Placement:
        """Build from (class, node, count) triples; equal pairs are added up, empty ones dropped."""
        total: dict[tuple[int, int], int] = {}
        for c, n, k in entries:
            total[c, n] = total.get((c, n), 0) + k
        kept = sorted((c, n, k) for (c, n), k in total.items() if k)
        table = np.array(kept, dtype=np.int64).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())

    @classmethod
    def summed(cls, key: Ints, count: Ints, nodes: int) -> Placement:
        """Build from keys ``class * nodes + node``; the counts of equal ones are added up, and empty ones dropped."""
        keys, which = np.unique(key, return_inverse=True)
        total = np.zeros(len(keys), dtype=np.int64)
        np.add.at(total, which.reshape(-1), count)
        kept = total > 0
        return cls(keys[kept] // nodes, keys[kept] % nodes, total[kept])

    @classmethod
    def together(cls, parts: Sequence[Placement], nodes: int) -> Placement:
        """Build from all entries of several placements; the counts of equal ones are added up."""
        key = np.concatenate([part.cls * nodes + part.node for part in parts])
        return cls.summed(key, np.concatenate([part.count for part in parts]), nodes)

    @classmethod
    def from_table(cls, y: Ints) -> Placement:
        """Build from a dense ``[c, n]`` table."""
        c, n = np.nonzero(y)
        return cls(c.astype(np.int64), n.astype(np.int64), y[c, n].astype(np.int64))

    def table(self, classes: int, nodes: int) -> Ints:
        """Return the dense ``[c, n]`` table."""
        y = np.zeros((classes, nodes), dtype=np.int64)
        y[self.cls, self.node] = self.count
        return y

    def placed(self, classes: int) -> Ints:
        """``[c]`` pods of each class that have a node."""
        total = np.zeros(classes, dtype=np.int64)
        np.add.at(total, self.cls, self.count)
        return total

    def per_node(self, nodes: int, weight: Ints | None = None) -> Ints:
        """``[n]`` the sum over classes of ``weight[c]·y[c,n]``; plain pod counts without a weight."""
        total = np.zeros(nodes, dtype=np.int64)
        np.add.at(total, self.node, self.count if weight is None else self.count * weight[self.cls])
        return total

    def only(self, classes: Ints) -> Placement:
        """Return the entries of the given classes (sorted)."""
        first = np.searchsorted(self.cls, classes, "left")
        last = np.searchsorted(self.cls, classes, "right")
        length = last - first
        ends = np.cumsum(length)
        at = np.arange(int(length.sum())) + np.repeat(first - ends + length, length)
        return Placement(self.cls[at], self.node[at], self.count[at])

    def where(self, keep: Bools) -> Placement:
        """Return the entries ``[k]`` for which it says so."""
        return Placement(self.cls[keep], self.node[keep], self.count[keep])

    def beyond(self, other: Placement, nodes: int) -> Placement:
        """Return what this placement has more than another: ``max(0, y[c,n] − other[c,n])``."""
        mine, theirs = self.cls * nodes + self.node, other.cls * nodes + other.node
        at = np.minimum(np.searchsorted(theirs, mine), max(len(theirs) - 1, 0))
        matched = theirs[at] == mine if len(theirs) else np.zeros(len(mine), dtype=np.bool_)
        more = self.count - np.where(matched, other.count[at] if len(theirs) else 0, 0)
        keep = more > 0
        return Placement(self.cls[keep], self.node[keep], more[keep])

    def moved(self, other: Placement, nodes: int) -> int:
        """Return how many pods of this placement are elsewhere in another, or nowhere."""
        return int(self.beyond(other, nodes).count.sum())

    def at(self, c: int, n: int) -> int:
        """Return how many pods of a class are on a node."""
        first, last = np.searchsorted(self.cls, (c, c + 1))
        at = int(first) + int(np.searchsorted(self.node[first:last], n))
        return int(self.count[at]) if at < last and self.node[at] == n else 0

    def with_pod_moved(self, c: int, source: int, target: int) -> Placement:
        """Return the placement with one pod of a class moved; `NOWHERE` means no node."""
        cls, node, count = self.cls, self.node, self.count.copy()
        for n, pods in ((source, -1), (target, 1)):
            if n == NOWHERE:
                continue
            first, last = np.searchsorted(cls, (c, c + 1))
            at = int(first) + int(np.searchsorted(node[first:last], n))
            if at < last and node[at] == n:
                count[at] += pods
                if not count[at]:
                    cls, node, count = np.delete(cls, at), np.delete(node, at), np.delete(count, at)
            else:
                cls, node, count = np.insert(cls, at, c), np.insert(node, at, n), np.insert(count, at, pods)
        return Placement(cls, node, count)

    def entries(self) -> Iterable[tuple[int, int, int]]:
        """Iterate over (class, node, count)."""
        return zip(self.cls.tolist(), self.node.tolist(), self.count.tolist(), strict=True)

    def counts(self) -> dict[tuple[int, int], int]:
        """Return the entries as a mapping from (class, node) to count."""
        return {(c, n): k for c, n, k in self.entries()}

    def same_as(self, other: Placement) -> bool:
        """Whether both placements say the same."""
        return (
            np.array_equal(self.cls, other.cls)
            and np.array_equal(self.node, other.node)
            and np.array_equal(self.count, other.count)
        )
