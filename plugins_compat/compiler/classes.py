"""Classes by partition refinement: pods that no rule and no term can tell apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from models.arrays import Ints
from models.problem import class_sets, dense_columns


def refine(size: int, parts: Iterable[object], extra: Iterable[Ints] = ()) -> Ints:
    """Return the class of each of ``size`` shapes.

    Two shapes share a class exactly if every array that any of ``parts`` reads says the same about both.

    Parameters
    ----------
    parts
        Rules and terms over shapes.
    extra
        Further ``[s]`` arrays that must not be mixed inside a class.
    """
    block = np.zeros(size, dtype=np.int64)
    sets: list[list[int]] = [[] for _ in range(size)]
    number = 0
    for column in extra:
        block = _split(block, column)
    for part in parts:
        for column in dense_columns(part):
            block = _split(block, column)
        for members in class_sets(part):
            for s in members.tolist():
                sets[s].append(number)
            number += 1
    keys: dict[Hashable, int] = {}
    return np.array([keys.setdefault((int(block[s]), tuple(sets[s])), len(keys)) for s in range(size)], dtype=np.int64)


def _split(block: Ints, column: Ints) -> Ints:
    """Split every block by the values of a column."""
    if not len(block):
        return block
    pairs = np.stack([block, column])
    finer: Ints = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
    return finer
