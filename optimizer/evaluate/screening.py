"""Screening of many rules at a time: which of them a placement may violate.

A problem can have tens of thousands of rules that each speak of a few classes. Asking every one of them, node by node,
takes seconds, and nearly all of them hold. Here rules of one kind over the same topologies are screened together,
through the entries of their classes alone. The result is a set of *candidates*: a violated rule is always a candidate,
a candidate need not be violated. `stowplan.optimizer.evaluate.violations` decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, assert_never

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    GroupMoveBudget,
    Held,
    MoveBudget,
    Occupy,
    Placement,
    Problem,
    Repel,
    Rule,
    Spread,
    Topology,
)


class ViolationScreen:
    """Names the rules of a problem that a placement may violate."""

    def __init__(self, problem: Problem) -> None:
        self._classes = len(problem.classes)
        families: dict[Hashable, list[int]] = {}
        for i, rule in enumerate(problem.rules):
            families.setdefault(_family(rule), []).append(i)
        self._always = np.array(families.pop(None, []), dtype=np.int64)
        self._families = [
            (np.array(members, dtype=np.int64), _screen_of([problem.rules[i] for i in members]))
            for members in families.values()
        ]

    def of(self, placement: Placement) -> Ints:
        """Return the indices of the rules that may be violated, in order."""
        first = np.searchsorted(placement.cls, np.arange(self._classes + 1))
        found = [members[screen.candidates(placement, first)] for members, screen in self._families]
        return np.sort(np.concatenate([self._always, *found]))


class _Family(Protocol):
    """Rules of one kind over the same topologies, without held pods."""

    def candidates(self, placement: Placement, first: Ints) -> Bools:
        """``[rules]`` whether each may be violated; ``first`` is where the entries of each class begin."""


def _family(rule: Rule) -> Hashable:
    """Return what rules that are screened together have in common; ``None`` for a rule that is always a candidate."""
    match rule:
        case AtMost() | Occupy():
            return None if rule.held.any() else (type(rule), id(rule.topology))
        case Repel():
            return None if _anyone(rule.held) else (Repel, id(rule.topology))
        case Attract():
            return None if _anyone(rule.held) else (Attract, *map(id, rule.topologies))
        case Allow() | Capacity() | Spread() | Distinct() | Devices() | MoveBudget() | GroupMoveBudget():
            return None
        case _:
            assert_never(rule)


def _anyone(held: Held) -> bool:
    return bool(held.both.any() or held.seekers.any() or held.targets.any())


def _screen_of(rules: Sequence[Rule]) -> _Family:
    match rules[0]:
        case AtMost(topology=topology):
            return _AtMosts([rule for rule in rules if isinstance(rule, AtMost)], topology)
        case Occupy(topology=topology):
            return _Occupies([rule for rule in rules if isinstance(rule, Occupy)], topology)
        case Repel(topology=topology):
            return _Repels([rule for rule in rules if isinstance(rule, Repel)], topology)
        case Attract(topologies=topologies):
            return _Attracts([rule for rule in rules if isinstance(rule, Attract)], topologies)
        case other:
            raise AssertionError(f"rules of kind {type(other).__name__} have no family")


class _Groups:
    """A set of classes for each rule."""

    def __init__(self, sets: Sequence[Ints]) -> None:
        self.rule = np.repeat(np.arange(len(sets)), [len(group) for group in sets])
        self.cls: Ints = np.concatenate([np.zeros(0, dtype=np.int64), *sets])

    def split(self, other: _Groups) -> tuple[_Groups, _Groups]:
        """Return each rule's classes that are not in another group of the rule, and those that are."""
        wide = 1 + max(self.cls.max(initial=0), other.cls.max(initial=0))
        shared = _found(self.rule * wide + self.cls, other.rule * wide + other.cls)
        return self._only(~shared), self._only(shared)

    def _only(self, which: Bools) -> _Groups:
        part = _Groups([])
        part.rule, part.cls = self.rule[which], self.cls[which]
        return part

    def count(self, placement: Placement, first: Ints, topology: Topology) -> tuple[Ints, Ints, Ints]:
        """Count each rule's pods by domain, where there are any; nodes outside all domains are domain -1.

        Returns
        -------
        rule, domain, pods
            Sorted by rule, then domain.
        """
        begin = first[self.cls]
        length = first[self.cls + 1] - begin
        entry = np.repeat(begin - np.cumsum(length) + length, length) + np.arange(length.sum())
        wide = topology.size + 1
        pair = np.repeat(self.rule, length) * wide + topology.domain[placement.node[entry]] + 1
        keys = wide * (1 + self.rule.max(initial=-1))
        if keys <= 4 * len(pair):
            table = np.zeros(keys, dtype=np.int64)
            np.add.at(table, pair, placement.count[entry])
            key = np.flatnonzero(table)
            pods = table[key]
        else:
            key, where = np.unique(pair, return_inverse=True)
            pods = np.zeros(len(key), dtype=np.int64)
            np.add.at(pods, where, placement.count[entry])
        return key // wide, key % wide - 1, pods


class _AtMosts:
    def __init__(self, rules: Sequence[AtMost], topology: Topology) -> None:
        self._topology = topology
        self._groups = _Groups([rule.group for rule in rules])
        self._limit = np.array([rule.limit for rule in rules], dtype=np.int64)

    def candidates(self, placement: Placement, first: Ints) -> Bools:
        rule, domain, pods = self._groups.count(placement, first, self._topology)
        return _among(rule[(pods > self._limit[rule]) & (domain >= 0)], len(self._limit)) | (self._limit < 0)


class _Occupies:
    def __init__(self, rules: Sequence[Occupy], topology: Topology) -> None:
        self._topology = topology
        self._groups = _Groups([rule.group for rule in rules])
        self._at_least = np.array([rule.at_least for rule in rules], dtype=np.int64)

    def candidates(self, placement: Placement, first: Ints) -> Bools:
        rule, domain, _ = self._groups.count(placement, first, self._topology)
        short: Bools = np.bincount(rule[domain >= 0], minlength=len(self._at_least)) < self._at_least
        return short


class _Repels:
    """Candidates are rules with a seeker and another pod in one domain."""

    def __init__(self, rules: Sequence[Repel], topology: Topology) -> None:
        self._topology = topology
        self._size = len(rules)
        self._seekers = _Groups([rule.seekers for rule in rules])
        self._all = _Groups([np.union1d(rule.seekers, rule.targets) for rule in rules])

    def candidates(self, placement: Placement, first: Ints) -> Bools:
        rule, domain, pods = self._all.count(placement, first, self._topology)
        crowded = (pods >= 2) & (domain >= 0)
        seeking, where, _ = self._seekers.count(placement, first, self._topology)
        wide = self._topology.size + 1
        clash = crowded & _found(rule * wide + domain, seeking * wide + where)
        return _among(rule[clash], self._size)


class _Attracts:
    """Candidates are rules with a seeker that has no target, or none but itself, in its domain."""

    def __init__(self, rules: Sequence[Attract], topologies: Sequence[Topology]) -> None:
        self._topologies = topologies
        self._size = len(rules)
        self._targets = _Groups([rule.targets for rule in rules])
        alone, both = _Groups([rule.seekers for rule in rules]).split(self._targets)
        self._seekers = ((alone, 1), (both, 2))

    def candidates(self, placement: Placement, first: Ints) -> Bools:
        found = np.zeros(self._size, dtype=np.bool_)
        for topology in self._topologies:
            wide = topology.size + 1
            rule, domain, pods = self._targets.count(placement, first, topology)
            targets = rule * wide + domain
            for group, needed in self._seekers:
                seeking, where, _ = group.count(placement, first, topology)
                there = (pods >= needed) & (domain >= 0)
                near = _found(seeking * wide + where, targets[there])
                found |= _among(seeking[~near], self._size)
        return found


def _found(keys: Ints, among: Ints) -> Bools:
    """Whether each key is among others that are sorted."""
    if not len(among):
        return np.zeros(len(keys), dtype=np.bool_)
    at = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    there: Bools = among[at] == keys
    return there


def _among(rules: Ints, size: int) -> Bools:
    """``[size]`` whether an index is among the given ones."""
    found = np.zeros(size, dtype=np.bool_)
    found[rules] = True
    return found
