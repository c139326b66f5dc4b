"""A walk whose accepted steps are written down as moves of single pods, each of them legal when its turn comes."""

from __future__ import annotations

from stowplan.optimizer.compiled.jit import compiled, inlined
from stowplan.optimizer.compiled.random import below, uniform
from stowplan.optimizer.rearrangement.kernel.arrays import (
    ACCEPTED,
    COST,
    MOVED_PODS,
    SPENT,
    Int32,
    WalkModel,
    WalkState,
)
from stowplan.optimizer.rearrangement.kernel.change import fits, returns, shift
from stowplan.optimizer.rearrangement.kernel.rearrange import draw_target, rearrange, undo
from stowplan.optimizer.rearrangement.kernel.relations import keeps_relations
from stowplan.optimizer.rearrangement.kernel.walk import accepts, try_shift, try_two

POD, SOURCE, TARGET = range(3)
"""Columns of a record."""

ONE, TWO = 2, 4
"""Work of a shift and of a chain, in looks at one node."""


@inlined
def _write(record: Int32, at: int, p: int, a: int, b: int) -> int:
    record[at, POD], record[at, SOURCE], record[at, TARGET] = p, a, b
    return at + 1


@compiled
def _take_in_order(m: WalkModel, s: WalkState, length: int, record: Int32, at: int) -> int:
    """Take the steps of a rearrangement again, the pods that were pushed off first; return the end of the record.

    It is undone where a pod cannot go in its turn, as one that takes the place of the pod that comes.
    """
    nobody = m.need.shape[1] - 1
    for i in range(length):
        p = s.path[i, 0]
        record[at + i, POD], record[at + i, SOURCE], record[at + i, TARGET] = p, s.path[i, 1], s.node[p]
    undo(m, s, length)
    for i in range(1, length + 1):
        k = at + i % length
        p, a, b = record[k, POD], record[k, SOURCE], record[k, TARGET]
        c = m.cls[p]
        if not fits(m, s, b, c, returns(m, s, c, b), nobody, 0) or not keeps_relations(m, s, c, a, b):
            for j in range(i - 1, 0, -1):
                shift(m, s, record[at + j, POD], record[at + j, SOURCE])
            return at
        shift(m, s, p, b)
    # The pod that the others made room for is the last one.
    p, a, b = record[at, POD], record[at, SOURCE], record[at, TARGET]
    for i in range(1, length):
        for k in range(3):
            record[at + i - 1, k] = record[at + i, k]
    return _write(record, at + length - 1, p, a, b)


@compiled
def run_recorded(
    m: WalkModel, s: WalkState, record: Int32, at: int, work: int, temperature: float, share: float, homing: float
) -> int:
    """Take steps at one temperature until they have taken an amount of work, or the record is nearly full.

    Parameters
    ----------
    record
        ``[i, 3]`` moves so far: pod, source, and target.
    at
        How many there are.
    work
        Looks at single nodes, roughly proportional to time.
    share
        Share of the work for rearrangements.
    homing
        Share of the other steps in which a pod goes home.

    Returns
    -------
    int
        How many moves there are now.
    """
    pods = len(s.pods)
    end = s.value[SPENT] + work
    spent, rearranging = 0, 0
    while s.value[SPENT] < end and at + len(s.path) < len(record):
        accepted = s.value[ACCEPTED]
        if rearranging < share * spent:
            before = s.value[COST]
            length, cost = rearrange(m, s, temperature)
            rearranging += cost
            spent += cost
            s.value[SPENT] += cost
            if length and accepts(s, s.value[COST] - before, temperature):
                at = _take_in_order(m, s, length, record, at)
            elif length:
                undo(m, s, length)
            continue
        looks = ONE
        away = s.value[MOVED_PODS]
        draw = uniform(s.random)
        if draw < homing and away:
            p = s.away[below(s.random, away)]
            a, b = s.node[p], m.home[p] if m.open[m.cls[p], m.home[p]] else -1
            try_shift(m, s, p, b, temperature)
            if s.value[ACCEPTED] != accepted:
                at = _write(record, at, p, a, b)
        elif draw < 0.5 * (1.0 + homing):
            p = s.pods[below(s.random, pods)]
            a, b = s.node[p], draw_target(m, s, m.cls[p])
            try_shift(m, s, p, b, temperature)
            if s.value[ACCEPTED] != accepted:
                at = _write(record, at, p, a, b)
        else:
            looks = TWO
            p = s.pods[below(s.random, pods)]
            a, b = s.node[p], draw_target(m, s, m.cls[p])
            if b >= 0 and s.width[b]:
                q = s.on[b, below(s.random, s.width[b])]
                t = draw_target(m, s, m.cls[q])
                if t >= 0 and t != a and q != p:
                    try_two(m, s, p, b, q, t, temperature)
                    if s.value[ACCEPTED] != accepted:
                        at = _write(record, at, q, b, t)
                        at = _write(record, at, p, a, b)
        spent += looks
        s.value[SPENT] += looks
    return at


@compiled
def put(m: WalkModel, s: WalkState, node: Int32) -> int:
    """Bring all pods to the given nodes, whether what lies between is legal or not; return how many found no place.

    That is where lists of pods are full.
    """
    missing = len(node)
    while True:
        before, missing = missing, 0
        for p in range(len(node)):
            if s.node[p] != node[p]:
                if s.width[node[p]] < s.on.shape[1]:
                    shift(m, s, p, node[p])
                else:
                    missing += 1
        if missing in (0, before):
            return missing
