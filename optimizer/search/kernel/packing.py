"""Bin packing in compiled code; the source is that of `models.bin_packing`, so both give the same answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arrays import Ints
from models.bin_packing import EFFORT, fewest_bins
from optimizer.search.kernel.jit import allocating, compiled

_fewest_bins: Any = allocating(fewest_bins)


@allocating
def least_bins(parts: Ints, n: int, size: int, at_most: int) -> int:
    """Return the fewest devices of a size that hold some parts, or ``at_most + 1`` if that is more than ``at_most``.

    Parameters
    ----------
    parts
        The first ``n`` count, each between 1 and ``size``, in any order; they are not changed.
    """
    if n <= 1:
        return min(n, at_most + 1)
    descending = np.sort(parts[:n])[::-1]
    return int(_fewest_bins(descending, n, size, at_most, np.empty(n, np.int64), EFFORT))


@compiled
def put(whole: int, part: int, size: int, before: Ints, after: Ints) -> bool:
    """Give a pod devices where others keep theirs; whether that can be done.

    Parameters
    ----------
    whole, part
        Devices that it has for itself, and its share of one more.
    before, after
        ``[i]`` room on every device without the pod, and with it.
    """
    for i in range(len(before)):
        after[i] = before[i]
    if part > 0:
        best = -1
        for i in range(len(after)):
            if after[i] >= part and (best < 0 or after[i] < after[best]):
                best = i
        if best < 0:
            return False
        after[best] -= part
    for i in range(len(after)):
        if whole > 0 and after[i] == size:
            after[i] = 0
            whole -= 1
    return whole == 0


@allocating
def distribute(x: Ints, extra: int, whole: Ints, part: Ints, size: int, held: Ints, effort: int, room: Ints) -> int:
    """Distribute all pods of a node anew over its devices: 1 if that can be done, -1 if surely not, 0 if unknown.

    A set of pods of which it surely cannot be done is in no set of which it can be. The numbers of `least_bins` do not
    promise that, where it gives up.

    Parameters
    ----------
    x, extra
        ``[k]`` pods of each kind, and one more of this kind, if not negative.
    whole, part
        ``[k]`` devices that a pod has for itself, and its share of one more.
    held
        Shares that others take.
    effort
        As `fewest_bins` has it; with `EFFORT`, 1 is what the rule says.
    room
        ``[i]`` receives the room left on every device, if the answer is 1.
    """
    free, shares = len(room), len(held)
    for k in range(len(x)):
        often = x[k] + (1 if k == extra else 0)
        free -= whole[k] * often
        if part[k] > 0:
            shares += often
    if free < 0:
        return -1
    parts = np.empty(shares, np.int64)
    parts[: len(held)] = held
    i = len(held)
    for k in range(len(x)):
        if part[k] > 0:
            for _ in range(x[k] + (1 if k == extra else 0)):
                parts[i] = part[k]
                i += 1
    room[:free] = size
    room[free:] = 0
    if not shares:
        return 1
    parts = np.sort(parts)[::-1]
    where = np.zeros(shares, np.int64)
    if _fewest_bins(parts, shares, size, free, where, effort) > free:
        return 0 if where[0] < 0 else -1
    for i in range(shares):
        room[where[i]] -= parts[i]
    return 1
