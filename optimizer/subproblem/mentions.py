"""Which rules and terms name which classes.

A cluster may have tens of thousands of rules, each about a handful of classes. Finding those of a few classes must not
take a pass over all rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import class_sets, dense_columns


class Mentions:
    """Numbers of the parts (rules or terms) that name each class.

    Parameters
    ----------
    classes
        How many there are.

    Attributes
    ----------
    groups
        The classes that each part names, of those that name some.
    """

    def __init__(self, parts: Sequence[Any], classes: int) -> None:
        always: list[int] = []
        numbers: list[int] = []
        self.groups: list[Ints] = []
        for i, part in enumerate(parts):
            sets = class_sets(part)
            if dense_columns(part) or not sets:
                always.append(i)
            elif len(group := sets[0] if len(sets) == 1 else np.unique(np.concatenate(sets))):
                numbers.append(i)
                self.groups.append(group)
        nothing = np.zeros(0, dtype=np.int64)
        cls = np.concatenate([nothing, *self.groups])
        order = np.argsort(cls, kind="stable")
        part_of = np.repeat(np.array(numbers, dtype=np.int64), [len(group) for group in self.groups])
        self._always: Ints = np.array(always, dtype=np.int64)
        self._part = part_of[order]
        self._first = np.searchsorted(cls[order], np.arange(classes + 1))

    def of(self, classes: Ints) -> list[int]:
        """Return the parts that name any of the classes, or that concern all, in increasing order."""
        named = self._part[ranges(self._first[classes], self._first[classes + 1])]
        found: list[int] = np.union1d(named, self._always).tolist()
        return found


def ranges(first: Ints, last: Ints) -> Ints:
    """Return ``first[0]..last[0]-1, first[1]..last[1]-1, …`` in one array."""
    length = last - first
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    indices: Ints = np.arange(total, dtype=np.int64) + np.repeat(first - ends + length, length)
    return indices
