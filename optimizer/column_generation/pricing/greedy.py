"""Greedy heuristic of the pricing problem."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.optimizer.compiled.bin_packing import QUICK_EFFORT, admit, distribute
from stowplan.optimizer.compiled.jit import allocating


@allocating
def fill_each(
    value: Ints,
    order: Ints,
    demand: Ints,
    residual: Ints,
    upper: Ints,
    whole: Ints,
    part: Ints,
    size: int,
    devices: int,
    held: Ints,
    found: NDArray[np.int16],
    worth: Ints,
) -> None:
    """For each kind, complete a pattern of one pod of it greedily; fill ``found[k]`` and its value ``worth[k]``.

    Parameters
    ----------
    order
        Kinds in the order in which they are taken.
    """
    kinds, rows = demand.shape
    rem = np.empty(rows, dtype=np.int64)
    x = np.zeros(kinds, dtype=np.int64)
    space, after = np.zeros(devices, dtype=np.int64), np.zeros(devices, dtype=np.int64)
    refused = np.zeros(2, dtype=np.int64)
    for first in range(kinds):
        found[first, :] = 0
        worth[first] = 0
        if upper[first] <= 0:
            continue
        rem[:] = residual - demand[first]
        x[:] = 0
        if (rem < 0).any() or (size > 0 and distribute(x, first, whole, part, size, held, QUICK_EFFORT, space) <= 0):
            continue
        x[first] = 1
        refused[0], refused[1] = size + 1, devices + 1
        worth[first] = value[first]
        for k in order:
            often = upper[k] - x[k]
            for r in range(rows):
                if demand[k, r] > rem[r]:
                    often = 0
                    break
                if demand[k, r] > 0 and demand[k, r] * often > rem[r]:
                    often = rem[r] // demand[k, r]
            if often > 0 and size > 0 and whole[k] + part[k] > 0:
                most, often = often, 0
                while often < most:
                    if admit(x, k, whole, part, size, held, True, space, after, refused, QUICK_EFFORT)[0] <= 0:
                        break
                    space[:] = after
                    x[k] += 1
                    often += 1
            elif often > 0:
                x[k] += often
            if often > 0:
                worth[first] += often * value[k]
                for r in range(rows):
                    rem[r] -= often * demand[k, r]
        found[first, :] = x
