"""Counts of pods with a property, kept up to date as pods come and go.

Spreading and affinity both ask one question again and again: how many pods like *this* are in that domain?
`DomainCounts` answers it in constant time. Volumes ask what is on a node already; a `Multiset` answers that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import Topology

H = TypeVar("H", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Eligible:
    """A set of nodes on which pods count. Compared by identity, so that totals can be kept per set."""

    mask: Bools


@dataclass(slots=True, eq=False)
class DomainCounts:
    """Pods with one property.

    Parameters
    ----------
    per_node
        ``[n]`` how many are on each node.
    """

    per_node: Ints
    _totals: dict[tuple[int, int], tuple[Topology, Eligible | None, Ints]] = field(default_factory=dict)

    def total(self, topology: Topology, eligible: Eligible | None = None) -> Ints:
        """``[d]`` how many are in each domain, on eligible nodes. The array is live: neither change nor keep it."""
        key = (id(topology), id(eligible))
        found = self._totals.get(key)
        if found is None:
            counted = self.per_node if eligible is None else np.where(eligible.mask, self.per_node, 0)
            found = self._totals[key] = (topology, eligible, topology.total(counted))
        return found[2]

    def add(self, node: int, amount: int) -> None:
        """Count ``amount`` more pods on a node; a negative amount takes them away."""
        self.per_node[node] += amount
        for topology, eligible, totals in self._totals.values():
            domain = topology.domain[node]
            if domain >= 0 and (eligible is None or eligible.mask[node]):
                totals[domain] += amount


class Multiset(Generic[H]):
    """Things that pods bring to nodes, such as volumes.

    Parameters
    ----------
    size
        Number of nodes.
    kind
        Returns the kind of a thing; different things of a kind are counted for each node.

    Attributes
    ----------
    holders
        For each thing, the nodes that have it, with the number of pods that bring it there.
    distinct
        ``[n]`` for each kind, how many different things each node has.
    """

    def __init__(self, size: int, kind: Callable[[H], Hashable]) -> None:
        self._size = size
        self._kind = kind
        self.holders: defaultdict[H, Counter[int]] = defaultdict(Counter)
        self.distinct: defaultdict[Hashable, Ints] = defaultdict(lambda: np.zeros(size, dtype=np.int64))

    def add(self, node: int, things: tuple[H, ...], count: int) -> None:
        """Bring things to a node ``count`` times; a negative count takes them away."""
        for thing in things:
            holders = self.holders[thing]
            before = holders[node]
            holders[node] = before + count
            if not holders[node]:
                del holders[node]
            self.distinct[self._kind(thing)][node] += (before + count > 0) - (before > 0)
