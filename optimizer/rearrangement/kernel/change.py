"""What a pod changes on the nodes it leaves and enters: room, cost, and the shift itself."""

from __future__ import annotations

from stowplan.optimizer.compiled.jit import compiled, inlined
from stowplan.optimizer.rearrangement.kernel.arrays import (
    COST,
    DIRTY,
    MOVED_PODS,
    MOVES,
    PEAK,
    Int32,
    WalkModel,
    WalkState,
)
from stowplan.optimizer.rearrangement.kernel.relations import count_arrival, count_relations


@inlined
def returns(m: WalkModel, s: WalkState, c: int, b: int) -> int:
    """Return 1 if one more pod of a class on a node is one that started there, else 0."""
    row = m.row[c]
    if row < 0:
        return 1 if m.start[c] == b else 0
    return 1 if s.delta[row, b] < 0 else 0


@inlined
def is_native(m: WalkModel, s: WalkState, c: int, a: int) -> int:
    """Return 1 if the next pod of a class to leave a node is one that started there, else 0."""
    row = m.row[c]
    if row < 0:
        return 1 if m.start[c] == a else 0
    return 1 if s.delta[row, a] <= 0 else 0


@inlined
def fits(m: WalkModel, s: WalkState, b: int, c: int, returning: int, e: int, native: int) -> bool:
    """Whether a node has room for a pod of class ``c`` once one of class ``e`` has left."""
    sign = 0
    # No early end: without branches, the processor looks at several capacities at once.
    for r in range(s.room.shape[1]):
        sign |= s.room[b, r] - m.need[returning, c, r] + m.need[native, e, r]
    return sign >= 0


@inlined
def curve_change(m: WalkModel, s: WalkState, n: int, k: int, by: int) -> int:
    """Return by how much a curve of a node rises if its load changes."""
    at = s.level[n, k] + by
    j = s.piece[n, k]
    if by > 0:
        last = m.last[n, k]
        while j < last and at >= m.begin[j + 1]:
            j += 1
    else:
        first = m.first[n, k]
        while j > first and at < m.begin[j]:
            j -= 1
    return int(m.worth[j] + m.slope[j] * (at - m.begin[j]) - s.value_at[n, k])


@inlined
def node_change(m: WalkModel, s: WalkState, n: int, c: int, e: int) -> int:
    """Return by how much the curves of a node rise if a pod of class ``c`` comes and one of class ``e`` leaves."""
    if m.hinged:
        worth = 0
        for k in range(m.demand.shape[1]):
            worth += m.rate[n, k] * max(0, s.level[n, k] + m.demand[c, k] - m.demand[e, k])
        return int(worth - s.charge[n])
    change = 0
    for k in range(m.demand.shape[1]):
        by = m.demand[c, k] - m.demand[e, k]
        if by != 0:
            change += curve_change(m, s, n, k, by)
    return change


@inlined
def own_change(m: WalkModel, s: WalkState, c: int, a: int, b: int) -> int:
    """Return by how much the cost of a pod by itself changes: what the node costs it, and its move."""
    row = m.price_row[c]
    change = m.price[row, b] - m.price[row, a]
    leavers = is_native(m, s, c, a) - returns(m, s, c, b)
    change += leavers * m.move[c]
    g = m.group[c]
    if leavers > 0:
        if g >= 0 and s.leavers[g] == s.value[PEAK]:
            change += m.peak
    elif leavers < 0 and g >= 0 and s.leavers[g] == s.value[PEAK] and s.groups_with[s.leavers[g]] == 1:
        # No other group has as many movers.
        change -= m.peak
    return int(change)


@inlined
def exceeds_limit(m: WalkModel, s: WalkState, leavers: int) -> bool:
    """Whether too many pods have left the nodes they started on once so many more have."""
    return bool(s.value[MOVES] + leavers > m.limit)


@inlined
def _set_leavers(m: WalkModel, s: WalkState, g: int, by: int) -> None:
    number = s.leavers[g]
    s.leavers[g] = number + by
    s.groups_with[number] -= 1
    s.groups_with[number + by] += 1
    peak = s.value[PEAK]
    if number + by > peak:
        s.value[PEAK] = peak + 1
        s.value[COST] += m.peak
    elif number == peak and by < 0 and s.groups_with[number] == 0:
        s.value[PEAK] = peak - 1
        s.value[COST] -= m.peak


@inlined
def _follow_curves(m: WalkModel, s: WalkState, n: int, c: int, by: int) -> int:
    """Change the load of a node's curves by that of a pod; return by how much they rise."""
    change = 0
    for k in range(m.demand.shape[1]):
        demand = by * m.demand[c, k]
        if demand == 0:
            continue
        at = s.level[n, k] + demand
        j = s.piece[n, k]
        if demand > 0:
            while j < m.last[n, k] and at >= m.begin[j + 1]:
                j += 1
        else:
            while j > m.first[n, k] and at < m.begin[j]:
                j -= 1
        worth = m.worth[j] + m.slope[j] * (at - m.begin[j])
        change += worth - s.value_at[n, k]
        s.level[n, k] = at
        s.piece[n, k] = j
        s.value_at[n, k] = worth
    return change


@inlined
def _count_on_node(m: WalkModel, s: WalkState, n: int, c: int, of_start: int, by: int) -> None:
    for r in range(s.room.shape[1]):
        s.room[n, r] -= by * m.need[of_start, c, r]
    change = 0
    if m.hinged:
        worth = 0
        for k in range(m.demand.shape[1]):
            at = s.level[n, k] + by * m.demand[c, k]
            s.level[n, k] = at
            worth += m.rate[n, k] * max(0, at)
        change = worth - s.charge[n]
    else:
        change = _follow_curves(m, s, n, c, by)
    s.charge[n] += change
    g = m.group[c]
    cost = change + by * m.price[m.price_row[c], n]
    if of_start:
        cost -= by * m.move[c]
        s.value[MOVES] -= by
        if g >= 0:
            _set_leavers(m, s, g, -by)
    s.value[COST] += cost
    if m.row[c] >= 0:
        s.delta[m.row[c], n] += by


@inlined
def _list_away(m: WalkModel, s: WalkState, p: int, b: int) -> None:
    if m.home[p] < 0 or not s.own[m.home[p]]:
        return
    at = s.away_at[p]
    if b == m.home[p] and at >= 0:
        last = s.value[MOVED_PODS] - 1
        other = s.away[last]
        s.away[at] = other
        s.away_at[other] = at
        s.away_at[p] = -1
        s.value[MOVED_PODS] = last
    elif b != m.home[p] and at < 0:
        s.away[s.value[MOVED_PODS]] = p
        s.away_at[p] = s.value[MOVED_PODS]
        s.value[MOVED_PODS] += 1


@compiled
def shift(m: WalkModel, s: WalkState, p: int, b: int) -> None:
    """Move a pod to another node, whether that is legal or not."""
    c, a = m.cls[p], s.node[p]
    count_relations(m, s, c, a, b)
    _count_on_node(m, s, a, c, is_native(m, s, c, a), -1)
    _count_on_node(m, s, b, c, returns(m, s, c, b), 1)
    last = s.width[a] - 1
    other = s.on[a, last]
    s.on[a, s.slot[p]] = other
    s.slot[other] = s.slot[p]
    s.width[a] = last
    s.on[b, s.width[b]] = p
    s.slot[p] = s.width[b]
    s.width[b] += 1
    s.node[p] = b
    _list_away(m, s, p, b)
    if not s.dirty_at[p]:
        s.dirty_at[p] = True
        s.dirty[s.value[DIRTY]] = p
        s.value[DIRTY] += 1


@compiled
def place_all(m: WalkModel, s: WalkState, node: Int32) -> None:
    """Put all pods, of which none has a node, on theirs; costs count from there."""
    for n in range(m.first.shape[0]):
        for k in range(m.first.shape[1]):
            if m.hinged:
                s.charge[n] += m.rate[n, k] * max(0, s.level[n, k])
                continue
            j = m.first[n, k]
            while j < m.last[n, k] and s.level[n, k] >= m.begin[j + 1]:
                j += 1
            s.piece[n, k] = j
            s.value_at[n, k] = m.worth[j] + m.slope[j] * (s.level[n, k] - m.begin[j])
            s.charge[n] += s.value_at[n, k]
    for p in range(len(node)):
        c, b = m.cls[p], node[p]
        count_arrival(m, s, c, b)
        _count_on_node(m, s, b, c, returns(m, s, c, b), 1)
        s.on[b, s.width[b]] = p
        s.slot[p] = s.width[b]
        s.width[b] += 1
        s.node[p] = b
        _list_away(m, s, p, b)
    s.value[COST] = 0
