"""A random walk over legal placements that tends downhill: simulated annealing on one tier, the others in order."""

from __future__ import annotations

from math import log

from stowplan.optimizer.annealing.kernel.chain import (
    Prices,
    Walker,
    enterable,
    home_node,
    mate,
    on_node,
    open_node,
    pick,
)
from stowplan.optimizer.annealing.kernel.layout import C_PRICED, H_NODES, H_SCORES, H_TIERS, OVERFILL, P_CLASS, P_NODE
from stowplan.optimizer.annealing.kernel.moves import glance, legal, shift
from stowplan.optimizer.annealing.kernel.operators import (
    evacuate,
    go,
    group,
    heavier,
    passable,
    price,
    push,
    somewhere,
    trade,
)
from stowplan.optimizer.annealing.kernel.screen import barred, price_relations
from stowplan.optimizer.annealing.kernel.state import Image, Int64
from stowplan.optimizer.compiled.jit import compiled, inlined, merged
from stowplan.optimizer.compiled.random import below, uniform

KINDS = 10
SHIFT, SWAP, CHAIN, INSERT, EVACUATE, GROUP, HOME, RETURN, MATE, TRADE = range(KINDS)


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
        p = pick(s, w)
        if s.pod[p, P_NODE] == nodes:
            kind = INSERT
        elif kind == INSERT and s.width[nodes]:
            p = s.on[s.on_at[nodes] + below(w.chance, s.width[nodes])]
        elif kind == INSERT:
            kind = SHIFT
        for t in range(tiers + 1):
            w.before[t] = s.value[t]
        w.before[tiers + 1] = s.value[tiers + OVERFILL]
        if kind == TRADE:
            p = heavier(s, w, p)
        other = -1
        if kind == MATE:
            other = mate(s, w, p)
            target = enterable(s, p, s.pod[other, P_NODE]) if other >= 0 else -1
        else:
            target = home_node(s, w, p) if kind in (HOME, RETURN) else open_node(s, w, p)
        if kind in (SWAP, RETURN) and target >= 0:
            other = on_node(s, w, target)
            if other < 0:
                continue
        if other >= 0 and s.pod[other, P_CLASS] == s.pod[p, P_CLASS]:
            continue
        if kind == INSERT:
            elsewhere = somewhere(s, w, p, focus, -1, prices)
            if elsewhere >= 0:
                target = elsewhere
            elif target >= 0 and s.width[target]:
                # Nowhere is room: take the place of another pod, or push others aside.
                kind = CHAIN
                if uniform(w.chance) < 0.5:
                    kind, other = SWAP, on_node(s, w, target)
        length = 0
        if kind == EVACUATE:
            length = evacuate(s, w, focus, prices)
        elif target < 0:
            continue
        elif kind == CHAIN:
            length = push(s, w, p, target, focus, prices)
        elif kind == GROUP:
            length = group(s, w, p, target)
        elif kind == TRADE:
            length = trade(s, w, p, target, focus, prices)
        elif _promises(s, w, p, other, target, focus, slack, drift, prices):
            source = s.pod[p, P_NODE]
            length = go(s, w, 0, p, target)
            if other >= 0:
                length = go(s, w, length, other, source)
        if length:
            _keep_or_undo(s, w, length, focus, slack, prices)


@inlined
def _welcome(s: Image, change: Int64, focus: int, slack: float, prices: Prices) -> bool:
    """Whether a change of the tiers is taken."""
    tiers = s.head[H_TIERS]
    for t in range(focus):
        if change[t] != 0:
            return bool(change[t] < 0 and change[tiers + 1] <= 0)
    return bool(price(s, change, focus, prices) <= slack)


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


@merged
def _keep_or_undo(s: Image, w: Walker, length: int, focus: int, slack: float, prices: Prices) -> None:
    """Keep the moves on the path if they are legal and welcome all together; undo them otherwise."""
    tiers = s.head[H_TIERS]
    if passable(s, prices):
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
