"""Counts of pods with a property, kept up to date as pods come and go.

Spreading and affinity both ask one question again and again: how many pods like *this* stand in that domain? A
tally answers it in constant time. Volumes ask what is on a node already; a bag answers that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from models.arrays import Bools, Ints
from models.problem import Topology

H = TypeVar("H", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Eligible:
    """A set of nodes on which pods count. Compared by identity, so that totals can be kept per set."""

    mask: Bools


@dataclass(slots=True, eq=False)
class Tally:
    """Pods with one property.

    Parameters
    ----------
    per_node
        ``[n]`` how many stand on each node.
    """

    per_node: Ints
    _totals: dict[tuple[int, int], tuple[Topology, Eligible | None, Ints]] = field(default_factory=dict)

    def total(self, topology: Topology, eligible: Eligible | None = None) -> Ints:
        """``[d]`` how many stand in each domain, on eligible nodes. The array is live: neither change nor keep it."""
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


@dataclass(slots=True, eq=False)
class Bag(Generic[H]):
    """Things that pods bring to nodes.

    Parameters
    ----------
    per_node
        How many pods on each node bring each thing.
    """

    per_node: defaultdict[int, Counter[H]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, node: int, things: tuple[H, ...], count: int) -> None:
        """Bring things to a node ``count`` times; a negative count takes them away."""
        here = self.per_node[node]
        for thing in things:
            here[thing] += count
            if not here[thing]:
                del here[thing]

    def on(self, node: int) -> Counter[H]:
        """Return what is on a node."""
        return self.per_node[node]
