"""Fewer moves to the same placement: two moves of a pod become one, or none, where its room allows."""

from __future__ import annotations

from typing import NamedTuple

from stowplan.optimizer.compiled.jit import compiled, inlined
from stowplan.optimizer.rearrangement.kernel.arrays import Int32, Int64, WalkModel
from stowplan.optimizer.reconfiguration.kernel.recording import POD, SOURCE, TARGET

GONE = -1

MOST_BETWEEN = 5_000
"""Moves between two of a pod that are looked at: in a long record of many pods, that would take too long otherwise."""

LEAST_GAIN = 0.01
"""Share of a record that another pass has to take away."""


class ShorteningState(NamedTuple):
    """Rooms along a record, and the moves of each pod.

    Parameters
    ----------
    first, room
        ``[N, R]`` capacity left before the first move, and at the move that is looked at.
    left, entered
        ``[i, R]`` capacity left on the source and on the target after each move.
    earlier, last
        ``[i]`` the move of the same pod before each, or -1; ``[P]`` the last one so far of each pod, or -1.
    before
        ``[R]`` capacity left on a node before a move.
    """

    first: Int64
    room: Int64
    left: Int64
    entered: Int64
    earlier: Int32
    last: Int32
    before: Int64


@inlined
def _holds(m: WalkModel, room: Int64, c: int) -> bool:
    """Whether room is left for one more pod of a class."""
    sign = 0
    for r in range(room.shape[0]):
        if m.need[0, c, r] > 0:
            sign |= room[r] - m.need[0, c, r]
    return sign >= 0


@inlined
def _add(m: WalkModel, room: Int64, c: int, times: int) -> None:
    for r in range(room.shape[0]):
        room[r] += times * m.need[0, c, r]


@inlined
def _related(m: WalkModel, c: int, d: int) -> bool:
    """Whether a relation names both classes."""
    found = False
    for i in range(m.member_at[c], m.member_at[c + 1]):
        for j in range(m.member_at[d], m.member_at[d + 1]):
            found |= m.member[i, 0] == m.member[j, 0]
    return found


@inlined
def _copy(room: Int64, to: Int64) -> None:
    for r in range(room.shape[0]):
        to[r] = room[r]


@inlined
def _stays_possible(m: WalkModel, s: ShorteningState, record: Int32, j: int, i: int, c: int, n: int) -> bool:
    """Whether between two moves a node had room for a pod all the time, and no pod moved that is related to it."""
    if i - j > MOST_BETWEEN:
        return False
    named = m.member_at[c] < m.member_at[c + 1]
    for k in range(j + 1, i):
        p = record[k, POD]
        if p == GONE:
            continue
        if record[k, SOURCE] == n and not _holds(m, s.left[k], c):
            return False
        if record[k, TARGET] == n and not _holds(m, s.entered[k], c):
            return False
        if named and _related(m, c, m.cls[p]):
            return False
    return True


@inlined
def _shift_rooms(m: WalkModel, s: ShorteningState, record: Int32, j: int, i: int, c: int, n: int, times: int) -> None:
    """Change the room of a node after the moves between two others by that of so many pods."""
    for k in range(j + 1, i):
        if record[k, POD] == GONE:
            continue
        if record[k, SOURCE] == n:
            _add(m, s.left[k], c, times)
        if record[k, TARGET] == n:
            _add(m, s.entered[k], c, times)


@inlined
def _find_room_before(s: ShorteningState, record: Int32, i: int, n: int) -> None:
    """Find the room of a node before a move."""
    k = i - 1
    while k >= 0 and (record[k, POD] == GONE or (record[k, SOURCE] != n and record[k, TARGET] != n)):
        k -= 1
    if k < 0:
        _copy(s.first[n], s.before)
    elif record[k, SOURCE] == n:
        _copy(s.left[k], s.before)
    else:
        _copy(s.entered[k], s.before)


@inlined
def _note_rooms(m: WalkModel, s: ShorteningState, record: Int32, length: int) -> None:
    """Note the rooms of both nodes after each move."""
    for n in range(s.first.shape[0]):
        _copy(s.first[n], s.room[n])
    for i in range(length):
        c = m.cls[record[i, POD]]
        a, b = record[i, SOURCE], record[i, TARGET]
        _add(m, s.room[a], c, 1)
        _add(m, s.room[b], c, -1)
        _copy(s.room[a], s.left[i])
        _copy(s.room[b], s.entered[i])


@compiled
def _pass(m: WalkModel, s: ShorteningState, record: Int32, length: int) -> int:
    """Go through a record once; return how many moves it has then."""
    _note_rooms(m, s, record, length)
    for p in range(len(s.last)):
        s.last[p] = -1
    for i in range(length):
        p = record[i, POD]
        c = m.cls[p]
        at = i
        s.earlier[i] = s.last[p]
        s.last[p] = i
        while at >= 0 and s.earlier[at] >= 0:
            j = s.earlier[at]
            a, b, t = record[j, SOURCE], record[j, TARGET], record[at, TARGET]
            if _stays_possible(m, s, record, j, at, c, a):
                _find_room_before(s, record, at, a)
                _shift_rooms(m, s, record, j, at, c, a, -1)
                _shift_rooms(m, s, record, j, at, c, b, 1)
                record[j, POD] = GONE
                s.earlier[at] = s.earlier[j]
                if a == t:
                    record[at, POD] = GONE
                    s.last[p] = s.earlier[at]
                    at = -1
                else:
                    record[at, SOURCE] = a
                    _copy(s.before, s.left[at])
                continue
            if a != t:
                _find_room_before(s, record, j, t)
                if _holds(m, s.before, c) and _stays_possible(m, s, record, j, at, c, t):
                    _shift_rooms(m, s, record, j, at, c, t, -1)
                    _shift_rooms(m, s, record, j, at, c, b, 1)
                    record[at, POD] = GONE
                    record[j, TARGET] = t
                    _copy(s.before, s.entered[j])
                    _add(m, s.entered[j], c, -1)
                    s.last[p] = j
                    at = j
                    continue
            at = -1
    kept = 0
    for i in range(length):
        if record[i, POD] != GONE:
            for k in range(3):
                record[kept, k] = record[i, k]
            kept += 1
    return kept


@compiled
def shorten(m: WalkModel, s: ShorteningState, record: Int32, length: int) -> int:
    """Make a record shorter as long as that goes well; return how many moves it has then."""
    while True:
        kept = _pass(m, s, record, length)
        if kept >= (1 - LEAST_GAIN) * length:
            return kept
        length = kept
