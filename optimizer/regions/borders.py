"""What several regions read together: one of them may change it, and the others keep it as it is.

A rule or a term *crosses* borders if what one region does may change what it says about another one. One region owns
it, and counts the pods of the others where they are. For the others it becomes *guards*: of each set of classes that it
reads, no domain may hold more pods than it does, so since none comes or goes, each holds as many. So whatever regions
do at the same time, all of it together is legal, and what they gain adds up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar, assert_never

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    DomainCurve,
    GroupMoveBudget,
    Held,
    Move,
    MoveBudget,
    MovePeak,
    NodeCurve,
    NodeScore,
    Occupy,
    Open,
    Pair,
    Placement,
    Prefer,
    Repel,
    Rule,
    Spread,
    Term,
    Topology,
    Unplaced,
    Violation,
    class_sets,
    topologies_of,
)
from stowplan.optimizer.evaluate.violations import roles
from stowplan.optimizer.regions.drawing import Division

Reader = Rule | Term
R = TypeVar("R", bound=Reader)


class Borders:
    """Which rules and terms cross the borders of regions, who owns them, and what guards them for the others.

    Parameters
    ----------
    now
        A placement, of which every region has the pods on its nodes.
    shape
        Number of classes and of nodes.
    """

    def __init__(self, division: Division, now: Placement, shape: tuple[int, int]) -> None:
        self._region, self._shape = division.region, shape
        # [c, r] whether a region has pods of a class.
        self._present: Bools = np.zeros((shape[0], division.regions), dtype=np.bool_)
        self._present[now.cls, division.region[now.node]] = True
        self._drawn = np.random.default_rng(division.seed).integers(1 << 31, size=shape[0])
        self._known: dict[int, tuple[Topology, bool, bool]] = {}
        self._complete: dict[int, tuple[Topology, Topology]] = {}

    @cached_property
    def _by_node(self) -> Topology:
        """Each node as a domain."""
        nodes = self._shape[1]
        return Topology("node", np.arange(nodes), tuple(map(str, range(nodes))))

    def crosses(self, reader: Reader) -> bool:
        """Whether several regions have a say in it."""
        match reader:
            case Allow() | Capacity() | Distinct() | Devices() | NodeCurve() | NodeScore() | Open() | Prefer():
                return False
            case Unplaced() | Move() | MovePeak() | Violation() | MoveBudget() | GroupMoveBudget():
                return False
            case AtMost() | DomainCurve() | Repel() | Pair(together=True):
                return self._about(reader.topology)[0] and self._apart(reader)
            case Attract() if len(reader.topologies) == 1 and not np.intersect1d(reader.seekers, reader.targets).size:
                return self._about(reader.topologies[0])[0] and self._apart(reader)
            case Attract():
                # The first pod of all is special, wherever others are, those outside the problem too.
                held = any(count.any() for count in (reader.held.both, reader.held.seekers, reader.held.targets))
                return held or self._apart(reader)
            case Spread() | Occupy() | Pair():
                return self._about(reader.topology)[1] and self._apart(reader)
            case _:
                assert_never(reader)

    def owner(self, reader: Reader) -> int:
        """Return the region that may change what crosses borders, one that has pods of it; -1 if none may."""
        if isinstance(reader, Attract):
            return -1  # engines know it best where no pods outside the problem take part
        classes = np.unique(np.concatenate(class_sets(reader)))
        having = classes[self._present[classes].any(axis=1)]
        if not len(having):
            return -1
        candidates = np.flatnonzero(self._present[having[0]])
        return int(candidates[self._drawn[having[0]] % len(candidates)])

    def guards(self, reader: Reader, here: Placement) -> Iterator[AtMost]:
        """Yield rules that keep the numbers of pods in domains as they are, by the part that they have in a relation.

        Parameters
        ----------
        reader
            What crosses borders, and is another region's.
        here
            The pods of the region.
        """
        groups: Sequence[Ints] = class_sets(reader)
        if isinstance(reader, Attract | Repel | Pair):
            groups = roles(reader.seekers, reader.targets)
        for group in groups:
            pods = here.where(np.isin(here.cls, group))
            for topology in topologies_of(reader) if len(pods.cls) else ():
                every = self._with_the_rest(topology)
                count = every.pods(pods)
                most = int(count.max(initial=0))
                yield AtMost(reader.origin, group, every, most, most - count)

    def pins(self, reader: Rule, here: Placement) -> Iterator[AtMost]:
        """Yield rules that keep pods of every class where they are: none may come to where a rule is broken.

        Parameters
        ----------
        reader
            A rule that crosses borders and is violated.
        here
            The pods of the region.
        """
        for c in np.unique(np.concatenate(class_sets(reader))):
            count = here.only(c[None]).per_node(self._shape[1])
            if count.any():
                yield AtMost(reader.origin, c[None], self._by_node, int(count.max()), count.max() - count)

    def _apart(self, reader: Reader) -> bool:
        """Whether the pods that it reads are in several regions."""
        regions = self._present[np.concatenate(class_sets(reader))].any(axis=0)
        return bool(np.count_nonzero(regions) > 1)

    def _about(self, topology: Topology) -> tuple[bool, bool]:
        """Return whether a domain has nodes of several regions, and whether all domains together have."""
        known = self._known.get(id(topology))
        if known is None:
            inside = topology.domain >= 0
            domain, region = topology.domain[inside], self._region[inside]
            least, most = np.full(topology.size, len(self._region)), np.full(topology.size, -1)
            np.minimum.at(least, domain, region)
            np.maximum.at(most, domain, region)
            split = bool((most > least).any())
            known = self._known[id(topology)] = topology, split, len(np.unique(region)) > 1
        return known[1:]

    def _with_the_rest(self, topology: Topology) -> Topology:
        """Return a topology in which nodes without a domain are one of their own."""
        known = self._complete.get(id(topology))
        if known is None:
            outside, every = topology.domain < 0, topology
            if outside.any():
                domain = np.where(outside, topology.size, topology.domain)
                every = Topology(topology.key, domain, (*topology.names, ""))
            known = self._complete[id(topology)] = topology, every
        return known[1]


class Others:
    """Pods on other nodes than those of a region, for which they are pods outside the problem.

    Parameters
    ----------
    pods
        Where they are.
    nodes
        ``[n]`` whether a node is one of the region.
    """

    def __init__(self, pods: Placement, nodes: Bools) -> None:
        self._pods, self._nodes = pods, nodes
        self._known: dict[tuple[int, ...], tuple[tuple[Topology, ...], Ints]] = {}

    def beside(self, reader: R) -> R:
        """Return a rule or term that counts them."""
        match reader:
            case AtMost() | Occupy() | DomainCurve():
                return replace(reader, held=reader.held + self._in(reader.topology, reader.group))
            case Spread():
                return replace(
                    reader,
                    held_seekers=reader.held_seekers + self._in(reader.topology, reader.seekers),
                    held_counted=reader.held_counted + self._in(reader.topology, reader.counted),
                )
            case Repel() | Pair():
                return replace(reader, held=self._held(reader, (reader.topology,)))
            case Attract():
                return replace(reader, held=self._held(reader, reader.topologies))
            case Devices():
                kept = self._nodes[reader.held_node]
                return replace(reader, held_node=reader.held_node[kept], held_part=reader.held_part[kept])
            case _:
                return reader

    def _in(self, topology: Topology, group: Ints) -> Ints:
        return topology.pods(self._pods.only(group))

    def _held(self, reader: Repel | Pair | Attract, topologies: tuple[Topology, ...]) -> Held:
        """Return the pods outside the problem; those on other nodes are counted on a node with the same domains."""
        groups = roles(reader.seekers, reader.targets)
        target = self._node_like(topologies)
        counts = []
        for before, group in zip((reader.held.both, reader.held.seekers, reader.held.targets), groups, strict=True):
            count, outside = before.copy(), np.where(self._nodes, 0, before)
            pods = self._pods.only(group)
            np.add.at(outside, pods.node, pods.count)
            at = np.flatnonzero(outside)
            at = at[target[at] >= 0]
            np.add.at(count, target[at], outside[at])
            counts.append(count)
        return Held(*counts)

    def _node_like(self, topologies: tuple[Topology, ...]) -> Ints:
        """``[n]`` a node of the region in the same domains; -1 if there is none, or no domain."""
        name = tuple(map(id, topologies))
        known = self._known.get(name)
        if known is None:
            domains = np.stack([topology.domain for topology in topologies])
            _, key = np.unique(domains, axis=1, return_inverse=True)
            key = key.reshape(-1)
            first = np.full(len(key), -1)
            own = np.flatnonzero(self._nodes)
            first[key[own]] = own
            known = self._known[name] = topologies, np.where((domains >= 0).any(axis=0), first[key], -1)
        return known[1]
