"""Which rules and terms name which classes.

A cluster may have tens of thousands of rules, each about a handful of classes. What concerns a few classes must not
take a pass over them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.arrays import Ints
from models.problem import class_sets, dense_columns


class Mentions:
    """Numbers of the parts (rules or terms) that name each class.

    Parameters
    ----------
    classes
        How many there are.
    """

    def __init__(self, parts: Sequence[Any], classes: int) -> None:
        always: list[int] = []
        named: list[Ints] = []
        number: list[Ints] = []
        for i, part in enumerate(parts):
            sets = class_sets(part)
            if dense_columns(part) or not sets:
                always.append(i)
                continue
            named += sets
            number += [np.full(len(members), i, dtype=np.int64) for members in sets]
        nothing = np.zeros(0, dtype=np.int64)
        cls = np.concatenate([nothing, *named])
        order = np.argsort(cls, kind="stable")
        self._always: Ints = np.array(always, dtype=np.int64)
        self._part = np.concatenate([nothing, *number])[order]
        self._first = np.searchsorted(cls[order], np.arange(classes + 1))

    def of(self, classes: Ints) -> list[int]:
        """Return the parts that name any of the classes, or that speak of all, in increasing order."""
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
