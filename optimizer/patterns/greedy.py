"""Compiled greedy patterns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.arrays import Ints
from optimizer.search.kernel.jit import allocating
from optimizer.search.kernel.packing import distribute, put

HASTE = 100
"""Effort of the packer for each pod."""


@allocating
def fill_each(
    value: Ints,
    order: Ints,
    demand: Ints,
    room: Ints,
    upper: Ints,
    whole: Ints,
    part: Ints,
    size: int,
    devices: int,
    held: Ints,
    found: NDArray[np.int16],
    worth: Ints,
) -> None:
    """For each kind, take one pod of it and go on greedily; fill ``found[k]`` and ``worth[k]``.

    Parameters
    ----------
    order
        Kinds in the order in which they are taken.
    """
    kinds, rows = demand.shape
    rem = np.empty(rows, dtype=np.int64)
    x = np.zeros(kinds, dtype=np.int64)
    space, after = np.zeros(devices, dtype=np.int64), np.zeros(devices, dtype=np.int64)
    for first in range(kinds):
        found[first, :] = 0
        worth[first] = 0
        if upper[first] <= 0:
            continue
        rem[:] = room - demand[first]
        x[:] = 0
        if (rem < 0).any() or (size > 0 and distribute(x, first, whole, part, size, held, HASTE, space) <= 0):
            continue
        x[first] = 1
        too_large, too_many = size + 1, devices + 1
        worth[first] = value[first]
        for k in order:
            often = upper[k] - x[k]
            if size > 0 and (part[k] >= too_large or whole[k] >= too_many):
                continue
            for r in range(rows):
                if demand[k, r] > rem[r]:
                    often = 0
                    break
                if demand[k, r] > 0 and demand[k, r] * often > rem[r]:
                    often = rem[r] // demand[k, r]
            if often > 0 and size > 0 and whole[k] + part[k] > 0:
                most, often = often, 0
                while often < most and (
                    put(whole[k], part[k], size, space, after)
                    or distribute(x, k, whole, part, size, held, HASTE, after) > 0
                ):
                    space[:] = after
                    x[k] += 1
                    often += 1
                if often < most and whole[k] == 0:
                    too_large = part[k]
                if often < most and part[k] == 0:
                    too_many = whole[k]
            elif often > 0:
                x[k] += often
            if often > 0:
                worth[first] += often * value[k]
                for r in range(rows):
                    rem[r] -= often * demand[k, r]
        found[first, :] = x
