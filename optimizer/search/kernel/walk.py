"""A random walk over legal placements that tends downhill: simulated annealing on one tier, the others in order."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimizer.search.kernel.chance import State, below, uniform
from optimizer.search.kernel.image import Image, Int64
from optimizer.search.kernel.jit import compiled, inlined, merged
from optimizer.search.kernel.layout import (
    BAD,
    C_CHOICE,
    C_CHOICE_END,
    C_HOMES,
    C_HOMES_END,
    C_MEMBER,
    C_MEMBER_END,
    C_POD,
    C_PRICED,
    H_CLASSES,
    H_MOVE_LIMIT,
    H_NODES,
    H_PODS,
    H_SCORES,
    H_TIERS,
    MOVE_PEAK,
    MOVED,
    OVERFILL,
    OVERFULL,
    P_CLASS,
    P_NODE,
    R_CREW,
    R_CREW_END,
    R_DOMAINS,
    R_KIND,
    R_TOPOLOGY,
)
from optimizer.search.kernel.moves import admits, glance, legal, shift
from optimizer.search.kernel.outlook import barred, price_relations

KINDS = 9
SHIFT, SWAP, CHAIN, INSERT, EVACUATE, GROUP, HOME, RETURN, MATE = range(KINDS)

LONGEST = 256
"""Most pods that one step moves."""

LOOKS = 8
"""Nodes that are looked at for a pod that has to go somewhere."""


class Walker(NamedTuple):
    """What a walk remembers between batches of steps.

    Parameters
    ----------
    chance
        State of the random numbers.
    mix
        ``[KINDS]`` cumulative shares of the kinds of steps.
    aimed
        Pods that take part in something exceeded; half of all steps begin with one of them.
    best, best_value
        ``[P]`` node of each pod in the best placement so far, and ``[T]`` the values of its tiers.
    dirty, dirty_at, counts
        Pods that moved since then, whether a pod is among them, and how many they are in ``counts[0]``.
    change, before
        ``[T + 2]`` scratch: the tiers, the room that moves hold, and the overfill.
    uphill
        By how much the last steps that were uphill would have worsened the tier; ``counts[1]`` of them were seen.
    path
        ``[LONGEST, 2]`` pods moved in the step under way, and where they were.
    """

    chance: State
    mix: NDArray[np.float64]
    aimed: Int64
    best: Int64
    best_value: Int64
    dirty: Int64
    dirty_at: NDArray[np.bool_]
    counts: Int64
    change: Int64
    before: Int64
    uphill: Int64
    path: Int64


class Prices(NamedTuple):
    """What a walk pays besides the tier it improves.

    Parameters
    ----------
    rent
        For a unit of room that moved pods hold on the nodes they left.
    overfill
        For a unit of overfill of capacities that are exceeded on the way.
    most
        Overfill up to which a node's capacity may be exceeded; 0 if the walk stays legal.
    """

    rent: float
    overfill: float
    most: int


@compiled
def walk(s: Image, w: Walker, steps: int, focus: int, heat: float, pull: float, prices: Prices) -> None:
    """Take a number of steps.

    Parameters
    ----------
    focus
        The tier to improve. Tiers above never get worse.
    heat
        Temperature, in units of that tier.
    pull
        Temperature of the pull towards full and empty nodes that decides between equals; 0 for no pull.
    prices
        What is paid besides, in units of that tier.
    """
    nodes, tiers = s.head[H_NODES], s.head[H_TIERS]
    for _ in range(steps):
        slack = -heat * log(uniform(w.chance)) if heat > 0 else 0.0
        drift = -pull * log(uniform(w.chance)) if pull > 0 else -1.0
        draw = uniform(w.chance)
        kind = 0
        while kind < KINDS - 1 and draw > w.mix[kind]:
            kind += 1
        p = _pick(s, w)
        if s.pod[p, P_NODE] == nodes:
            kind = INSERT
        elif kind == INSERT and s.width[nodes]:
            p = s.on[s.on_at[nodes] + below(w.chance, s.width[nodes])]
        elif kind == INSERT:
            kind = SHIFT
        for t in range(tiers + 1):
            w.before[t] = s.value[t]
        w.before[tiers + 1] = s.value[tiers + OVERFILL]
        other = -1
        if kind == MATE:
            other = _mate(s, w, p)
            target = _enterable(s, p, s.pod[other, P_NODE]) if other >= 0 else -1
        else:
            target = _home_node(s, w, p) if kind in (HOME, RETURN) else _open_node(s, w, p)
        if kind in (SWAP, RETURN) and target >= 0:
            other = _on_node(s, w, target)
            if other < 0:
                continue
        if other >= 0 and s.pod[other, P_CLASS] == s.pod[p, P_CLASS]:
            continue
        if kind == INSERT:
            elsewhere = _somewhere(s, w, p, focus, -1, prices)
            if elsewhere >= 0:
                target = elsewhere
            elif target >= 0 and s.width[target]:
                # Nowhere is room: take the place of another pod, or push others aside.
                kind = CHAIN
                if uniform(w.chance) < 0.5:
                    kind, other = SWAP, _on_node(s, w, target)
        length = 0
        if kind == EVACUATE:
            length = _evacuate(s, w, focus, prices)
        elif target < 0:
            continue
        elif kind == CHAIN:
            length = _push(s, w, p, target, focus, prices)
        elif kind == GROUP:
            length = _group(s, w, p, target)
        elif _promises(s, w, p, other, target, focus, slack, drift, prices):
            source = s.pod[p, P_NODE]
            length = _go(s, w, 0, p, target)
            if other >= 0:
                length = _go(s, w, length, other, source)
        if length:
            _keep_or_undo(s, w, length, focus, slack, prices)


@inlined
def _pick(s: Image, w: Walker) -> int:
    """Pick a pod to begin with."""
    if len(w.aimed) > 1 and uniform(w.chance) < 0.5:
        return int(w.aimed[below(w.chance, len(w.aimed) - 1)])
    return below(w.chance, s.head[H_PODS])


@inlined
def _on_node(s: Image, w: Walker, n: int) -> int:
    """Pick a pod on a node, or return -1 if there is none."""
    if s.width[n] == 0:
        return -1
    return int(s.on[s.on_at[n] + below(w.chance, s.width[n])])


@inlined
def _mate(s: Image, w: Walker, p: int) -> int:
    """Pick a pod that a rule or term counts together with another one, or return -1 if there is none."""
    c = s.pod[p, P_CLASS]
    first, end = s.cls[c, C_MEMBER], s.cls[c, C_MEMBER_END]
    if end == first:
        return -1
    q = s.member[first + below(w.chance, end - first), 0]
    crew, crew_end = s.relation[q, R_CREW], s.relation[q, R_CREW_END]
    if crew == crew_end or s.relation[q, R_KIND] == MOVE_PEAK:
        return -1
    mate = s.crew[crew + below(w.chance, crew_end - crew)]
    begin = s.cls[mate, C_POD]
    close = s.cls[mate + 1, C_POD] if mate + 1 < s.head[H_CLASSES] else s.head[H_PODS]
    return int(begin + below(w.chance, close - begin))


@inlined
def _home_node(s: Image, w: Walker, p: int) -> int:
    """Pick a node that a pod's class started on, or return -1 if the pod cannot go there."""
    c = s.pod[p, P_CLASS]
    return _one_of(s, w, p, s.home, s.cls[c, C_HOMES], s.cls[c, C_HOMES_END])


@inlined
def _open_node(s: Image, w: Walker, p: int) -> int:
    """Pick a node that is open to a pod, or return -1 if the pod cannot go there."""
    c = s.pod[p, P_CLASS]
    return _one_of(s, w, p, s.choice, s.cls[c, C_CHOICE], s.cls[c, C_CHOICE_END])


@inlined
def _one_of(s: Image, w: Walker, p: int, nodes: Int64, first: int, end: int) -> int:
    """Pick one of ``nodes[first : end]``, or return -1 if a pod cannot go there; see `_enterable`."""
    if end == first:
        return -1
    return _enterable(s, p, int(nodes[first + below(w.chance, end - first)]))


@inlined
def _enterable(s: Image, p: int, n: int) -> int:
    """Return a node, or -1 if it is none, a pod stands on it already or its list is full."""
    if n >= s.head[H_NODES] or n == s.pod[p, P_NODE] or s.width[n] >= s.on_at[n + 1] - s.on_at[n]:
        return -1
    return n


@inlined
def _welcome(s: Image, change: Int64, focus: int, slack: float, prices: Prices) -> bool:
    """Whether a change of the tiers is taken."""
    tiers = s.head[H_TIERS]
    for t in range(focus):
        if change[t] != 0:
            return bool(change[t] < 0 and change[tiers + 1] <= 0)
    paid = prices.rent * change[tiers] + prices.overfill * change[tiers + 1]
    return bool(change[focus] + paid <= slack)


@inlined
def _moved(s: Image, w: Walker, p: int) -> None:
    """Take note that a pod moved for good."""
    if not w.dirty_at[p]:
        w.dirty_at[p] = True
        w.dirty[w.counts[0]] = p
        w.counts[0] += 1


@compiled
def _settle(s: Image, w: Walker) -> None:
    """Remember the placement if it is the best so far."""
    tiers = s.head[H_TIERS]
    for t in range(tiers):
        if s.value[t] > w.best_value[t]:
            return
        if s.value[t] < w.best_value[t]:
            break
        if t == tiers - 1:
            return
    for t in range(tiers):
        w.best_value[t] = s.value[t]
    for i in range(w.counts[0]):
        p = w.dirty[i]
        w.best[p] = s.pod[p, P_NODE]
        w.dirty_at[p] = False
    w.counts[0] = 0


@inlined
def _passable(s: Image, prices: Prices) -> bool:
    """Whether a walk may go on from here: nothing is illegal but for nodes that are overfilled at a price."""
    tiers = s.head[H_TIERS]
    wrong = s.value[tiers + BAD] - (s.value[tiers + OVERFULL] if prices.most else 0)
    return bool(wrong == 0 and s.value[tiers + MOVED] <= s.head[H_MOVE_LIMIT])


@merged
def _keep_or_undo(s: Image, w: Walker, length: int, focus: int, slack: float, prices: Prices) -> None:
    """Keep the moves on the path if they are legal and welcome all together; undo them otherwise."""
    tiers = s.head[H_TIERS]
    if _passable(s, prices):
        for t in range(tiers + 1):
            w.change[t] = s.value[t] - w.before[t]
        w.change[tiers + 1] = s.value[tiers + OVERFILL] - w.before[tiers + 1]
        if _welcome(s, w.change, focus, slack, prices):
            for i in range(length):
                _moved(s, w, w.path[i, 0])
            if legal(s):
                _settle(s, w)
            return
    for i in range(length - 1, -1, -1):
        shift(s, w.path[i, 0], w.path[i, 1])


@merged
def _go(s: Image, w: Walker, length: int, p: int, target: int) -> int:
    """Move a pod as part of a path; return the path's new length."""
    w.path[length, 0] = p
    w.path[length, 1] = s.pod[p, P_NODE]
    shift(s, p, target)
    return length + 1


@merged
def _promises(
    s: Image, w: Walker, p: int, other: int, target: int, focus: int, slack: float, drift: float, prices: Prices
) -> bool:
    """Whether it is worth trying to move a pod to a node, in exchange for another one or not."""
    source, c = s.pod[p, P_NODE], s.pod[p, P_CLASS]
    e = s.pod[other, P_CLASS] if other >= 0 else -1
    if not glance(s, p, other, source, target, w.change, prices.most) or barred(s, c, e, source, target):
        return False
    unsure = _exceeds(s) or (e >= 0 and s.head[H_SCORES] > 0)
    if s.cls[c, C_PRICED] or (e >= 0 and s.cls[e, C_PRICED]):
        unsure = not price_relations(s, c, e, source, target, w.change) or unsure
    if w.change[focus] > 0:
        w.uphill[w.counts[1] % len(w.uphill)] = w.change[focus]
        w.counts[1] += 1
    if unsure:
        return True
    if not _welcome(s, w.change, focus, slack, prices):
        return False
    if drift < 0 or source == s.head[H_NODES] or w.change[focus] != 0:
        return True
    mine = s.weight[c] - (s.weight[e] if e >= 0 else 0.0)
    return bool(-mine * (s.fill[target] - s.fill[source] + mine) <= drift)


@inlined
def _exceeds(s: Image) -> bool:
    """Whether something may be exceeded that costs."""
    exceeds = False
    for t in range(s.head[H_TIERS]):
        exceeds = exceeds or bool(s.excess_weight[t] and s.value[t] != 0)
    return exceeds


@compiled
def _somewhere(s: Image, w: Walker, p: int, focus: int, avoid: int, prices: Prices) -> int:
    """Return the best of a few open nodes that could take a pod, or -1."""
    c, source = s.pod[p, P_CLASS], s.pod[p, P_NODE]
    best, best_cost, best_fill = -1, np.int64(0), 0.0
    for _ in range(LOOKS):
        n = _open_node(s, w, p)
        if n < 0 or n == avoid:
            continue
        if not glance(s, p, -1, source, n, w.change, prices.most) or barred(s, c, -1, source, n):
            continue
        cost = w.change[focus] + int(prices.overfill * w.change[s.head[H_TIERS] + 1])
        if best < 0 or cost < best_cost or (cost == best_cost and s.fill[n] > best_fill):
            best, best_cost, best_fill = n, cost, s.fill[n]
    return best


@merged
def _push(s: Image, w: Walker, p: int, target: int, focus: int, prices: Prices) -> int:
    """Push a pod onto a node and others off it, up to three, each to the best of a few nodes."""
    length = _go(s, w, 0, p, target)
    for _ in range(3):
        other = _on_node(s, w, target)
        if other == p:
            continue
        elsewhere = _somewhere(s, w, other, focus, target, prices)
        if elsewhere < 0:
            continue
        length = _go(s, w, length, other, elsewhere)
        if _passable(s, prices):
            break
    return length


@merged
def _evacuate(s: Image, w: Walker, focus: int, prices: Prices) -> int:
    """Empty the emptiest of a few nodes."""
    nodes, pods = s.head[H_NODES], s.head[H_PODS]
    n = nodes
    for _ in range(4):
        other = s.pod[below(w.chance, pods), P_NODE]
        if other < nodes and (n == nodes or s.fill[other] < s.fill[n]):
            n = other
    length = 0
    while n < nodes and 0 < s.width[n] <= LONGEST - length:
        p = s.on[s.on_at[n] + s.width[n] - 1]
        elsewhere = _somewhere(s, w, p, focus, n, prices)
        if elsewhere < 0 or s.width[elsewhere] == 0:
            break
        length = _go(s, w, length, p, elsewhere)
    return length


@merged
def _group(s: Image, w: Walker, p: int, target: int) -> int:
    """Move all pods of a relation that share a domain with a pod into the domain of another node."""
    c = s.pod[p, P_CLASS]
    first, end = s.cls[c, C_MEMBER], s.cls[c, C_MEMBER_END]
    nodes = s.head[H_NODES]
    length = 0
    q = s.member[first + below(w.chance, end - first), 0] if end > first else -1
    old, new = -1, -1
    if q >= 0 and s.relation[q, R_KIND] != MOVE_PEAK:
        old, new = s.domain[s.relation[q, R_TOPOLOGY], s.pod[p, P_NODE]], s.domain[s.relation[q, R_TOPOLOGY], target]
    if old >= 0 and new >= 0 and old != new:
        topology = s.relation[q, R_TOPOLOGY]
        length = _go(s, w, 0, p, target)
        for at in range(s.relation[q, R_CREW], s.relation[q, R_CREW_END]):
            crew = s.crew[at]
            pod = s.cls[crew, C_POD]
            while pod < s.head[H_PODS] and s.pod[pod, P_CLASS] == crew and length < LONGEST:
                here = s.pod[pod, P_NODE]
                if here < nodes and s.domain[topology, here] == old:
                    for _ in range(2 * s.relation[q, R_DOMAINS] + LOOKS):
                        n = _open_node(s, w, pod)
                        if n >= 0 and s.domain[topology, n] == new and admits(s, s.pod[pod, P_CLASS], -1, n):
                            length = _go(s, w, length, pod, n)
                            break
                pod += 1
    return length
