"""All patterns that fill a node almost exactly, by meeting in the middle.

Where next to nothing of a row may be left, a search that goes on pod by pod learns too late that a pattern does not
come out even. So all multisets of a few kinds are listed by their demand in that row. A pattern is its small pods,
which are searched depth first, and a tail of a few large ones, which are looked up. Rows of which nothing may be left
are read as the digits of one number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.arrays import Ints
from optimizer.search.kernel.jit import allocating

LONGEST_LIST = 400_000
"""Multisets listed at most."""

RARE = 2_000
"""How many different amounts there must be for each that fits, to be worth it."""

DEEPEST = 4096
"""Pods on a node at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """What multisets are listed by: ``Σ_r weight[r]·demand[r]``; a full node has ``room``, less at most ``waste``."""

    demand: Ints
    room: int
    waste: int


def key_of(demand: Ints, room: Ints, waste: Ints, rare: int = RARE) -> Key | None:
    """Choose the key: all rows of which nothing may be left, or the row of which the least may be.

    ``None`` if more than one in ``rare`` amounts would do.
    """
    if not len(room):
        return None
    r = min(range(len(room)), key=lambda r: (int(waste[r]) + 1) / (int(room[r]) + 1))
    found = Key(demand[:, r], int(room[r]), int(waste[r]))
    digits, total, scale = np.zeros(len(demand), dtype=np.int64), 0, 1
    for r in np.flatnonzero(waste == 0).tolist():
        # Sums of a few pods may be several times the room; that only lets a few false ones through.
        if scale * (int(room[r]) + 1) * 16 > 1 << 60:
            break
        digits += scale * demand[:, r]
        total += scale * int(room[r])
        scale *= int(room[r]) + 1
    if total > found.room / (found.waste + 1):
        found = Key(digits, total, 0)
    return found if found.room > rare * (found.waste + 1) else None


def tail_length(kinds: int) -> int:
    """How many pods are looked up together."""
    return max((h for h in range(1, 5) if math.comb(kinds + h - 1, h) <= LONGEST_LIST), default=0)


def fillings(
    key: Key, demand: Ints, room: Ints, upper: Ints, waste: Ints, work: int, found: NDArray[np.int16]
) -> tuple[int, int, bool]:
    """Find all patterns that leave at most ``waste`` of each row; return their number, the work, and whether it is all.

    Parameters
    ----------
    demand, upper
        ``[k, r]`` and ``[k]``, of the kinds by rising key.
    found
        ``[p, k]`` filled with patterns.
    """
    length = tail_length(len(demand))
    if not length:
        return 0, 1, False
    made = np.maximum(0, -demand).T @ upper
    # What pods from each kind on can take away from the key at most.
    relief = np.cumsum((upper * np.minimum(0, key.demand))[::-1])[::-1].copy()
    number, looked, complete = 0, 0, True
    for h in range(1, length + 1):
        # Patterns of fewer pods than the longest tail have no small part.
        sums, members = _listed(key.demand, h)
        order = np.argsort(sums, kind="stable")
        number, more, complete = _meet(
            key.demand,
            key.room,
            key.waste,
            demand,
            room,
            room + made,
            upper,
            waste,
            sums[order],
            members[order],
            h == length,
            relief,
            work - looked,
            found,
            number,
        )
        looked += more + len(sums)
        if not complete:
            break
    return number, looked, complete


def _listed(key: Ints, h: int) -> tuple[Ints, NDArray[np.int16]]:
    """``[m]`` keys and ``[m, h]`` kinds, in order, of all multisets of ``h`` kinds."""
    members = np.arange(len(key), dtype=np.int16)[:, None]
    for _ in range(h - 1):
        last = members[:, -1].astype(np.int64)
        times = len(key) - last
        begin = np.repeat(np.cumsum(times) - times, times)
        following = (np.arange(int(times.sum())) - begin + np.repeat(last, times)).astype(np.int16)
        members = np.column_stack([np.repeat(members, times, axis=0), following])
    sums: Ints = key[members].sum(axis=1)
    return sums, members


@allocating
def _meet(
    key: Ints,
    full: int,
    spare: int,
    demand: Ints,
    room: Ints,
    reach: Ints,
    upper: Ints,
    waste: Ints,
    sums: Ints,
    members: NDArray[np.int16],
    extend: bool,
    relief: Ints,
    work: int,
    found: NDArray[np.int16],
    number: int,
) -> tuple[int, int, bool]:
    """Look up tails for every beginning: for none only, or for all of them if ``extend``."""
    kinds, rows = demand.shape
    h = members.shape[1]
    depth = 1
    for k in range(kinds):
        depth = min(DEEPEST, depth + upper[k])
    taken = np.zeros(depth + 1, dtype=np.int64)
    following = np.zeros(depth + 1, dtype=np.int64)
    load = np.zeros((depth + 1, rows), dtype=np.int64)
    weight = np.zeros(depth + 1, dtype=np.int64)
    x = np.zeros(kinds, dtype=np.int64)
    largest = key.max()
    looked = 0
    d = 0
    fresh = True
    while d >= 0:
        last = taken[d - 1] if d else 0
        if fresh:
            fresh = False
            following[d] = last
            low, high = full - spare - weight[d], full - weight[d]
            if high >= h * key[last] and low <= h * largest:
                first, end = 0, len(sums)
                while first < end:
                    half = (first + end) // 2
                    if sums[half] < low:
                        first = half + 1
                    else:
                        end = half
                looked += 4
                while first < len(sums) and sums[first] <= high:
                    looked += 2
                    if members[first, 0] >= last:
                        fit = True
                        for r in range(rows):
                            left = room[r] - load[d, r]
                            for j in range(h):
                                left -= demand[members[first, j], r]
                            if left < 0 or left > waste[r]:
                                fit = False
                                break
                        if fit:
                            for j in range(h):
                                x[members[first, j]] += 1
                            for j in range(h):
                                fit = fit and x[members[first, j]] <= upper[members[first, j]]
                            if fit:
                                if number == len(found):
                                    return number, looked, False
                                found[number, :] = x
                                number += 1
                            for j in range(h):
                                x[members[first, j]] -= 1
                    first += 1
            if not extend:
                return number, looked, True
        if looked > work or d == depth:
            return number, looked, False
        k = following[d]
        looked += 1
        if k >= kinds:
            d -= 1
            if d >= 0:
                x[taken[d]] -= 1
            continue
        following[d] = k + 1
        # After this pod come others and the tail, none of them with a smaller key.
        if weight[d] + (1 + h) * key[k] + relief[k] > full:
            following[d] = kinds
            continue
        if x[k] >= upper[k]:
            continue
        fit = True
        for r in range(rows):
            load[d + 1, r] = load[d, r] + demand[k, r]
            fit = fit and load[d + 1, r] <= reach[r]
        if fit:
            weight[d + 1] = weight[d] + key[k]
            taken[d] = k
            x[k] += 1
            d += 1
            fresh = True
    return number, looked, True
