"""Steps of the walk and their Metropolis acceptance."""

from __future__ import annotations

from math import log

from stowplan.optimizer.compiled.jit import compiled, inlined, merged
from stowplan.optimizer.compiled.random import below, uniform
from stowplan.optimizer.rearrangement.kernel.arrays import (
    ACCEPTED,
    BEST,
    COST,
    DIRTY,
    MOVED_PODS,
    REARRANGEMENTS,
    SPENT,
    SPENT_REARRANGING,
    STEPS,
    Float64,
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
from stowplan.optimizer.rearrangement.kernel.rearrange import draw_target, rearrange, send_home, undo
from stowplan.optimizer.rearrangement.kernel.relations import keeps_relations

STEP_KINDS = 6
SHIFT, RETURN, SWAP, HOME, CHAIN, SWAP_MOVED = range(STEP_KINDS)

# Work of steps, in looks at one node: unlike those of a rearrangement, they are in random places of memory.
ONE, TWO = 2, 4


@inlined
def _record(m: WalkModel, s: WalkState) -> None:
    """Note the placement if it is the best of the walk."""
    if s.value[COST] >= s.value[BEST]:
        return
    s.value[BEST] = s.value[COST]
    for i in range(s.value[DIRTY]):
        p = s.dirty[i]
        s.best[p] = s.node[p]
        s.dirty_at[p] = False
    s.value[DIRTY] = 0


@inlined
def accepts(s: WalkState, change: int, temperature: float) -> bool:
    """Metropolis acceptance."""
    return change <= 0 or (temperature > 0 and change <= -temperature * log(uniform(s.random)))


@compiled
def _settle(m: WalkModel, s: WalkState, length: int, before: int, temperature: float) -> None:
    """Send pods home for those on the path; accept all that together, or undo it."""
    back = send_home(m, s, length)
    if back > 0 and accepts(s, s.value[COST] - before, temperature):
        s.value[ACCEPTED] += 1
        _record(m, s)
    else:
        undo(m, s, abs(back))


@merged
def try_shift(m: WalkModel, s: WalkState, p: int, b: int, temperature: float) -> None:
    """Move a pod if that is legal and accepted."""
    a, c = s.node[p], m.cls[p]
    nobody = m.need.shape[1] - 1
    if b < 0 or b == a or s.width[b] == s.on.shape[1] or not fits(m, s, b, c, returns(m, s, c, b), nobody, 0):
        return
    if exceeds_limit(m, s, is_native(m, s, c, a) - returns(m, s, c, b)):
        if keeps_relations(m, s, c, a, b):
            before = s.value[COST]
            s.path[0, 0], s.path[0, 1] = p, a
            shift(m, s, p, b)
            _settle(m, s, 1, before, temperature)
        return
    change = node_change(m, s, b, c, nobody) + own_change(m, s, c, a, b)
    change += node_change(m, s, a, nobody, c)
    if accepts(s, change, temperature) and keeps_relations(m, s, c, a, b):
        shift(m, s, p, b)
        s.value[ACCEPTED] += 1
        _record(m, s)


@merged
def try_two(m: WalkModel, s: WalkState, p: int, b: int, q: int, t: int, temperature: float) -> None:
    """Move a pod to a node, and a pod from there to a third node or to the first one's, if legal and accepted."""
    a, c, e = s.node[p], m.cls[p], m.cls[q]
    nobody = m.need.shape[1] - 1
    if a == b or b == t or c == e or not m.open[c, b] or not m.open[e, t]:
        return
    if s.width[b] == s.on.shape[1] or s.width[t] == s.on.shape[1]:
        return
    if not fits(m, s, b, c, returns(m, s, c, b), e, is_native(m, s, e, b)):
        return
    change = node_change(m, s, b, c, e) + own_change(m, s, c, a, b) + own_change(m, s, e, b, t)
    if t == a:
        if not fits(m, s, a, e, returns(m, s, e, a), c, is_native(m, s, c, a)):
            return
        change += node_change(m, s, a, e, c)
    else:
        if not fits(m, s, t, e, returns(m, s, e, t), nobody, 0):
            return
        change += node_change(m, s, a, nobody, c) + node_change(m, s, t, e, nobody)
    leavers = is_native(m, s, c, a) - returns(m, s, c, b) + is_native(m, s, e, b) - returns(m, s, e, t)
    beyond = exceeds_limit(m, s, leavers)
    # In this order each pod's relations are judged as the other left them.
    if not (beyond or accepts(s, change, temperature)) or not keeps_relations(m, s, e, b, t):
        return
    before = s.value[COST]
    shift(m, s, q, t)
    if keeps_relations(m, s, c, a, b):
        shift(m, s, p, b)
        if beyond:
            s.path[0, 0], s.path[0, 1] = q, b
            s.path[1, 0], s.path[1, 1] = p, a
            _settle(m, s, 2, before, temperature)
        else:
            s.value[ACCEPTED] += 1
            _record(m, s)
    else:
        shift(m, s, q, b)


@compiled
def run_walk(m: WalkModel, s: WalkState, work: int, temperature: float, share: float, kinds: Float64) -> None:
    """Take steps at one temperature until they have taken an amount of work.

    Parameters
    ----------
    work
        Looks at single nodes, roughly proportional to time.
    share
        Share of the work for rearrangements.
    kinds
        ``[STEP_KINDS]`` cumulative probabilities of the other steps.
    """
    pods = len(s.pods)
    end = s.value[SPENT] + work
    spent, rearranging = 0, 0
    while s.value[SPENT] < end:
        s.value[STEPS] += 1
        if rearranging < share * spent:
            before = s.value[COST]
            length, cost = rearrange(m, s, temperature)
            rearranging += cost
            spent += cost
            s.value[SPENT] += cost
            s.value[SPENT_REARRANGING] += cost
            s.value[REARRANGEMENTS] += 1
            if length and not accepts(s, s.value[COST] - before, temperature):
                undo(m, s, length)
            elif length:
                s.value[ACCEPTED] += 1
                _record(m, s)
            continue
        draw = uniform(s.random)
        kind = 0
        while kind < STEP_KINDS - 1 and draw > kinds[kind]:
            kind += 1
        away = s.value[MOVED_PODS]
        if away == 0 and kind in (RETURN, HOME, SWAP_MOVED):
            kind = SHIFT
        looks = ONE
        p = s.pods[below(s.random, pods)] if kind in (SHIFT, CHAIN, SWAP) else s.away[below(s.random, away)]
        if kind == SHIFT:
            try_shift(m, s, p, draw_target(m, s, m.cls[p]), temperature)
        elif kind == HOME:
            try_shift(m, s, p, m.home[p], temperature)  # pods away are those whose home is among the own nodes
        else:
            looks = TWO
            q, b, t = -1, -1, s.node[p]
            if kind == RETURN:
                b = m.home[p]
                if s.width[b]:
                    q = s.on[b, below(s.random, s.width[b])]
            elif kind == CHAIN:
                b = draw_target(m, s, m.cls[p])
                if b >= 0 and s.width[b]:
                    q = s.on[b, below(s.random, s.width[b])]
                    t = draw_target(m, s, m.cls[q])
            else:
                q = s.pods[below(s.random, pods)] if kind == SWAP else s.away[below(s.random, away)]
                b = s.node[q]
            if q >= 0 and t >= 0 and q != p:
                try_two(m, s, p, b, q, t, temperature)
        spent += looks
        s.value[SPENT] += looks
