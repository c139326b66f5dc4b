"""Moves of one pod, carried out exactly, and the evaluation of their change of cost beforehand."""

from __future__ import annotations

from stowplan.optimizer.annealing.kernel.curves import curve_at, missed
from stowplan.optimizer.annealing.kernel.layout import (
    C_ALLOW,
    C_MISSING,
    C_OPTIONAL,
    H_C_CAPACITY,
    H_C_CURVE,
    H_C_MOVE,
    H_C_PREFER,
    H_C_UNPLACED,
    H_CAPACITIES,
    H_CURVES,
    H_DEVICES,
    H_F_BEFORE,
    H_F_OPEN,
    H_F_PENALTY,
    H_F_PIECE,
    H_F_PIECES,
    H_F_ROOM,
    H_MOVE_LIMIT,
    H_NODES,
    H_OPENS,
    H_PREFERS,
    H_SCORES,
    H_TIERS,
    H_V_CURVE,
    H_V_LOAD,
    H_V_SCORE,
    H_V_VALUE,
    ILLEGAL,
    MOVED,
    P_CLASS,
    P_NODE,
)
from stowplan.optimizer.annealing.kernel.node import count_devices, count_nowhere, count_on_node, is_newcomer, list_on
from stowplan.optimizer.annealing.kernel.relations import count_relations
from stowplan.optimizer.annealing.kernel.state import Int64, SearchState
from stowplan.optimizer.compiled.jit import compiled, inlined


@compiled
def shift(s: SearchState, p: int, target: int) -> None:
    """Move a pod to another node, or to none. All values follow; the caller checks whether it is legal."""
    c, source = s.pod[p, P_CLASS], s.pod[p, P_NODE]
    nodes, devices = s.head[H_NODES], s.head[H_DEVICES]
    left, came = False, False
    if source < nodes:
        left = count_on_node(s, c, source, -1)
    else:
        count_nowhere(s, c, -1)
    list_on(s, p, target)
    if devices and source < nodes:
        count_devices(s, c, source, -1, left)
    if target < nodes:
        came = count_on_node(s, c, target, 1)
        if devices:
            count_devices(s, c, target, 1, came)
    else:
        count_nowhere(s, c, 1)
    count_relations(s, c, source, target, left, came)


@compiled
def place_all(s: SearchState, where: Int64) -> None:
    """Put every pod on the node of ``where[p]``.

    On the way, a node may be assigned more pods than its list has slots, so those that find it full are left without a
    node at first.
    """
    nodes = s.head[H_NODES]
    for p in range(len(where)):
        n = where[p]
        if s.pod[p, P_NODE] != n:
            shift(s, p, n if n == nodes or s.width[n] < s.on_at[n + 1] - s.on_at[n] else nodes)
    for p in range(len(where)):
        if s.pod[p, P_NODE] != where[p]:
            shift(s, p, where[p])


@inlined
def legal(s: SearchState) -> bool:
    """Whether the placement is feasible."""
    tiers = s.head[H_TIERS]
    return bool(s.value[tiers + ILLEGAL] == 0 and s.value[tiers + MOVED] <= s.head[H_MOVE_LIMIT])


@compiled
def evaluate_delta(s: SearchState, p: int, other: int, source: int, target: int, change: Int64, most: int) -> bool:
    """Evaluate the change of cost on the nodes if a pod moved, in exchange for another one or not.

    Parameters
    ----------
    other
        A pod on ``target`` that would come to ``source``, or -1.
    source, target
        Either may be node number ``N``, which is none; ``p`` is on ``source``.
    change
        ``[T + 2]`` is filled with the change of each tier, relations and exchanged scores left out, of the capacity
        that moves hold, and of the overload; the latter is 0 if none is allowed.
    most
        Overload up to which a node's capacity may be violated.

    Returns
    -------
    bool
        ``False`` if the move is certainly illegal. Relations, devices and shared things are not checked.
    """
    nodes, tiers = s.head[H_NODES], s.head[H_TIERS]
    c = s.pod[p, P_CLASS]
    e = s.pod[other, P_CLASS] if other >= 0 else -1
    for t in range(tiers + 2):
        change[t] = 0
    # The target refuses most often.
    if target < nodes:
        if not _fits(s, c, e, target, most, change):
            return False
    elif s.cls[c, C_MISSING] >= s.cls[c, C_OPTIONAL]:
        return False
    if source < nodes:
        if not _fits(s, e, c, source, most, change):
            return False
        _delta_on_node(s, e, c, source, change)
    else:
        _delta_of_unplaced(s, e, c, change)
    if target < nodes:
        _delta_on_node(s, c, e, target, change)
    else:
        _delta_of_unplaced(s, c, e, change)
    return True


@inlined
def _fits(s: SearchState, comes: int, goes: int, n: int, most: int, change: Int64) -> bool:
    """Whether a node may exchange one pod for another, either of which may be none; see `_fits_with_overload`."""
    if most:
        return _fits_with_overload(s, comes, goes, n, most, change)
    return comes < 0 or fits(s, comes, goes, n)


@compiled
def fits(s: SearchState, comes: int, goes: int, n: int) -> bool:
    """Whether a pod of one class fits on a node after one of another class has left it; -1 for no pod."""
    if not is_newcomer(s, comes, n, 1):
        return True
    if s.mask[s.cls[comes, C_ALLOW], n]:
        return False
    old = goes >= 0 and not is_newcomer(s, goes, n, 0)
    for r in range(s.head[H_CAPACITIES]):
        at = s.head[H_C_CAPACITY] + r
        more = s.cls[comes, at]
        if more == 0:
            continue
        if goes >= 0 and not (old and s.transient[r]):
            more -= s.cls[goes, at]
        if s.live[n, s.head[H_V_LOAD] + r] + more > s.fix[n, s.head[H_F_ROOM] + r]:
            return False
    return True


@compiled
def _fits_with_overload(s: SearchState, comes: int, goes: int, n: int, most: int, change: Int64) -> bool:
    """Like `fits`, but with capacities relaxed up to an overload of ``most``, whose change is added to ``change``.

    Where a capacity was violated at the start, no pod is admitted that `fits` would refuse.
    """
    new = comes >= 0 and is_newcomer(s, comes, n, 1)
    if new and s.mask[s.cls[comes, C_ALLOW], n]:
        return False
    old = goes >= 0 and not is_newcomer(s, goes, n, 0)
    total = 0
    for r in range(s.head[H_CAPACITIES]):
        at = s.head[H_C_CAPACITY] + r
        demand = s.cls[comes, at] if comes >= 0 and (new or not s.transient[r]) else 0
        more = demand
        if goes >= 0 and not (old and s.transient[r]):
            more -= s.cls[goes, at]
        room, load = s.fix[n, s.head[H_F_ROOM] + r], s.live[n, s.head[H_V_LOAD] + r]
        if more == 0 or (load <= room and load + more <= room):
            continue
        if s.fix[n, s.head[H_F_BEFORE] + r] > 0:
            if new and demand > 0 and load + more > room:
                return False
            continue
        penalty = s.fix[n, s.head[H_F_PENALTY] + r]
        over = max(0, load + more - room) * penalty
        if more > 0 and over > most:
            return False
        total += over - max(0, load - room) * penalty
    change[s.head[H_TIERS] + 1] += total
    return True


@inlined
def _delta_of_unplaced(s: SearchState, comes: int, goes: int, change: Int64) -> None:
    first = s.head[H_C_UNPLACED]
    for t in range(s.head[H_TIERS]):
        if comes >= 0:
            change[t] += s.cls[comes, first + t]
        if goes >= 0:
            change[t] -= s.cls[goes, first + t]


@inlined
def _delta_on_node(s: SearchState, comes: int, goes: int, n: int, change: Int64) -> None:
    """Add the change of cost of one node where a pod of one class arrives and one of another leaves; -1 for no pod."""
    nodes, tiers = s.head[H_NODES], s.head[H_TIERS]
    new = comes >= 0 and is_newcomer(s, comes, n, 1)
    old = goes >= 0 and not is_newcomer(s, goes, n, 0)
    for i in range(s.head[H_CURVES]):
        at = s.head[H_C_CURVE] + i
        demand = (s.cls[comes, at] if comes >= 0 else 0) - (s.cls[goes, at] if goes >= 0 else 0)
        piece = s.fix[n, s.head[H_F_PIECE] + i]
        if demand == 0 or piece < 0:
            continue
        cost = curve_at(s.piece, piece, s.fix[n, s.head[H_F_PIECES] + i], s.live[n, s.head[H_V_CURVE] + i] + demand)
        change[s.curve[i, 0]] += s.curve[i, 1] * (cost - s.live[n, s.head[H_V_VALUE] + i])
    if comes < 0 or goes < 0:
        for i in range(s.head[H_SCORES]):
            cost = missed(s, i, n, comes, 1) if comes >= 0 else missed(s, i, n, goes, -1)
            change[s.score[i, 0]] += s.score[i, 1] * (cost - s.live[n, s.head[H_V_SCORE] + i])
        for i in range(s.head[H_OPENS]):
            if comes >= 0 and s.width[n] == 0:
                change[s.opened[i, 0]] += s.fix[n, s.head[H_F_OPEN] + i]
            if goes >= 0 and s.width[n] == 1:
                change[s.opened[i, 0]] -= s.fix[n, s.head[H_F_OPEN] + i]
    for i in range(s.head[H_PREFERS]):
        first, row = s.prefer[i, 2] + n, s.head[H_C_PREFER] + i
        cost = 0
        if comes >= 0:
            cost += s.table[first + s.cls[comes, row] * nodes]
        if goes >= 0:
            cost -= s.table[first + s.cls[goes, row] * nodes]
        change[s.prefer[i, 0]] += s.prefer[i, 1] * cost
    first = s.head[H_C_MOVE]
    for t in range(tiers + 1):
        if comes >= 0 and not new:
            change[t] -= s.cls[comes, first + t]
        if old:
            change[t] += s.cls[goes, first + t]
