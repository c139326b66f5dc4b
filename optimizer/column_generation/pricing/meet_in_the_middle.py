"""Patterns that fill a node almost exactly, by meeting in the middle.

Where next to nothing of a row may be left, a search that goes on pod by pod learns too late that a pattern does not
come out even. So all multisets of a few kinds are listed by their demand in that row. A pattern is its small pods,
which are searched depth first, and a tail of a few large ones, which are looked up. Rows of which nothing may be left
are read as the digits of one number.
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

LONGEST_LIST = 400_000
"""Multisets listed at most, where a single enumeration is to pay for it."""

RARE = 2_000
"""How many different amounts there must be for each that fits, to be worth it."""

DEEPEST = 4096
"""Pods on a node at most."""

LISTING = 10
"""Work that a multiset in a list stands for, in candidates of a search."""

UNREACHED = 1 << 61
"""More than any pods take."""


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """What multisets are listed by: ``Σ_r weight[r]·demand[r]``; a full node has ``residual`` less at most ``waste``."""

    demand: Ints
    residual: int
    waste: int


def key_of(demand: Ints, residual: Ints, waste: Ints, rare: int = RARE) -> Key | None:
    """Choose the key: all rows of which nothing may be left, or the row of which the least may be.

    ``None`` if more than one in ``rare`` amounts would do.
    """
    if not len(residual):
        return None
    r = min(range(len(residual)), key=lambda r: (int(waste[r]) + 1) / (int(residual[r]) + 1))
    found = Key(demand[:, r], int(residual[r]), int(waste[r]))
    digits, total, scale = np.zeros(len(demand), dtype=np.int64), 0, 1
    for r in np.flatnonzero(waste == 0).tolist():
        # Sums of a few pods may be several times the room; that only lets a few false ones through.
        if scale * (int(residual[r]) + 1) * 16 > 1 << 60:
            break
        digits += scale * demand[:, r]
        total += scale * int(residual[r])
        scale *= int(residual[r]) + 1
    if total > found.residual / (found.waste + 1):
        found = Key(digits, total, 0)
    return found if found.residual > rare * (found.waste + 1) else None


class MeetInTheMiddle:
    """Finds patterns that leave at most so much of each row; lists are kept from one time to the next.

    Parameters
    ----------
    demand, residual
        ``[k, r]`` and ``[r]``.
    waste
        ``[r]`` how much of each row may be left.
    longest
        Multisets listed at most.
    """

    def __init__(self, key: Key, demand: Ints, residual: Ints, waste: Ints, longest: int = LONGEST_LIST) -> None:
        self._order = np.argsort(key.demand, kind="stable")
        # The key is one row more: the last.
        self._demand = np.ascontiguousarray(np.column_stack([demand, key.demand])[self._order])
        self._residual, self._waste = np.append(residual, key.residual), np.append(waste, key.waste)
        self._length = suffix_length(len(demand), longest)
        self._suffixes: list[SuffixLists] = []

    @property
    def ready(self) -> bool:
        """Whether all lists are there."""
        return len(self._suffixes) == self._length

    def prepare(self, work: int) -> int:
        """Make the lists, if there are none and it takes no more work than so much; return the work."""
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
            ``[k]`` the most pods of each kind in a pattern, and how many of them are in it in any case.
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
            # Patterns of fewer pods than the longest tail have no small part.
            least, most = np.zeros((2, kinds, rows), dtype=np.int64)
            for r in range(rows):
                least[:, r] = _least(self._demand[:, r], upper - held, h)
                most[:, r] = -_least(-self._demand[:, r], upper - held, h)
            frame = _Frame(suffixes, self._demand, self._residual, reach, self._waste, least, most, upper)
            number, more, complete = _meet(frame, held, h == self._length, work - looked, found, number)
            looked += more
        patterns = np.zeros((number, kinds), dtype=np.int16)
        patterns[:, self._order] = found[:number]
        return patterns, looked, complete


class _Frame(NamedTuple):
    """What stays the same while tails are looked up.

    Parameters
    ----------
    demand, residual, waste
        ``[k, r]``, ``[r]`` and ``[r]``; the last row is the key, by which kinds are sorted.
    reach
        ``[r]`` room, with all that pods can make.
    least, most
        ``[k, r]`` the least and the most that a tail takes of a row, of kinds from ``k`` on.
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
    """``[k]`` the least that ``h`` pods take of a row, of kinds from ``k`` on; a huge number if there are none."""
    order = np.argsort(demand, kind="stable")
    later = np.arange(len(demand))[:, None] <= order[None, :]
    taken = np.minimum(np.cumsum(np.where(later, copies[order], 0), axis=1), h)
    each = np.diff(taken, axis=1, prepend=0)
    total: Ints = np.where(taken[:, -1] == h, each @ demand[order], UNREACHED)
    return total


@allocating
def _meet(
    f: _Frame, held: Ints, extend: bool, work: int, found: NDArray[np.int16], number: int
) -> tuple[int, int, bool]:
    """Look up tails for every beginning: for what is held only, or for all of them if ``extend``.

    Parameters
    ----------
    held
        ``[k]`` how many pods of each kind there are in any case.

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
    likely = np.zeros(kinds, dtype=np.int64)
    x = held.copy()
    for r in range(rows):
        for k in range(kinds):
            load[0, r] += held[k] * f.demand[k, r]
    number, looked, complete = _look(f, load[0], x, 0, found, number)
    if not extend:
        return number, looked, complete
    d = 0
    fresh = True
    while complete:
        if fresh:
            # All beginnings of one pod more are looked up together, so that the processor waits for memory only once.
            fresh = False
            first = taken[d - 1] if d else 0
            following[d] = first
            count, seen = _likely(f, load[d], x, first, likely)
            looked += seen + 2
            for i in range(count):
                k = likely[i]
                x[k] += 1
                for r in range(rows):
                    load[d + 1, r] = load[d, r] + f.demand[k, r]
                number, more, even = _look(f, load[d + 1], x, k, found, number)
                complete = complete and even
                looked += more
                x[k] -= 1
            complete = complete and looked <= work
        k = following[d]
        looked += 1
        if k >= kinds or _beyond(f, load[d], k):
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
        if _beyond(f, load[d + 1], k):
            continue
        taken[d] = k
        x[k] += 1
        d += 1
        fresh = True
        complete = complete and d < depth
    return number, looked, False


@inlined
def _beyond(f: _Frame, load: Ints, k: int) -> bool:
    """Whether neither this kind nor any that takes more of the key can be added, and then a tail."""
    key = f.demand.shape[1] - 1
    return bool(load[key] + f.demand[k, key] + f.least[k, key] > f.reach[key])


@inlined
def _fits(f: _Frame, load: Ints, k: int) -> bool:
    """Whether a pod of a kind can be added, and then a tail."""
    fit = True
    for r in range(len(f.reach)):
        fit = fit and load[r] + f.demand[k, r] + f.least[k, r] <= f.reach[r]
    return fit


@compiled
def _likely(f: _Frame, load: Ints, x: Ints, first: int, likely: Ints) -> tuple[int, int]:
    """Write down the kinds, from ``first`` on, of which one pod more leaves room that a tail may fill.

    Returns
    -------
    tuple
        How many there are, and how many were looked at.
    """
    kinds, rows = f.demand.shape
    key = rows - 1
    lowest, stretches = f.suffixes.sums[0], len(f.suffixes.seen) << 6
    count = 0
    for k in range(first, kinds):
        if _beyond(f, load, k):
            return count, k - first
        hope = x[k] < f.upper[k]
        for r in range(rows):
            left = f.residual[r] - load[r] - f.demand[k, r]
            hope = hope and f.least[k, r] <= left and f.most[k, r] >= left - f.waste[r]
        if hope:
            high = f.residual[key] - load[key] - f.demand[k, key] - lowest
            begin, end = max(0, (high - f.waste[key]) >> f.suffixes.shift), min(stretches - 1, high >> f.suffixes.shift)
            bits = f.suffixes.seen[begin >> 6] >> np.uint64(begin & 63) | f.suffixes.seen[end >> 6] >> np.uint64(
                end & 63
            )
            likely[count] = k
            count += 1 if bits & np.uint64(1) else 0
    return count, kinds - first


@compiled
def _look(f: _Frame, load: Ints, x: Ints, last: int, found: NDArray[np.int16], number: int) -> tuple[int, int, bool]:
    """Add to a beginning ``x`` all tails of kinds from ``last`` on that fill the node; see `_meet`."""
    key = f.demand.shape[1] - 1
    high = f.residual[key] - load[key]
    looked = 10
    for i in range(np.searchsorted(f.suffixes.sums, high - f.waste[key]), len(f.suffixes.sums)):
        if f.suffixes.sums[i] > high:
            break
        looked += 5
        members = f.suffixes.members[i]
        if members[0] < last or not _even(f, members, load):
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
def _even(f: _Frame, members: NDArray[np.int16], load: Ints) -> bool:
    """Whether a tail leaves at most ``waste`` of each row."""
    even = True
    for r in range(len(f.residual)):
        left = f.residual[r] - load[r]
        for k in members:
            left -= f.demand[k, r]
        even = even and 0 <= left <= f.waste[r]
    return even
