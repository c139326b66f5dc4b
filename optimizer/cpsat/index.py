"""Which rules and terms speak of which classes, worked out once for a problem.

A cluster may have tens of thousands of rules, each about a handful of classes. A model of a few nodes must not pass
over them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.arrays import Ints
from models.problem import Capacity, class_sets, dense_columns
from optimizer.evaluate.evaluation import Judge


class Index:
    """A problem with its rules and terms looked up by class.

    Attributes
    ----------
    before
        Excess at the start, by place, of each rule that is exceeded there.
    capacities
        The capacities, with their numbers among the rules.
    """

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.problem = problem = judge.problem
        classes = len(problem.classes)
        self.before = {i: before for i, before in enumerate(judge.start_excess) if before.any()}
        self.capacities = [(i, rule) for i, rule in enumerate(problem.rules) if isinstance(rule, Capacity)]
        self._rules = _Mentions(problem.rules, classes)
        self._terms = [_Mentions([w.term for w in tier.terms], classes) for tier in problem.tiers]
        self._start_load: dict[int, Ints] = {}

    def rules(self, classes: Ints) -> list[int]:
        """Return the numbers of the rules that name any of the classes, or that speak of all."""
        return self._rules.of(classes)

    def terms(self, tier: int, classes: Ints) -> list[int]:
        """Return the numbers of the terms of a tier that name any of the classes, or that speak of all."""
        return self._terms[tier].of(classes)

    def start_load(self, rule: Capacity) -> Ints:
        """``[n]`` what the pods that stood on each node at the start demand."""
        if id(rule) not in self._start_load:
            self._start_load[id(rule)] = self.problem.start.per_node(len(self.problem.nodes), rule.demand)
        return self._start_load[id(rule)]


class _Mentions:
    """Numbers of the parts (rules or terms) that name each class."""

    def __init__(self, parts: Sequence[Any], classes: int) -> None:
        self._always: list[int] = []
        named: list[Ints] = []
        number: list[Ints] = []
        for i, part in enumerate(parts):
            sets = class_sets(part)
            if dense_columns(part) or not sets:
                self._always.append(i)
                continue
            named += sets
            number += [np.full(len(members), i, dtype=np.int64) for members in sets]
        empty = np.zeros(0, dtype=np.int64)
        cls = np.concatenate([empty, *named])
        order = np.argsort(cls, kind="stable")
        self._part = np.concatenate([empty, *number])[order]
        self._first = np.searchsorted(cls[order], np.arange(classes + 1))

    def of(self, classes: Ints) -> list[int]:
        first, last = self._first[classes], self._first[classes + 1]
        found: list[int] = np.union1d(self._part[ranges(first, last)], self._always).astype(np.int64).tolist()
        return found


def ranges(first: Ints, last: Ints) -> Ints:
    """Return ``first[0]..last[0]-1, first[1]..last[1]-1, …`` in one array."""
    length = last - first
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    indices: Ints = np.arange(total, dtype=np.int64) + np.repeat(first - ends + length, length)
    return indices
