"""Bin packing in compiled code; the source is that of `stowplan.models.bin_packing`, so both give the same answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.bin_packing import EFFORT, fewest_bins
from stowplan.optimizer.compiled.jit import allocating, compiled

QUICK_EFFORT = 100
"""Effort of the packer for a first try."""

REPACKED = 30
"""Work that repacking all pods of a node counts as, where examining one of them counts 1."""

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
    """Assign devices to one more pod while the others keep theirs; return whether that is possible.

    Parameters
    ----------
    whole, part
        Devices that it has for itself, and its share of one more.
    before, after
        ``[i]`` free capacity of every device without the pod, and with it.
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


@compiled
def _insert(parts: Ints, n: int, part: int, often: int) -> int:
    """Insert a part ``often`` times among the first ``n``, which decrease; return their new number."""
    i = n + often
    while i > often and parts[i - often - 1] < part:
        parts[i - 1] = parts[i - often - 1]
        i -= 1
    for k in range(i - often, i):
        parts[k] = part
    return n + often


@allocating
def distribute(x: Ints, extra: int, whole: Ints, part: Ints, size: int, held: Ints, effort: int, room: Ints) -> int:
    """Repack all pods of a node over its devices: 1 if they fit, -1 if they certainly do not, 0 if unknown.

    No superset of pods that certainly do not fit is reported to fit. The numbers of `least_bins` do not guarantee
    that where it gives up.

    Parameters
    ----------
    x, extra
        ``[k]`` pods of each kind, and one more of this kind, if not negative.
    whole, part
        ``[k]`` devices that a pod has for itself, and its share of one more.
    held
        Shares held by pods outside the problem.
    effort
        As `fewest_bins` has it; with `EFFORT`, 1 is what the rule says.
    room
        ``[i]`` receives the free capacity of every device if the result is 1.
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
    n = 0
    for i in range(len(held)):
        n = _insert(parts, n, held[i], 1)
    for k in range(len(x)):
        if part[k] > 0:
            n = _insert(parts, n, part[k], x[k] + (1 if k == extra else 0))
    for i in range(len(room)):
        room[i] = size if i < free else 0
    if not shares:
        return 1
    where = np.zeros(shares, np.int64)
    if _fewest_bins(parts, shares, size, free, where, effort) > free:
        return 0 if where[0] < 0 else -1
    for i in range(shares):
        room[where[i]] -= parts[i]
    return 1


@allocating
def admit(
    x: Ints,
    k: int,
    whole: Ints,
    part: Ints,
    size: int,
    held: Ints,
    known: bool,
    before: Ints,
    after: Ints,
    refused: Ints,
    effort: int,
) -> tuple[int, int]:
    """Add a pod of kind ``k`` to a node's pods; return what `distribute` returns, and the work.

    Parameters
    ----------
    size
        If 0, there is nothing to pack.
    known, before, after
        Whether the free capacity of every device without the pod is known; ``[i]`` it; and ``[i]`` receives it with the
        pod.
    refused
        The least share, and the least number of whole devices, that certainly cannot be added to ``x``; updated.
    effort
        Of the packer, if the first try does not tell.
    """
    if size <= 0:
        return 1, 0
    if part[k] >= refused[0] or whole[k] >= refused[1]:
        return -1, 1
    if known and put(whole[k], part[k], size, before, after):
        return 1, 1
    work = 0
    admitted = 0
    granted = QUICK_EFFORT
    while admitted == 0 and granted <= effort:
        # One call in a loop, since the compiler copies the packer for each call.
        admitted = distribute(x, k, whole, part, size, held, granted, after)
        work += REPACKED + (granted // 20 if granted > QUICK_EFFORT else 0)
        granted = effort if granted < effort else effort + 1
    if admitted < 0 and whole[k] == 0 and part[k] > 0:
        refused[0] = part[k]
    if admitted < 0 and part[k] == 0 and whole[k] > 0:
        refused[1] = whole[k]
    return admitted, work
