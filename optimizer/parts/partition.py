"""Which classes and nodes are connected: by a node that is open to a class, or by what reads several classes at once.

Classes and nodes are a bipartite graph with an edge for each pair in which a pod can be. Rules and terms over domains
tie nodes of one domain together, or, where they compare domains, the classes that they read. The connected components
are *exact parts*: whatever one of them does, the others may do what they like, and costs add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

import networkx as nx
import numpy as np
from numpy.typing import NDArray

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
    Move,
    MoveBudget,
    MovePeak,
    NodeCurve,
    NodeScore,
    Occupy,
    Open,
    Pair,
    Prefer,
    Problem,
    Repel,
    Rule,
    Spread,
    Term,
    Topology,
    Unplaced,
    Violation,
    class_sets,
)
from stowplan.optimizer.parts.parameters import PartParameters


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A set of classes, and of the nodes that are open to them.

    Parameters
    ----------
    classes, nodes
        ``[c]``, ``[n]`` which.
    pairs
        Number of (class, node) pairs in which a pod can be.
    """

    classes: Bools
    nodes: Bools
    pairs: int

    def joined(self, other: Part) -> Part:
        """Return both as one part."""
        return Part(self.classes | other.classes, self.nodes | other.nodes, self.pairs + other.pairs)


def exact_parts(problem: Problem, upper: NDArray[np.int32], parameters: PartParameters) -> list[Part]:
    """Return the parts of a problem, the smallest first; none if it is one whole, or mostly one.

    Parts in which every pod has but one place are left out: they stay as they are.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    """
    if problem.move_limit is not None or any(tier.final for tier in problem.tiers):
        return []
    found = sorted(_components(problem, upper > 0), key=lambda part: part.pairs)
    gathered: list[Part] = []
    for part in found:
        if gathered and gathered[-1].pairs < parameters.least_pairs:
            gathered[-1] = gathered[-1].joined(part)
        else:
            gathered.append(part)
    gathered.sort(key=lambda part: part.pairs)
    beside = sum(part.pairs for part in gathered[:-1])
    total = sum(part.pairs for part in gathered)
    return gathered if beside > parameters.least_share * total else []


def _components(problem: Problem, able: Bools) -> Iterator[Part]:
    """Yield the connected components in which a pod has a choice."""
    tied = _Ties(len(problem.classes)), _Ties(len(problem.nodes))
    for reader in (*problem.rules, *(weighted.term for tier in problem.tiers for weighted in tier.terms)):
        _tie(reader, able, *tied)
    left = np.ones(len(problem.classes), dtype=np.bool_)
    for first in range(len(problem.classes)):
        if not left[first]:
            continue
        classes, nodes = np.zeros_like(left), np.zeros(len(problem.nodes), dtype=np.bool_)
        fresh = np.array([first], dtype=np.int64)
        pairs, choice = 0, False
        while len(fresh):
            classes[fresh], left[fresh] = True, False
            places = np.count_nonzero(able[fresh], axis=1)
            pairs += int(places.sum())
            choice = choice or bool((places + (problem.optional[fresh] > 0) > 1).any())
            reached: Bools = tied[1].spread(np.asarray(able[fresh].any(axis=0))) & ~nodes
            nodes |= reached
            rest = np.flatnonzero(left)
            following = tied[0].spread(classes)
            following[rest] |= able[np.ix_(rest, np.flatnonzero(reached))].any(axis=1)
            fresh = np.flatnonzero(following & left)
        if choice:
            yield Part(classes, nodes, pairs)


class _Ties:
    """Classes, or nodes, that belong together have one label.

    Attributes
    ----------
    whole
        Whether all belong together, so that nothing more can be tied.
    """

    def __init__(self, size: int) -> None:
        self._label = np.arange(size)
        self.whole = size <= 1

    def add(self, members: Ints, groups: Ints) -> None:
        """Tie the members of each group together; ``groups[i]`` is the one of ``members[i]``."""
        if self.whole or not len(members):
            return
        labels, one = self._label[members], np.zeros(int(groups.max()) + 1, dtype=np.int64)
        one[groups] = labels
        apart = one[groups] != labels
        if apart.any():
            # One time for each pair of labels, and each makes one of two: it is rare.
            pairs = np.unique(np.stack([one[groups[apart]], labels[apart]], axis=1), axis=0)
            tied: nx.Graph[int] = nx.Graph(pairs.tolist())
            joined = np.arange(len(self._label))
            for together in nx.connected_components(tied):
                joined[list(together)] = min(together)
            self._label = joined[self._label]
            self.whole = bool((self._label == self._label[0]).all())

    def spread(self, mask: Bools) -> Bools:
        """Return a set with all that is tied to one of its members."""
        reached = np.zeros(len(self._label), dtype=np.bool_)
        reached[self._label[mask]] = True
        wider: Bools = reached[self._label]
        return wider


def _tie(reader: Rule | Term, able: Bools, classes: _Ties, nodes: _Ties) -> None:
    """Tie what a rule or term reads together although it may be on different nodes."""
    match reader:
        case AtMost() | DomainCurve():
            _tie_domains(reader.topology, reader.group, able, nodes)
        case Repel() | Pair(together=True):
            _tie_domains(reader.topology, np.concatenate([reader.seekers, reader.targets]), able, nodes)
        case Attract() if not np.intersect1d(reader.seekers, reader.targets).size:
            for topology in reader.topologies:
                _tie_domains(topology, np.concatenate([reader.seekers, reader.targets]), able, nodes)
        case MovePeak():
            _tie_all(np.flatnonzero(reader.group >= 0), classes)
        case Attract() | Spread() | Occupy() | GroupMoveBudget() | Pair():
            # Counts of all domains are compared, or the first pod of all is special.
            _tie_all(np.concatenate(class_sets(reader)), classes)
        case Allow() | Capacity() | Distinct() | Devices() | NodeCurve() | NodeScore() | Open() | Prefer():
            pass  # each node by itself
        case Unplaced() | Move() | Violation() | MoveBudget():
            pass  # each pod by itself, each rule by itself; a limit on all moves makes one whole before
        case _:
            assert_never(reader)


def _tie_all(members: Ints, ties: _Ties) -> None:
    ties.add(members, np.zeros_like(members))


def _tie_domains(topology: Topology, group: Ints, able: Bools, nodes: _Ties) -> None:
    """Tie the nodes of each domain that are open to classes of a group: each domain is read by itself."""
    if nodes.whole or np.bincount(topology.domain[topology.domain >= 0], minlength=1).max() < 2:
        return
    inside = np.flatnonzero((topology.domain >= 0) & able[group].any(axis=0))
    nodes.add(inside, topology.domain[inside])
