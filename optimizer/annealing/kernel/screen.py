"""Screening of a move, or of an exchange of two pods, by their relations: certainly illegal, or a change of cost."""

from __future__ import annotations

from stowplan.optimizer.annealing.kernel.curves import curve_at
from stowplan.optimizer.annealing.kernel.layout import (
    AFFINITY,
    AT_MOST,
    ATTRACT,
    BOTH,
    C_MEMBER,
    C_MEMBER_END,
    DOMAIN_CURVE,
    H_NODES,
    MOVE_PEAK,
    OCCUPY,
    PAIR,
    R_COUNT,
    R_DOMAINS,
    R_HISTOGRAM,
    R_KIND,
    R_LIMIT,
    R_NEEDED,
    R_NEEDED_END,
    R_NEEDS,
    R_NEEDS_END,
    R_PIECE,
    R_PIECES,
    R_SLOW,
    R_STATE,
    R_TIER,
    R_TOPOLOGY,
    R_WEIGHT,
    REPEL,
    SEEKER,
    SPREAD,
    TARGET,
)
from stowplan.optimizer.annealing.kernel.node import is_newcomer
from stowplan.optimizer.annealing.kernel.state import Int64, SearchState
from stowplan.optimizer.compiled.jit import compiled, inlined

NO_ROLE = -1


@compiled
def forbidden(s: SearchState, c: int, e: int, source: int, target: int) -> bool:
    """Whether a relation certainly forbids that a pod of a class moves from one node to another.

    Parameters
    ----------
    e
        Class of a pod that moves the other way at the same time, or -1. Relations of both classes are not checked.
    """
    return _forbids(s, c, e, source, target) or (e >= 0 and _forbids(s, e, c, target, source))


@compiled
def _forbids(s: SearchState, c: int, e: int, source: int, target: int) -> bool:
    nodes = s.head[H_NODES]
    for at in range(s.cls[c, C_MEMBER], s.cls[c, C_MEMBER_END]):
        q = s.member[at, 0]
        kind = s.relation[q, R_KIND]
        if s.relation[q, R_SLOW] or (kind > OCCUPY and kind != AFFINITY):
            continue
        role = s.member[at, 1]
        old, new = s.domain[s.relation[q, R_TOPOLOGY], source], s.domain[s.relation[q, R_TOPOLOGY], target]
        if old == new:
            continue
        base, domains = s.relation[q, R_COUNT], s.relation[q, R_DOMAINS]
        if kind == AFFINITY:
            alone = old >= 0 and s.counter[base + old] == 1 and _is_needed(s, q, old)
            first = target < nodes and (new < 0 or s.counter[base + new] == 0) and not _has_affinity(s, q, new)
            if (alone or first) and _role(s, e, q) == NO_ROLE:
                return True
            continue
        if kind == ATTRACT:
            forbidden = _separates(s, q, role, old, new, target < nodes)
        elif kind == OCCUPY:
            forbidden = _empties_domain(s, q, old, new)
        else:
            forbidden = new >= 0 and _exceeds_domain_limit(s, q, kind, role, base + new, domains)
        if forbidden and _role(s, e, q) == NO_ROLE:
            return True
    return False


@inlined
def _role(s: SearchState, c: int, q: int) -> int:
    """Return the role of a class in a relation, or `NO_ROLE`; -1 for no class."""
    if c >= 0:
        for at in range(s.cls[c, C_MEMBER], s.cls[c, C_MEMBER_END]):
            if s.member[at, 0] == q:
                return int(s.member[at, 1])
    return NO_ROLE


@inlined
def _separates(s: SearchState, q: int, role: int, old: int, new: int, somewhere: bool) -> bool:
    """Whether a seeker is without its target after a pod has moved from one domain to another."""
    base, stride = s.relation[q, R_COUNT], s.relation[q, R_DOMAINS] + 1
    if old >= 0 and role != SEEKER:
        matching = s.counter[base + old] + s.counter[base + 2 * stride + old]
        if matching == 1 and s.counter[base + stride + old] > 0:
            return True
    if not somewhere or role == TARGET:
        return False
    matching = s.counter[base + new] + s.counter[base + 2 * stride + new] if new >= 0 else 0
    return bool(matching < 1 and (role == SEEKER or s.relation[q, R_STATE] - (1 if old >= 0 else 0) > 0))


@inlined
def _empties_domain(s: SearchState, q: int, old: int, new: int) -> bool:
    """Whether too few domains are in use after a pod has moved from one domain to another."""
    base, used = s.relation[q, R_COUNT], s.relation[q, R_STATE]
    if old < 0 or used > s.relation[q, R_LIMIT] or s.counter[base + old] > 1:
        return False
    return bool(new < 0 or s.counter[base + new] > 0)


@inlined
def _exceeds_domain_limit(s: SearchState, q: int, kind: int, role: int, at: int, domains: int) -> bool:
    """Whether one more pod in a domain, whose counter is ``counter[at]``, is one too many."""
    count = s.counter[at]
    if kind == AT_MOST:
        return bool(count >= s.relation[q, R_LIMIT])
    if kind == REPEL:
        b, t = s.counter[at + domains], s.counter[at + 2 * domains]
        if role == BOTH:
            return bool(count + b + t > 0)
        return bool(count + t > 0) if role == SEEKER else bool(count + b > 0)
    if role == TARGET or kind != SPREAD:
        return False
    least = s.relation[q, R_STATE]
    more = 1 if role == BOTH else 0
    return bool(count + more - least > s.relation[q, R_LIMIT] and count > least)


@compiled
def _is_needed(s: SearchState, q: int, d: int) -> bool:
    """Whether pods of other relations in a domain need a pod of this one there."""
    for i in range(s.relation[q, R_NEEDED], s.relation[q, R_NEEDED_END]):
        if s.counter[s.relation[s.counter[i], R_COUNT] + d] > 0:
            return True
    return False


@compiled
def _has_affinity(s: SearchState, q: int, d: int) -> bool:
    """Whether a domain, unless it is -1, has all the targets that pods of a relation need."""
    for i in range(s.relation[q, R_NEEDS], s.relation[q, R_NEEDS_END]):
        if d < 0 or s.counter[s.relation[s.counter[i], R_COUNT] + d] == 0:
            return False
    return True


@compiled
def relation_costs(s: SearchState, c: int, e: int, source: int, target: int, change: Int64) -> bool:
    """Add the change of cost of relations if a pod of a class moved, and one of another class back; -1 for no pod.

    Returns
    -------
    bool
        Whether that is all; ``False`` if the pods have different roles in the same relation.
    """
    complete = _relation_costs(s, c, e, source, target, True, change)
    if e >= 0:
        complete = _relation_costs(s, e, c, target, source, False, change) and complete
    return complete


@compiled
def _relation_costs(s: SearchState, c: int, e: int, source: int, target: int, shared: bool, change: Int64) -> bool:
    """Add the change of cost of the relations of one class; those of both classes only if ``shared``."""
    for at in range(s.cls[c, C_MEMBER], s.cls[c, C_MEMBER_END]):
        q, mine = s.member[at, 0], s.member[at, 1]
        kind = s.relation[q, R_KIND]
        if kind not in (DOMAIN_CURVE, PAIR, MOVE_PEAK):
            continue
        other = _role(s, e, q)
        if other != NO_ROLE and not shared:
            continue
        cost = 0
        if kind == MOVE_PEAK:
            cost = _higher_peak(s, q, mine, _leavers(s, c, source, target), other, _leavers(s, e, target, source))
        elif other == NO_ROLE:
            old, new = s.domain[s.relation[q, R_TOPOLOGY], source], s.domain[s.relation[q, R_TOPOLOGY], target]
            if old != new:
                cost = _added_cost(s, q, kind, mine, old, -1) + _added_cost(s, q, kind, mine, new, 1)
        elif other != mine:
            return False
        change[s.relation[q, R_TIER]] += s.relation[q, R_WEIGHT] * cost
    return True


@inlined
def _leavers(s: SearchState, c: int, source: int, target: int) -> int:
    """Return by how much the leavers of a class change if one of its pods moves; -1 for no class."""
    nodes = s.head[H_NODES]
    if c < 0:
        return 0
    more = 1 if source < nodes and not is_newcomer(s, c, source, 0) else 0
    return more - (1 if target < nodes and not is_newcomer(s, c, target, 1) else 0)


@inlined
def _higher_peak(s: SearchState, q: int, group: int, k: int, other: int, j: int) -> int:
    """Return the change of the peak of leavers if one group has ``k`` more and another, if any, ``j`` more."""
    base, histogram, most = s.relation[q, R_COUNT], s.relation[q, R_HISTOGRAM], s.relation[q, R_STATE]
    if other == group:
        k, other = k + j, NO_ROLE
    was = s.counter[base + group]
    at_top = s.counter[histogram + most] - (1 if was == most else 0)
    now = was + k
    if other != NO_ROLE:
        was = s.counter[base + other]
        at_top -= 1 if was == most else 0
        now = max(now, was + j)
    if at_top == 0:
        # Two pods of the only group at the peak return: the next groups may be one below or two.
        return int(max(now - most, -1 if k > -2 or s.counter[histogram + most - 1] > 0 else -2))
    return int(max(now - most, 0))


@inlined
def _added_cost(s: SearchState, q: int, kind: int, role: int, d: int, k: int) -> int:
    """Return the change of a `DomainCurve`, or of the pairs of a `Pair`, for one pod more or less in a domain."""
    if d < 0:
        return 0
    at, domains = s.relation[q, R_COUNT] + d, s.relation[q, R_DOMAINS]
    a = s.counter[at]
    if kind == DOMAIN_CURVE:
        first, pieces = s.relation[q, R_PIECE], s.relation[q, R_PIECES]
        return int(curve_at(s.piece, first, pieces, a + k) - curve_at(s.piece, first, pieces, a))
    b, t = s.counter[at + domains], s.counter[at + 2 * domains]
    # By how much (a + b)(a + t) - a grows.
    if role == BOTH:
        return int(k * (2 * a + b + t) + k * k - k)
    return int(k * (a + t)) if role == SEEKER else int(k * (a + b))
