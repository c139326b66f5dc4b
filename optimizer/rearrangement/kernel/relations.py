"""Relations between pods: whether a shift keeps them, and the counters by domain that tell."""

from __future__ import annotations

from stowplan.optimizer.compiled.jit import compiled, inlined
from stowplan.optimizer.rearrangement.kernel.arrays import (
    AT_MOST,
    ATTRACT,
    FIRST,
    FLOOR,
    HISTOGRAM,
    KIND,
    LEAST,
    LIMIT,
    MOST,
    OCCUPY,
    REPEL,
    SECOND,
    SEEKER,
    SPREAD,
    TARGET,
    TOPOLOGY,
    USED,
    WalkModel,
    WalkState,
)


@inlined
def keeps_relations(m: WalkModel, s: WalkState, c: int, a: int, b: int) -> bool:
    """Whether a placement that keeps all relations still does when a pod of a class goes from one node to another."""
    for i in range(m.member_at[c], m.member_at[c + 1]):
        g, role = m.member[i, 0], m.member[i, 1]
        topology = m.relation[g, TOPOLOGY]
        old, new = m.domain[topology, a], m.domain[topology, b]
        # Where a relation does not hold today, even a pod that stays in the domain would be a newcomer on its node.
        moves = 1 if old != new else 0
        if moves and not s.owned[g]:
            return False
        kind, first, second = m.relation[g, KIND], m.relation[g, FIRST], m.relation[g, SECOND]
        if kind == AT_MOST:
            if new >= 0 and s.counter[first + new] + moves > m.relation[g, LIMIT]:
                return False
        elif kind == OCCUPY:
            leaves = moves and old >= 0 and s.counter[first + old] == 1
            enters = new >= 0 and s.counter[first + new] == 0
            if leaves and not enters and s.extent[g, USED] - 1 < m.relation[g, LIMIT]:
                return False
        elif kind == ATTRACT:
            if role & SEEKER and (new < 0 or s.counter[second + new] == 0):
                return False
            last = moves and role & TARGET and old >= 0 and s.counter[second + old] == 1
            if last and s.counter[first + old] > 0:
                return False
        elif kind == REPEL:
            # A pod with both roles is counted in the domain where it is, and does not repel itself.
            itself = 1 - moves if role == SEEKER | TARGET else 0
            if role & SEEKER and new >= 0 and s.counter[second + new] > itself:
                return False
            if role & TARGET and new >= 0 and s.counter[first + new] > itself:
                return False
        elif not _keeps_skew(m, s, g, old, new):
            return False
    return True


@inlined
def _keeps_skew(m: WalkModel, s: WalkState, g: int, old: int, new: int) -> bool:
    """Whether the most and the least pods of a domain stay within the maximum skew."""
    first, histogram = m.relation[g, FIRST], m.relation[g, HISTOGRAM]
    least, most = s.extent[g, LEAST], s.extent[g, MOST]
    if old == new:
        return bool(most <= m.relation[g, LIMIT] + (0 if m.relation[g, FLOOR] else least))
    before = s.counter[first + old] if old >= 0 else -1
    after = s.counter[first + new] + 1 if new >= 0 else -1
    low = least
    if old >= 0 and before == least:
        low = least - 1
    elif (
        new >= 0 and after - 1 == least and s.counter[histogram + least] == 1 and not (old >= 0 and before - 1 == least)
    ):
        low = least + 1
    high = most
    if old >= 0 and before == most and s.counter[histogram + most] == 1:
        high = most - 1
    high = max(high, after)
    if m.relation[g, FLOOR]:
        low = 0
    return bool(high <= m.relation[g, LIMIT] + low)


@inlined
def _recount(m: WalkModel, s: WalkState, g: int, d: int, by: int) -> None:
    """Count a pod in a domain of a spread relation, and keep the least and the most of all domains up to date."""
    first, histogram = m.relation[g, FIRST], m.relation[g, HISTOGRAM]
    number = s.counter[first + d]
    s.counter[first + d] = number + by
    s.counter[histogram + number] -= 1
    s.counter[histogram + number + by] += 1
    if by > 0:
        if number + 1 > s.extent[g, MOST]:
            s.extent[g, MOST] = number + 1
        if number == s.extent[g, LEAST] and s.counter[histogram + number] == 0:
            s.extent[g, LEAST] = number + 1
    else:
        if number - 1 < s.extent[g, LEAST]:
            s.extent[g, LEAST] = number - 1
        if number == s.extent[g, MOST] and s.counter[histogram + number] == 0:
            s.extent[g, MOST] = number - 1


@inlined
def _count(m: WalkModel, s: WalkState, g: int, role: int, d: int, by: int) -> None:
    """Count a pod more or less in a domain of a relation."""
    kind, first, second = m.relation[g, KIND], m.relation[g, FIRST], m.relation[g, SECOND]
    if kind == SPREAD:
        _recount(m, s, g, d, by)
    elif kind in (ATTRACT, REPEL):
        if role & SEEKER:
            s.counter[first + d] += by
        if role & TARGET:
            s.counter[second + d] += by
    else:
        number = s.counter[first + d]
        s.counter[first + d] = number + by
        if number + by == 0:
            s.extent[g, USED] -= 1
        elif number == 0:
            s.extent[g, USED] += 1


@compiled
def count_relations(m: WalkModel, s: WalkState, c: int, a: int, b: int) -> None:
    """Count a pod of a class in the domains of another node."""
    for i in range(m.member_at[c], m.member_at[c + 1]):
        g, role = m.member[i, 0], m.member[i, 1]
        topology = m.relation[g, TOPOLOGY]
        old, new = m.domain[topology, a], m.domain[topology, b]
        if old == new:
            continue
        if old >= 0:
            _count(m, s, g, role, old, -1)
        if new >= 0:
            _count(m, s, g, role, new, 1)


@inlined
def count_arrival(m: WalkModel, s: WalkState, c: int, b: int) -> None:
    """Count a pod of a class, which had no node, in the domains of one."""
    for i in range(m.member_at[c], m.member_at[c + 1]):
        d = m.domain[m.relation[m.member[i, 0], TOPOLOGY], b]
        if d >= 0:
            _count(m, s, m.member[i, 0], m.member[i, 1], d, 1)
