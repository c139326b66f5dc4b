"""The kinds of hard rules; no others exist.

A placement is a table of whole numbers ``y[c, n]``: the number of pods of class ``c`` on node ``n``. Each rule below
constrains ``y`` and holds arrays only. Plugins produce rules, engines interpret them. The inequalities are in
``docs/model.md``.

Every rule is checked at *places*: nodes, or domains of a topology. Its *constraint violation* at a place is a whole
number, 0 where the rule holds. A rule that is violated at the start does not make the problem infeasible: the place may
keep its violation, but the violation must not grow, and no pod may come to the place until it is repaired.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.bin_packing import dual_weights
from stowplan.models.problem.axes import ClassSet, NodeList, NodeMask, PerClass, PerNode
from stowplan.models.problem.placement import Placement

NO_LIMIT = 1 << 40
"""A limit that never binds."""

PENALTY_WEIGHT = 1_000_000
"""Cost of one unit of violation in the feasibility tier: a pod in a wrong place, or a node overcommitted by 100%."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a rule or term comes from, as reports print it.

    Parameters
    ----------
    plugin
        Name of the scheduler plugin, or of the setting, that produced it.
    what
        What is constrained or counted, such as ``memory`` or ``app=web over topology.kubernetes.io/zone``.
    """

    plugin: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.plugin} ({self.what})" if self.what else self.plugin


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """A partition of (some of) the nodes into domains.

    Parameters
    ----------
    key
        The label key that makes the domains, or another name for a report.
    domain
        ``[n]`` the domain of each node, or -1 for a node that is in none.
    names
        ``[d]`` the domains' names.
    """

    key: str
    domain: PerNode
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of domains."""
        return len(self.names)

    def total(self, per_node: Ints) -> Ints:
        """Sum a ``[n]`` array over each domain; nodes without a domain are left out."""
        at = np.flatnonzero(per_node)  # few nodes have any
        at = at[self.domain[at] >= 0]
        totals = np.zeros(self.size, dtype=np.int64)
        np.add.at(totals, self.domain[at], per_node[at])
        return totals

    def pods(self, placement: Placement) -> Ints:
        """``[d]`` pods of a placement in each domain."""
        domain = self.domain[placement.node]
        inside = domain >= 0
        totals = np.zeros(self.size, dtype=np.int64)
        np.add.at(totals, domain[inside], placement.count[inside])
        return totals


def topologies_of(part: object) -> tuple[Topology, ...]:
    """Return the topologies by which a rule or term reads its pods; none if it reads no domains."""
    one: Topology | None = getattr(part, "topology", None)
    several: tuple[Topology, ...] = getattr(part, "topologies", ())
    return several if one is None else (one,)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Pods outside the problem that take part in a relation, counted by node.

    Parameters
    ----------
    both, seekers, targets
        ``[n]`` pods that are seeker and target, seeker only, target only.
    """

    both: PerNode
    seekers: PerNode
    targets: PerNode


@dataclass(frozen=True, slots=True, eq=False)
class Allow:
    """Class ``c`` may use node ``n`` only where ``mask[row[c], n]``."""

    origin: Origin
    row: PerClass
    mask: NodeMask


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """On every node ``n``: ``Σ_c demand[c]·y[c,n] ≤ max(0, free[n])``.

    Parameters
    ----------
    demand
        ``[c]`` whole units, divided by the common divisor of all demands. A negative demand makes room for others;
        with ``held_on_source`` none may be negative.
    free
        ``[n]`` units left by the pods outside the problem; negative where those alone overcommit the node.
    penalty_weight
        ``[n]`` cost of one unit of violation in the feasibility tier.
    unit
        What one unit is, in the resource's own units, for a report.
    held_on_source
        A pod that leaves a node keeps occupying it during the move.
    """

    origin: Origin
    demand: PerClass
    free: PerNode
    penalty_weight: PerNode
    unit: int = 1
    held_on_source: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class AtMost:
    """In every domain ``d``: at most ``limit`` pods of the group, those of ``held[d]`` included."""

    origin: Origin
    group: ClassSet
    topology: Topology
    limit: int
    held: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Repel:
    """No seeker is in a domain that holds a target other than itself."""

    origin: Origin
    seekers: ClassSet
    targets: ClassSet
    topology: Topology
    held: Held


@dataclass(frozen=True, slots=True, eq=False)
class Attract:
    """Every seeker is, for each topology, in a domain that holds a target other than itself.

    A seeker that is a target itself may be alone as long as no other target is on a node that belongs to one of the
    topologies; otherwise no first pod could ever be placed.
    """

    origin: Origin
    seekers: ClassSet
    targets: ClassSet
    topologies: tuple[Topology, ...]
    held: Held


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """In every domain that holds a seeker: ``count ≤ max_skew + smallest count of all domains``.

    The smallest count is taken as 0 when there are fewer than ``min_domains`` domains.

    Parameters
    ----------
    seekers, counted
        Classes bound by the rule, and classes that count toward it.
    topology
        Domains of the nodes that are eligible for the seekers.
    held_seekers, held_counted
        ``[d]`` the same for pods outside the problem.
    """

    origin: Origin
    seekers: ClassSet
    counted: ClassSet
    topology: Topology
    max_skew: int
    min_domains: int
    held_seekers: Ints
    held_counted: Ints

    @property
    def floor_is_zero(self) -> bool:
        """Whether the smallest count is taken as 0."""
        return self.topology.size < self.min_domains


@dataclass(frozen=True, slots=True, eq=False)
class Occupy:
    """The group, with the pods of ``held``, is in at least ``at_least`` domains."""

    origin: Origin
    group: ClassSet
    topology: Topology
    at_least: int
    held: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """On every node ``n``: own things and *different* shared things number at most ``limit[n]``.

    Parameters
    ----------
    own
        ``[c]`` things that each pod of the class brings and no other pod uses.
    bundle
        ``[c]`` index into ``bundles``, or -1.
    bundles
        Sets of shared things, as sorted arrays of indices.
    limit
        ``[n]`` what is left by pods outside the problem; `NO_LIMIT` where nothing limits.
    held
        ``[i, n]`` shared things that pods outside the problem use on the node.
    """

    origin: Origin
    own: PerClass
    bundle: PerClass
    bundles: tuple[Ints, ...]
    limit: PerNode
    held: NodeMask


@dataclass(frozen=True, slots=True, eq=False)
class Devices:
    """On every node ``n``: whole devices, and the fewest that hold all shares, number at most ``count[n]``.

    A share comes from one device. Which of a node's devices that is stays open: the pods of a node may be
    distributed over its devices anew. Where the packer gives up (`stowplan.models.bin_packing`), its packing counts.

    Parameters
    ----------
    whole
        ``[c]`` devices that each pod has for itself.
    part
        ``[c]`` share of one further device that each pod takes, from 0 (none) to ``size``.
    size
        What one device has to share, above 0.
    count
        ``[n]`` devices of the node.
    held_whole
        ``[n]`` devices that pods outside the problem have for themselves.
    held_node, held_part
        ``[h]`` node and size of each share that a pod outside the problem takes.
    """

    origin: Origin
    whole: PerClass
    part: PerClass
    size: int
    count: PerNode
    held_whole: PerNode
    held_node: NodeList
    held_part: Ints

    @property
    def volume(self) -> Ints:
        """``[c]`` what each pod takes, in units of which a device has ``size``."""
        volume: Ints = self.size * self.whole + self.part
        return volume

    @property
    def sums(self) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield sums that follow from the rule: ``Σ_c demand[c]·y[c,n] ≤ free[n] + limit·(violation at n)``.

        ``limit`` is what a device counts for, ``demand`` has an entry for each class, and ``free``, which may be
        negative, one for each node. The first is the volume.
        """
        held = self.count - self.held_whole
        parts = np.union1d(self.part, self.held_part)
        parts = parts[parts > 0]
        for limit, weights in dual_weights(tuple(parts.tolist()), self.size):
            weight = np.array([0, *weights], dtype=np.int64)
            free: Ints = limit * held
            np.subtract.at(free, self.held_node, weight[np.searchsorted(parts, self.held_part) + 1])
            of_class = np.where(self.part > 0, np.searchsorted(parts, self.part) + 1, 0)
            yield limit, limit * self.whole + weight[of_class], free

    @property
    def asking(self) -> Ints:
        """Classes that ask for devices."""
        return np.flatnonzero((self.whole > 0) | (self.part > 0))


@dataclass(frozen=True, slots=True, eq=False)
class MoveBudget:
    """At most ``limit`` pods leave the node they started on."""

    origin: Origin
    limit: int


@dataclass(frozen=True, slots=True, eq=False)
class GroupMoveBudget:
    """At most ``limit`` pods of the group leave the node they started on."""

    origin: Origin
    group: ClassSet
    limit: int


Rule = Allow | Capacity | AtMost | Repel | Attract | Spread | Occupy | Distinct | Devices | MoveBudget | GroupMoveBudget
