"""Fewer moves to the same placement: two moves of a pod become one, or none, where its room allows."""

from __future__ import annotations

from stowplan.optimizer.compiled.jit import compiled, inlined
from stowplan.optimizer.rearrangement.kernel.arrays import Int32, Int64, WalkModel
from stowplan.optimizer.reconfiguration.kernel.recording import POD, SOURCE, TARGET

GONE = -1

MOST_BETWEEN = 5_000
"""Moves between two of a pod that are looked at: in a long record of many pods, that would take too long otherwise."""

LEAST_GAIN = 0.01
"""Share of a record that another pass has to take away."""


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
def _stays_possible(m: WalkModel, record: Int32, left: Int64, entered: Int64, j: int, i: int, c: int, n: int) -> bool:
    """Whether between two moves a node had room for a pod all the time, and no pod moved that is related to it."""
    if i - j > MOST_BETWEEN:
        return False
    named = m.member_at[c] < m.member_at[c + 1]
    for k in range(j + 1, i):
        p = record[k, POD]
        if p == GONE:
            continue
        if record[k, SOURCE] == n and not _holds(m, left[k], c):
            return False
        if record[k, TARGET] == n and not _holds(m, entered[k], c):
            return False
        if named and _related(m, c, m.cls[p]):
            return False
    return True


@inlined
def _shift_rooms(
    m: WalkModel, record: Int32, left: Int64, entered: Int64, j: int, i: int, c: int, n: int, times: int
) -> None:
    """Change the room of a node after the moves between two others by that of so many pods."""
    for k in range(j + 1, i):
        if record[k, POD] == GONE:
            continue
        if record[k, SOURCE] == n:
            _add(m, left[k], c, times)
        if record[k, TARGET] == n:
            _add(m, entered[k], c, times)


@inlined
def _room_before(record: Int32, left: Int64, entered: Int64, first: Int64, i: int, n: int, found: Int64) -> None:
    """Find the room of a node before a move."""
    k = i - 1
    while k >= 0 and (record[k, POD] == GONE or (record[k, SOURCE] != n and record[k, TARGET] != n)):
        k -= 1
    for r in range(first.shape[1]):
        if k < 0:
            found[r] = first[n, r]
        else:
            found[r] = left[k, r] if record[k, SOURCE] == n else entered[k, r]


@compiled
def _pass(
    m: WalkModel,
    first: Int64,
    room: Int64,
    record: Int32,
    length: int,
    left: Int64,
    entered: Int64,
    earlier: Int32,
    last: Int32,
    found: Int64,
) -> int:
    for n in range(first.shape[0]):
        for r in range(first.shape[1]):
            room[n, r] = first[n, r]
    for i in range(length):
        c = m.cls[record[i, POD]]
        a, b = record[i, SOURCE], record[i, TARGET]
        _add(m, room[a], c, 1)
        _add(m, room[b], c, -1)
        for r in range(first.shape[1]):
            left[i, r] = room[a, r]
            entered[i, r] = room[b, r]
    for p in range(len(last)):
        last[p] = -1
    for i in range(length):
        p = record[i, POD]
        c = m.cls[p]
        at = i
        earlier[i] = last[p]
        last[p] = i
        while at >= 0 and earlier[at] >= 0:
            j = earlier[at]
            a, b, t = record[j, SOURCE], record[j, TARGET], record[at, TARGET]
            if _stays_possible(m, record, left, entered, j, at, c, a):
                _room_before(record, left, entered, first, at, a, found)
                _shift_rooms(m, record, left, entered, j, at, c, a, -1)
                _shift_rooms(m, record, left, entered, j, at, c, b, 1)
                record[j, POD] = GONE
                earlier[at] = earlier[j]
                if a == t:
                    record[at, POD] = GONE
                    last[p] = earlier[at]
                    at = -1
                else:
                    record[at, SOURCE] = a
                    for r in range(first.shape[1]):
                        left[at, r] = found[r]
                continue
            if a != t:
                _room_before(record, left, entered, first, j, t, found)
                if _holds(m, found, c) and _stays_possible(m, record, left, entered, j, at, c, t):
                    _shift_rooms(m, record, left, entered, j, at, c, t, -1)
                    _shift_rooms(m, record, left, entered, j, at, c, b, 1)
                    record[at, POD] = GONE
                    record[j, TARGET] = t
                    for r in range(first.shape[1]):
                        entered[j, r] = found[r]
                    _add(m, entered[j], c, -1)
                    last[p] = j
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
def shorten(
    m: WalkModel,
    first: Int64,
    room: Int64,
    record: Int32,
    length: int,
    left: Int64,
    entered: Int64,
    earlier: Int32,
    last: Int32,
    found: Int64,
) -> int:
    """Make a record shorter as long as that goes well; return how many moves it has then."""
    while True:
        kept = _pass(m, first, room, record, length, left, entered, earlier, last, found)
        if kept >= (1 - LEAST_GAIN) * length:
            return kept
        length = kept
