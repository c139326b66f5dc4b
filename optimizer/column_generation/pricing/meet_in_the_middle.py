"""Patterns that fill a node almost exactly, enumerated by meet in the middle.

Where next to nothing of a row may be left, a search pod by pod learns too late that a pattern cannot fill the row. So
all multisets of a few pods are listed by their demand in that row. A pattern is a prefix of small pods, enumerated
depth first, and a suffix of a few large ones, which is looked up. Rows of which nothing may be left are combined as the
digits of one number (E. Horowitz and S. Sahni, "Computing partitions with applications to the knapsack problem",
1974).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.optimizer.column_generation.pricing.suffixes import SuffixLists, list_suffixes, suffix_length
from stowplan.optimizer.compiled.jit import allocating, compiled, inlined

DEEPEST = 4096
"""Pods on a node at most."""

LISTING = 10
"""Work that listing one multiset counts as, in candidates of a search."""

UNREACHED = 1 << 61
"""More than any demand."""


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """The key row, ``Σ_r weight[r]·demand[r]``: a nearly full node takes ``residual`` less at most ``waste``."""

    demand: Ints
    residual: int
    waste: int


def key_of(demand: Ints, residual: Ints, waste: Ints, rare: int) -> Key | None:
    """Choose the key: all rows of which nothing may be left, or the row of which the least may be.

    ``None`` if more than one in ``rare`` amounts is acceptable.
    """
    if not len(residual):
        return None
    r = min(range(len(residual)), key=lambda r: (int(waste[r]) + 1) / (int(residual[r]) + 1))
    found = Key(demand[:, r], int(residual[r]), int(waste[r]))
    digits, total, scale = np.zeros(len(demand), dtype=np.int64), 0, 1
    for r in np.flatnonzero(waste == 0).tolist():
        # Sums of a few pods may be several times the capacity; that only lets a few false candidates through.
        if scale * (int(residual[r]) + 1) * 16 > 1 << 60:
            break
        digits += scale * demand[:, r]
        total += scale * int(residual[r])
        scale *= int(residual[r]) + 1
    if total > found.residual / (found.waste + 1):
        found = Key(digits, total, 0)
    return found if found.residual > rare * (found.waste + 1) else None


class MeetInTheMiddle:
    """Enumerates patterns that leave at most so much of each row; lists are kept between calls.

    Parameters
    ----------
    demand, residual
        ``[k, r]`` and ``[r]``.
    waste
        ``[r]`` how much of each row may be left.
    longest
        Multisets listed at most.
    """

    def __init__(self, key: Key, demand: Ints, residual: Ints, waste: Ints, longest: int) -> None:
        self._order = np.argsort(key.demand, kind="stable")
        # The key is one row more: the last.
        self._demand = np.ascontiguousarray(np.column_stack([demand, key.demand])[self._order])
        self._residual, self._waste = np.append(residual, key.residual), np.append(waste, key.waste)
        self._length = suffix_length(len(demand), longest)
        self._suffixes: list[SuffixLists] = []

    @property
    def ready(self) -> bool:
        """Whether all lists have been made."""
        return len(self._suffixes) == self._length

    def prepare(self, work: int) -> int:
        """Make the lists unless that takes more than ``work``; return the work."""
        kinds = len(self._demand)
        listing = LISTING * sum(math.comb(kinds + h - 1, h) for h in range(1, self._length + 1))
        if self.ready or listing > work:
            return 1
        window = int(self._waste[-1]) + 1
        self._suffixes = [list_suffixes(self._demand[:, -1], h, window) for h in range(1, self._length + 1)]
        return listing

    def find(self, upper: Ints, held: Ints, work: int, cap: int) -> tuple[NDArray[np.int16], int, bool]:
        """Find all patterns within limits; return ``[p, k]`` patterns, the work, and whether it is all of them.

        No pattern is empty.

        Parameters
        ----------
        upper, held
            ``[k]`` the most pods of each kind in a pattern, and how many of them every pattern contains.
        """
        kinds, rows = self._demand.shape
        found = np.zeros((cap, kinds), dtype=np.int16)
        upper, held = upper[self._order], held[self._order]
        reach = self._residual + np.maximum(0, -self._demand).T @ upper
        looked, number = self.prepare(work), 0
        complete = self.ready
        alone = self._residual - held @ self._demand
        if held.any() and ((alone >= 0) & (alone <= self._waste)).all():
            found[0], number = held, 1
        for h, suffixes in enumerate(self._suffixes, 1):
            if not complete:
                break
            # Patterns of fewer pods than the longest suffix have no prefix.
            least, most = np.zeros((2, kinds, rows), dtype=np.int64)
            for r in range(rows):
                least[:, r] = _least(self._demand[:, r], upper - held, h)
                most[:, r] = -_least(-self._demand[:, r], upper - held, h)
            frame = _Frame(suffixes, self._demand, self._residual, reach, self._waste, least, most, upper)
            number, more, complete = _extend_prefixes(frame, held, h == self._length, work - looked, found, number)
            looked += more
        patterns = np.zeros((number, kinds), dtype=np.int16)
        patterns[:, self._order] = found[:number]
        return patterns, looked, complete


class _Frame(NamedTuple):
    """What stays the same while suffixes are looked up; kernels call it ``f``.

    Parameters
    ----------
    demand, residual, waste
        ``[k, r]``, ``[r]`` and ``[r]``; the last row is the key, by which kinds are sorted.
    reach
        ``[r]`` capacity, with all that pods of negative demand can free.
    least, most
        ``[k, r]`` the least and the most that a suffix of kinds from ``k`` on takes of a row.
    upper
        ``[k]`` most pods of each kind.
    """

    suffixes: SuffixLists
    demand: Ints
    residual: Ints
    reach: Ints
    waste: Ints
    least: Ints
    most: Ints
    upper: Ints


def _least(demand: Ints, copies: Ints, h: int) -> Ints:
    """``[k]`` the least that ``h`` pods of kinds from ``k`` on take of a row; `UNREACHED` if there are not so many."""
    order = np.argsort(demand, kind="stable")
    later = np.arange(len(demand))[:, None] <= order[None, :]
    taken = np.minimum(np.cumsum(np.where(later, copies[order], 0), axis=1), h)
    each = np.diff(taken, axis=1, prepend=0)
    total: Ints = np.where(taken[:, -1] == h, each @ demand[order], UNREACHED)
    return total


@allocating
def _extend_prefixes(
    f: _Frame, held: Ints, extend: bool, work: int, found: NDArray[np.int16], number: int
) -> tuple[int, int, bool]:
    """Look up suffixes for the prefix of the held pods alone, or for all prefixes if ``extend``.

    Parameters
    ----------
    held
        ``[k]`` how many pods of each kind every pattern contains.

    Returns
    -------
    tuple
        How many patterns ``found`` holds, the work, and whether it is all of them.
    """
    kinds, rows = f.demand.shape
    depth = 1
    for k in range(kinds):
        depth = min(DEEPEST, depth + f.upper[k])
    taken = np.zeros(depth + 1, dtype=np.int64)
    following = np.zeros(depth + 1, dtype=np.int64)
    load = np.zeros((depth + 1, rows), dtype=np.int64)
    promising = np.zeros(kinds, dtype=np.int64)
    x = held.copy()
    for r in range(rows):
        for k in range(kinds):
            load[0, r] += held[k] * f.demand[k, r]
    number, looked, complete = _add_suffixes(f, load[0], x, 0, found, number)
    if not extend:
        return number, looked, complete
    d = 0
    fresh = True
    while complete:
        if fresh:
            # All prefixes of one pod more are looked up together, so that cache misses overlap.
            fresh = False
            first = taken[d - 1] if d else 0
            following[d] = first
            count, seen = _promising(f, load[d], x, first, promising)
            looked += seen + 2
            for i in range(count):
                k = promising[i]
                x[k] += 1
                for r in range(rows):
                    load[d + 1, r] = load[d, r] + f.demand[k, r]
                number, more, found_all = _add_suffixes(f, load[d + 1], x, k, found, number)
                complete = complete and found_all
                looked += more
                x[k] -= 1
            complete = complete and looked <= work
        k = following[d]
        looked += 1
        if k >= kinds or _exceeds(f, load[d], k):
            d -= 1
            if d < 0:
                return number, looked, complete
            x[taken[d]] -= 1
            continue
        following[d] = k + 1
        if x[k] >= f.upper[k] or not _fits(f, load[d], k):
            continue
        for r in range(rows):
            load[d + 1, r] = load[d, r] + f.demand[k, r]
        if _exceeds(f, load[d + 1], k):
            continue
        taken[d] = k
        x[k] += 1
        d += 1
        fresh = True
        complete = complete and d < depth
    return number, looked, False


@inlined
def _exceeds(f: _Frame, load: Ints, k: int) -> bool:
    """Whether neither this kind nor any with a larger key can be added together with a suffix."""
    key = f.demand.shape[1] - 1
    return bool(load[key] + f.demand[k, key] + f.least[k, key] > f.reach[key])


@inlined
def _fits(f: _Frame, load: Ints, k: int) -> bool:
    """Whether a pod of a kind can be added together with a suffix."""
    fit = True
    for r in range(len(f.reach)):
        fit = fit and load[r] + f.demand[k, r] + f.least[k, r] <= f.reach[r]
    return fit


@compiled
def _promising(f: _Frame, load: Ints, x: Ints, first: int, promising: Ints) -> tuple[int, int]:
    """List the kinds, from ``first`` on, of which one pod more leaves capacity that a suffix may fill.

    Returns
    -------
    tuple
        How many there are, and how many were examined.
    """
    kinds, rows = f.demand.shape
    key = rows - 1
    lowest, stretches = f.suffixes.sums[0], len(f.suffixes.seen) << 6
    count = 0
    for k in range(first, kinds):
        if _exceeds(f, load, k):
            return count, k - first
        promise = x[k] < f.upper[k]
        for r in range(rows):
            left = f.residual[r] - load[r] - f.demand[k, r]
            promise = promise and f.least[k, r] <= left and f.most[k, r] >= left - f.waste[r]
        if promise:
            high = f.residual[key] - load[key] - f.demand[k, key] - lowest
            begin, end = max(0, (high - f.waste[key]) >> f.suffixes.shift), min(stretches - 1, high >> f.suffixes.shift)
            bits = f.suffixes.seen[begin >> 6] >> np.uint64(begin & 63) | f.suffixes.seen[end >> 6] >> np.uint64(
                end & 63
            )
            promising[count] = k
            count += 1 if bits & np.uint64(1) else 0
    return count, kinds - first


@compiled
def _add_suffixes(
    f: _Frame, load: Ints, x: Ints, last: int, found: NDArray[np.int16], number: int
) -> tuple[int, int, bool]:
    """Complete a prefix ``x`` by all suffixes of kinds from ``last`` on that fill the node; see `_extend_prefixes`."""
    key = f.demand.shape[1] - 1
    high = f.residual[key] - load[key]
    looked = 10
    for i in range(np.searchsorted(f.suffixes.sums, high - f.waste[key]), len(f.suffixes.sums)):
        if f.suffixes.sums[i] > high:
            break
        looked += 5
        members = f.suffixes.members[i]
        if members[0] < last or not _is_nearly_full(f, members, load):
            continue
        for k in members:
            x[k] += 1
        fit = True
        for k in members:
            fit = fit and x[k] <= f.upper[k]
        if fit and number < len(found):
            for k in range(len(x)):
                found[number, k] = x[k]
        for k in members:
            x[k] -= 1
        if fit:
            if number == len(found):
                return number, looked, False
            number += 1
    return number, looked, True


@compiled
def _is_nearly_full(f: _Frame, members: NDArray[np.int16], load: Ints) -> bool:
    """Whether a suffix leaves at most ``waste`` of each row."""
    found_all = True
    for r in range(len(f.residual)):
        left = f.residual[r] - load[r]
        for k in members:
            left -= f.demand[k, r]
        found_all = found_all and 0 <= left <= f.waste[r]
    return found_all
