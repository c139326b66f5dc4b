"""Rearrangement: a pod goes where it does not fit, and pods that cost least to move make room for it."""

from __future__ import annotations

from stowplan.optimizer.compiled.jit import compiled, inlined
from stowplan.optimizer.compiled.random import below, uniform
from stowplan.optimizer.rearrangement.kernel.arrays import (
    AT_BEST,
    BESIDES,
    FACTOR,
    MOVED_PODS,
    WHOLE_NODE,
    WalkModel,
    WalkState,
)
from stowplan.optimizer.rearrangement.kernel.change import (
    exceeds_limit,
    fits,
    is_native,
    node_change,
    own_change,
    returns,
    shift,
)
from stowplan.optimizer.rearrangement.kernel.relations import keeps_relations

MOST_PUSHED = 6
"""Pods that one rearrangement pushes off at most; it is undone if they are not enough."""

SOME = 6
"""Pods that are looked at where a node holds more than `WHOLE_NODE`."""

MOST_TARGETS = 15
"""Nodes that are tried for a pod where a node holds more than `WHOLE_NODE` pods."""

MOST_DRAWN = 64
"""Draws in which a node is found that is the thread's own, or else none is."""

REFUSED = 1 << 62
"""Above all prices."""

RETURNS_TRIED = 8
"""Pods that are looked at for the one that goes home at least cost where the limit on moves is violated."""

FEE = 3.0
"""What a pod counts that is pushed off, in multiples of the temperature."""


@inlined
def draw_target(m: WalkModel, s: WalkState, c: int) -> int:
    """Draw one of the thread's nodes where pods of a class can be; -1 if none is found."""
    first, end = m.target_at[c], m.target_at[c + 1]
    for _ in range(MOST_DRAWN if end > first else 0):
        t = m.target[first + below(s.random, end - first)]
        if s.own[t]:
            return int(t)
    return -1


@inlined
def expensive_pod(m: WalkModel, s: WalkState) -> int:
    """Draw the larger of two pods on the more expensive of two nodes."""
    nodes = len(s.nodes)
    n, other = s.nodes[below(s.random, nodes)], s.nodes[below(s.random, nodes)]
    if s.charge[other] > s.charge[n]:
        n = other
    if s.width[n] == 0:
        return -1
    p, q = s.on[n, below(s.random, s.width[n])], s.on[n, below(s.random, s.width[n])]
    return int(q if m.weight[m.cls[q]] > m.weight[m.cls[p]] else p)


@inlined
def _relief(m: WalkModel, s: WalkState, b: int, c: int) -> float:
    """Return by how much a node exceeds its room less without a pod of a class, in shares of a mean node."""
    native = is_native(m, s, c, b)
    relief = 0.0
    for r in range(s.room.shape[1]):
        short = -s.room[b, r]
        if short > 0:
            relief += min(short, m.need[native, c, r]) * m.share[r]
    return relief


@inlined
def _exceeds(m: WalkModel, s: WalkState, b: int) -> bool:
    sign = 0
    for r in range(s.room.shape[1]):
        sign |= s.room[b, r]
    return sign < 0


@inlined
def _cheaper(m: WalkModel, s: WalkState, c: int, b: int, t: int, than: float) -> int:
    """Return what it costs that a pod of a class goes to another node, or `REFUSED` if it may not or costs too much.

    Relations take longest to look at, so they come last.
    """
    nobody = m.need.shape[1] - 1
    if t == b or s.width[t] == s.on.shape[1] or not fits(m, s, t, c, returns(m, s, c, t), nobody, 0):
        return REFUSED
    price = node_change(m, s, t, c, nobody) + own_change(m, s, c, b, t)
    return int(price) if price < than and keeps_relations(m, s, c, b, t) else REFUSED


@inlined
def _list_candidates(m: WalkModel, s: WalkState, p: int, b: int, temperature: float, every: bool) -> int:
    """List the pods that make room on a node by leaving it, with what rank they have at best; return how many."""
    nobody = m.need.shape[1] - 1
    width = s.width[b]
    listed = 0
    for i in range(width if every else SOME):
        q = s.on[b, i if every else below(s.random, width)]
        c = m.cls[q]
        relief = _relief(m, s, b, c) if q != p else 0.0
        if relief <= 0.0 or m.target_at[c] == m.target_at[c + 1]:
            continue
        factor = (0.7 + 0.6 * uniform(s.random)) / relief
        besides = node_change(m, s, b, nobody, c) + FEE * temperature
        s.candidate[listed] = q
        s.rank[listed, FACTOR] = factor
        s.rank[listed, BESIDES] = besides
        s.rank[listed, AT_BEST] = factor * (besides + m.least_price[c])
        listed += 1
    return listed


@inlined
def _first(s: WalkState, listed: int) -> int:
    """Return the index of the candidate with the lowest possible rank."""
    first = 0
    for i in range(1, listed):
        if s.rank[i, AT_BEST] < s.rank[first, AT_BEST]:
            first = i
    return first


@compiled
def _push_off(m: WalkModel, s: WalkState, p: int, b: int, temperature: float) -> tuple[int, int, int]:
    """Return the pod that makes room at least cost, where it goes, and the work it took; -1 if there is none.

    A pod's rank is a factor times the price of its target and what it takes besides. Pods whose rank may be lowest come
    first, so that for most of the others no target needs to be looked at.
    """
    every = s.width[b] <= WHOLE_NODE
    work = s.width[b] if every else SOME
    listed = _list_candidates(m, s, p, b, temperature, every)
    best, where, least = -1, -1, float(REFUSED)
    own_share = len(s.nodes) / len(s.own)
    while listed:
        i = _first(s, listed)
        if s.rank[i, AT_BEST] >= least:
            break
        q, factor, besides = s.candidate[i], s.rank[i, FACTOR], s.rank[i, BESIDES]
        listed -= 1
        s.candidate[i] = s.candidate[listed]
        for k in range(s.rank.shape[1]):
            s.rank[i, k] = s.rank[listed, k]
        c = m.cls[q]
        first, number = m.target_at[c], m.target_at[c + 1] - m.target_at[c]
        tried = int(own_share * number * (0.3 + 0.1 * uniform(s.random))) + 1
        if not every:
            tried = min(tried, MOST_TARGETS)
        # Only a lower rank than the least so far is of use.
        below_this = least / factor - besides if best >= 0 else float(REFUSED)
        cheapest, to = REFUSED, -1
        home = m.home[q]
        if home >= 0 and s.own[home] and m.open[c, home]:
            price = _cheaper(m, s, c, b, home, below_this)
            if price != REFUSED:
                cheapest, to, below_this = price, home, float(price)
        at = below(s.random, number)
        looked = 0
        for _ in range(number):
            t = m.target[first + at]
            at += 1
            if at == number:
                at = 0
            if not s.own[t]:
                continue
            looked += 1
            if looked > tried:
                break
            price = _cheaper(m, s, c, b, t, below_this)
            if price != REFUSED:
                cheapest, to, below_this = price, t, float(price)
        work += min(looked, tried)
        if to >= 0:
            best, where, least = q, to, factor * (besides + cheapest)
    return best, where, work


@compiled
def rearrange(m: WalkModel, s: WalkState, temperature: float) -> tuple[int, int]:
    """Put a pod on a node that it overloads, and push pods off until it does not.

    Returns
    -------
    tuple
        The number of pods on the path, which lead to a legal placement, or 0 if nothing has changed; and the work.
    """
    p = s.pods[below(s.random, len(s.pods))] if uniform(s.random) < 0.5 else expensive_pod(m, s)
    if p < 0:
        return 0, 1
    c = m.cls[p]
    a, b = s.node[p], draw_target(m, s, c)
    if b < 0 or b == a or s.width[b] == s.on.shape[1] or not keeps_relations(m, s, c, a, b):
        return 0, 1
    s.path[0, 0], s.path[0, 1] = p, a
    shift(m, s, p, b)
    length, work = 1, 3
    while _exceeds(m, s, b):
        q, t = -1, -1
        if length <= MOST_PUSHED:
            q, t, spent = _push_off(m, s, p, b, temperature)
            work += spent
        if q < 0:
            undo(m, s, length)
            return 0, work
        s.path[length, 0], s.path[length, 1] = q, b
        shift(m, s, q, t)
        length += 1
        work += 2
    if exceeds_limit(m, s, 0):
        back = send_home(m, s, length)
        work += RETURNS_TRIED
        if back < 0:
            undo(m, s, -back)
            return 0, work
        length = back
    return length, work


@compiled
def send_home(m: WalkModel, s: WalkState, length: int) -> int:
    """Send pods home that are not on the path, cheapest first, until the limit on moves is kept.

    Returns
    -------
    int
        The length of the path with them; negative if the limit is still violated.
    """
    nobody = m.need.shape[1] - 1
    while exceeds_limit(m, s, 0):
        best, least = -1, 0
        for _ in range(RETURNS_TRIED if length < len(s.path) and s.value[MOVED_PODS] else 0):
            q = s.away[below(s.random, s.value[MOVED_PODS])]
            c, a, home = m.cls[q], s.node[q], m.home[q]
            if is_native(m, s, c, a) or not returns(m, s, c, home) or s.width[home] == s.on.shape[1]:
                continue
            if not fits(m, s, home, c, 1, nobody, 0) or _on_path(s, q, length):
                continue
            cost = node_change(m, s, home, c, nobody) + own_change(m, s, c, a, home) + node_change(m, s, a, nobody, c)
            if (best < 0 or cost < least) and keeps_relations(m, s, c, a, home):
                best, least = q, int(cost)
        if best < 0:
            return -length
        s.path[length, 0], s.path[length, 1] = best, s.node[best]
        shift(m, s, best, m.home[best])
        length += 1
    return length


@inlined
def _on_path(s: WalkState, q: int, length: int) -> bool:
    found = False
    for i in range(length):
        found |= s.path[i, 0] == q
    return found


@inlined
def undo(m: WalkModel, s: WalkState, length: int) -> None:
    """Take the shifts of the path back, the last one first."""
    for i in range(length - 1, -1, -1):
        shift(m, s, s.path[i, 0], s.path[i, 1])
