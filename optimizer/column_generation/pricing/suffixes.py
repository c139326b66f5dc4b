"""Suffixes of patterns: all multisets of a few kinds, sorted by their demand in a key row.

Looking a number up in a sorted list of millions takes a dozen cache misses, and nearly always finds nothing; a bit for
each small interval of numbers says so at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.optimizer.compiled.jit import compiled

LONGEST_SUFFIX = 4
"""Pods of a suffix at most."""

MOST_BITS = 26
"""The number of intervals has this many bits at most: 8 MB are still looked up fast."""

SPARSE = 4
"""There are up to 2 to this power as many intervals as multisets."""


class SuffixLists(NamedTuple):
    """Multisets of ``h`` kinds.

    Parameters
    ----------
    sums, members
        ``[m]`` demand of each in the key row, increasing, and ``[m, h]`` its kinds, in order.
    seen, shift
        Bit ``i`` of ``seen`` says whether the key of any multiset is in the ``i``-th interval of ``2**shift`` numbers,
        from the lowest key on.
    """

    sums: Ints
    members: NDArray[np.int16]
    seen: NDArray[np.uint64]
    shift: int


def suffix_length(kinds: int, longest: int) -> int:
    """Return the pods of a suffix if no list may be longer than ``longest``; 0 if even one pod is too many."""
    return max((h for h in range(1, LONGEST_SUFFIX + 1) if math.comb(kinds + h - 1, h) <= longest), default=0)


def list_suffixes(key: Ints, h: int, window: int) -> SuffixLists:
    """List all multisets of ``h`` kinds, to be looked up by an interval of ``window`` numbers.

    Parameters
    ----------
    key
        ``[k]`` demand of a pod of each kind in the key row.
    """
    members, sums = np.arange(len(key), dtype=np.int16)[:, None], key
    for _ in range(h - 1):
        last = members[:, -1].astype(np.int64)
        times = len(key) - last
        begin = np.repeat(np.cumsum(times) - times, times)
        following = (np.arange(int(times.sum())) - begin + np.repeat(last, times)).astype(np.int16)
        members = np.column_stack([np.repeat(members, times, axis=0), following])
        sums = np.repeat(sums, times) + key[following]
    order = np.argsort(sums, kind="stable")
    sums, members = sums[order], members[order]
    span = int(sums[-1] - sums[0])
    bits = min(MOST_BITS, len(sums).bit_length() + SPARSE)
    shift = max(0, span.bit_length() - bits, window.bit_length())
    seen = np.zeros((span >> shift >> 6) + 1, dtype=np.uint64)
    _mark(sums, shift, seen)
    return SuffixLists(sums, members, seen, shift)


@compiled
def _mark(sums: Ints, shift: int, seen: NDArray[np.uint64]) -> None:
    for number in sums:
        interval = (number - sums[0]) >> shift
        seen[interval >> 6] |= np.uint64(1) << np.uint64(interval & 63)
