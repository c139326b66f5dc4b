"""The nodes that a class can draw: those that are open to it, and large enough for one of its pods alone."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import Problem
from stowplan.optimizer.evaluate.too_small import too_small

MOST = 1 << 22
"""Entries of lists that are made for the sizes of pods; beyond, classes share the lists of what is open to them."""


def choices(problem: Problem, opened: Bools, row: Ints) -> tuple[Ints, Ints, Ints]:
    """Return nodes, one list after the other, and where the list of each class begins and ends.

    Parameters
    ----------
    opened
        ``[R, N]`` whether a node is open, by distinct row of the rules that say so.
    row
        ``[C]`` the row of each class.
    """
    lists = [np.flatnonzero(one) for one in opened]
    chosen = row.copy()
    number: dict[tuple[int, bytes], int] = {}
    left = MOST
    for c, small in too_small(problem):
        mine = opened[row[c]]
        if not (small & mine).any():
            continue
        key = int(row[c]), np.packbits(small).tobytes()
        if key not in number:
            found = np.flatnonzero(mine & ~small)
            if len(found) >= left:
                break
            left -= len(found)
            number[key] = len(lists)
            lists.append(found)
        chosen[c] = number[key]
    ends = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
    return np.concatenate([*lists, [0]]), ends[chosen], ends[chosen + 1]
