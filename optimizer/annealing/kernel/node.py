"""The change of a node's loads, violations and costs when one pod leaves it or arrives."""

from __future__ import annotations

import numpy as np

from stowplan.models.problem import PENALTY_WEIGHT
from stowplan.optimizer.annealing.kernel.curves import curve_at, missed
from stowplan.optimizer.annealing.kernel.layout import (
    C_ALLOW,
    C_HOME,
    C_MISSING,
    C_OPTIONAL,
    C_ROW,
    H_C_BUNDLE,
    H_C_CAPACITY,
    H_C_CURVE,
    H_C_LOAD,
    H_C_MOVE,
    H_C_OWN,
    H_C_PART,
    H_C_PREFER,
    H_C_SCORED,
    H_C_UNPLACED,
    H_C_WHOLE,
    H_CAPACITIES,
    H_CURVES,
    H_DEVICES,
    H_DISTINCTS,
    H_F_BEFORE,
    H_F_DEVICE_BEFORE,
    H_F_DEVICE_HELD,
    H_F_DEVICE_HELDS,
    H_F_DEVICES,
    H_F_DISTINCT_BEFORE,
    H_F_LIMIT,
    H_F_OPEN,
    H_F_PENALTY,
    H_F_PENALTY_WEIGHT,
    H_F_PIECE,
    H_F_PIECES,
    H_F_ROOM,
    H_NODES,
    H_OPENS,
    H_PREFERS,
    H_SCORES,
    H_TIERS,
    H_V_ARRIVED,
    H_V_CURVE,
    H_V_DEVICE_ARRIVED,
    H_V_DEVICE_VIOLATION,
    H_V_DISTINCT_ARRIVED,
    H_V_LOAD,
    H_V_SCORE,
    H_V_SCORED,
    H_V_USAGE,
    H_V_USED,
    H_V_VALUE,
    H_V_WHOLE,
    ILLEGAL,
    MOVED,
    OVERLOAD,
    OVERLOADED,
    P_CLASS,
    P_NODE,
    P_SLOT,
    UNPLACED,
)
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.compiled.bin_packing import least_bins
from stowplan.optimizer.compiled.jit import allocating, compiled, inlined


@inlined
def is_illegal(violation: int, before: int, arrived: int) -> int:
    """Return 1 if a place is violated more than at the start, or violated with newcomers; else 0."""
    return 1 if violation > 0 and (violation > before or arrived > 0) else 0


@inlined
def is_newcomer(s: SearchState, c: int, n: int, k: int) -> bool:
    """Whether the last pod of a class on a node (``k`` = 0), or one more (``k`` = 1), is not one that started there."""
    row = s.cls[c, C_ROW]
    if row < 0:
        return bool(s.cls[c, C_HOME] != n)
    return bool(s.delta[row, n] + k > 0)


@compiled
def count_on_node(s: SearchState, c: int, n: int, k: int) -> bool:
    """Count one pod more (``k`` = 1) or less (-1) of a class on a node; relations and devices are counted elsewhere.

    Returns
    -------
    bool
        Whether the pod is a newcomer, rather than one of those that the class had there at the start.
    """
    tiers = s.head[H_TIERS]
    row = s.cls[c, C_ROW]
    newcomer = is_newcomer(s, c, n, 1 if k > 0 else 0)
    if row >= 0:
        s.delta[row, n] += k
    violation = 0
    wrong = 0
    forbidden = s.mask[s.cls[c, C_ALLOW], n]
    if forbidden:
        violation += k * forbidden * PENALTY_WEIGHT
        if newcomer:
            wrong += k
    for r in range(s.head[H_CAPACITIES]):
        demand = s.cls[c, s.head[H_C_CAPACITY] + r]
        if demand == 0:
            continue
        room, before = s.fix[n, s.head[H_F_ROOM] + r], s.fix[n, s.head[H_F_BEFORE] + r]
        at = s.head[H_V_LOAD] + r
        load, arrived = s.live[n, at], s.live[n, s.head[H_V_ARRIVED] + r]
        now = load
        if newcomer or not s.transient[r]:
            now += k * demand
            s.live[n, at] = now
        if before > 0 and newcomer and demand > 0:
            s.live[n, s.head[H_V_ARRIVED] + r] = arrived + k
        if load > room or now > room:
            was, is_now = max(0, load - room), max(0, now - room)
            worse = is_illegal(is_now, before, s.live[n, s.head[H_V_ARRIVED] + r]) - is_illegal(was, before, arrived)
            wrong += worse
            if before > 0:
                violation += (is_now - was) * s.fix[n, s.head[H_F_PENALTY_WEIGHT] + r]
            else:
                # Illegal in any case, so it does not count in the tiers; a chain may pass through it for a penalty.
                s.value[tiers + OVERLOAD] += (is_now - was) * s.fix[n, s.head[H_F_PENALTY] + r]
                s.value[tiers + OVERLOADED] += worse
    for i in range(s.head[H_CURVES]):
        demand = s.cls[c, s.head[H_C_CURVE] + i]
        piece = s.fix[n, s.head[H_F_PIECE] + i]
        if demand == 0 or piece < 0:
            continue
        load = s.live[n, s.head[H_V_CURVE] + i] + k * demand
        s.live[n, s.head[H_V_CURVE] + i] = load
        cost = curve_at(s.piece, piece, s.fix[n, s.head[H_F_PIECES] + i], load)
        s.value[s.curve[i, 0]] += s.curve[i, 1] * (cost - s.live[n, s.head[H_V_VALUE] + i])
        s.live[n, s.head[H_V_VALUE] + i] = cost
    for i in range(s.head[H_SCORES]):
        for r in range(s.score[i, 3], s.score[i, 3] + s.score[i, 4]):
            s.live[n, s.head[H_V_USAGE] + r] += k * s.cls[c, s.head[H_C_LOAD] + r]
        s.live[n, s.head[H_V_SCORED] + i] += k * s.cls[c, s.head[H_C_SCORED] + i]
        cost = missed(s, i, n, c, 0)
        s.value[s.score[i, 0]] += s.score[i, 1] * (cost - s.live[n, s.head[H_V_SCORE] + i])
        s.live[n, s.head[H_V_SCORE] + i] = cost
    for i in range(s.head[H_PREFERS]):
        at = s.prefer[i, 2] + s.cls[c, s.head[H_C_PREFER] + i] * s.head[H_NODES] + n
        s.value[s.prefer[i, 0]] += k * s.prefer[i, 1] * s.table[at]
    for i in range(s.head[H_DISTINCTS]):
        changed = _count_things(s, i, c, n, k, newcomer)
        violation += changed[0]
        wrong += changed[1]
    if not newcomer:
        s.value[tiers + MOVED] -= k
        for t in range(tiers + 1):
            s.value[t] -= k * s.cls[c, s.head[H_C_MOVE] + t]
    for t in range(tiers):
        s.value[t] += violation * s.violation_weight[t]
    s.value[tiers + ILLEGAL] += wrong
    s.fill[n] += k * s.weight[c]
    return newcomer


@compiled
def _count_things(s: SearchState, i: int, c: int, n: int, k: int, newcomer: bool) -> tuple[int, int]:
    """Count the things of one pod; return the change of the weighted violation and of the number of illegal places."""
    own, bundle = s.cls[c, s.head[H_C_OWN] + i], s.cls[c, s.head[H_C_BUNDLE] + i]
    if own == 0 and bundle < 0:
        return 0, 0
    used, arrived = s.live[n, s.head[H_V_USED] + i], s.live[n, s.head[H_V_DISTINCT_ARRIVED] + i]
    now = used + k * own
    if bundle >= 0:
        for at in range(s.bundle_at[bundle], s.bundle_at[bundle + 1]):
            thing = s.bundle[at]
            users = s.thing[thing, n] + k
            s.thing[thing, n] = users
            if k > 0 and users == 1:
                now += 1
            elif k < 0 and users == 0:
                now -= 1
    s.live[n, s.head[H_V_USED] + i] = now
    if newcomer:
        s.live[n, s.head[H_V_DISTINCT_ARRIVED] + i] = arrived + k
    limit, before = s.fix[n, s.head[H_F_LIMIT] + i], s.fix[n, s.head[H_F_DISTINCT_BEFORE] + i]
    was, is_now = max(0, used - limit), max(0, now - limit)
    if was == 0 and is_now == 0:
        return 0, 0
    wrong = is_illegal(is_now, before, s.live[n, s.head[H_V_DISTINCT_ARRIVED] + i]) - is_illegal(was, before, arrived)
    return (is_now - was) * PENALTY_WEIGHT, wrong


@compiled
def count_devices(s: SearchState, c: int, n: int, k: int, newcomer: bool) -> None:
    """Count the devices of a pod after the node's list of pods was updated."""
    tiers = s.head[H_TIERS]
    for i in range(s.head[H_DEVICES]):
        whole, part = s.cls[c, s.head[H_C_WHOLE] + i], s.cls[c, s.head[H_C_PART] + i]
        if whole == 0 and part == 0:
            continue
        was, arrived = s.live[n, s.head[H_V_DEVICE_VIOLATION] + i], s.live[n, s.head[H_V_DEVICE_ARRIVED] + i]
        s.live[n, s.head[H_V_WHOLE] + i] += k * whole
        if newcomer:
            s.live[n, s.head[H_V_DEVICE_ARRIVED] + i] = arrived + k
        now = device_violation(s, i, n)
        s.live[n, s.head[H_V_DEVICE_VIOLATION] + i] = now
        before = s.fix[n, s.head[H_F_DEVICE_BEFORE] + i]
        s.value[tiers + ILLEGAL] += is_illegal(now, before, s.live[n, s.head[H_V_DEVICE_ARRIVED] + i]) - is_illegal(
            was, before, arrived
        )
        if now != was:
            for t in range(tiers):
                s.value[t] += (now - was) * PENALTY_WEIGHT * s.violation_weight[t]


@allocating
def device_violation(s: SearchState, i: int, n: int) -> int:
    """Return how many devices a node lacks; anything worse than at the start is reported as one more than that."""
    held, helds = s.fix[n, s.head[H_F_DEVICE_HELD] + i], s.fix[n, s.head[H_F_DEVICE_HELDS] + i]
    parts = np.empty(helds + s.width[n], dtype=np.int64)
    number = 0
    for at in range(held, held + helds):
        parts[number] = s.held_part[at]
        number += 1
    for at in range(s.width[n]):
        part = s.cls[s.pod[s.on[s.on_at[n] + at], P_CLASS], s.head[H_C_PART] + i]
        if part:
            parts[number] = part
            number += 1
    room = s.fix[n, s.head[H_F_DEVICES] + i] - s.live[n, s.head[H_V_WHOLE] + i]
    most = max(0, room) + s.fix[n, s.head[H_F_DEVICE_BEFORE] + i]
    return int(max(0, least_bins(parts, number, s.device[i], most) - room))


@compiled
def count_nowhere(s: SearchState, c: int, k: int) -> None:
    """Count one pod more or less without a node."""
    tiers = s.head[H_TIERS]
    missing, optional = s.cls[c, C_MISSING], s.cls[c, C_OPTIONAL]
    s.cls[c, C_MISSING] = missing + k
    s.value[tiers + ILLEGAL] += max(0, missing + k - optional) - max(0, missing - optional)
    first = s.head[H_C_UNPLACED]
    for t in range(tiers):
        s.value[t] += k * s.cls[c, first + t]
    s.value[tiers + UNPLACED] += k


@compiled
def list_on(s: SearchState, p: int, n: int) -> None:
    """Move a pod from its node's list to another's, and update the cost of nodes that open or close."""
    old, slot = s.pod[p, P_NODE], s.pod[p, P_SLOT]
    nodes = s.head[H_NODES]
    last = s.width[old] - 1
    other = s.on[s.on_at[old] + last]
    s.on[s.on_at[old] + slot] = other
    s.pod[other, P_SLOT] = slot
    s.width[old] = last
    s.on[s.on_at[n] + s.width[n]] = p
    s.pod[p, P_NODE] = n
    s.pod[p, P_SLOT] = s.width[n]
    s.width[n] += 1
    for i in range(s.head[H_OPENS]):
        at = s.head[H_F_OPEN] + i
        if n < nodes and s.width[n] == 1:
            s.value[s.opened[i, 0]] += s.fix[n, at]
        if old < nodes and last == 0:
            s.value[s.opened[i, 0]] -= s.fix[old, at]
