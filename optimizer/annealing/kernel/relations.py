"""The change of relations when a pod moves: counts by domain, their violations and their costs."""

from __future__ import annotations

from stowplan.models.problem import PENALTY_WEIGHT
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
    H_TIERS,
    ILLEGAL,
    MOVE_PEAK,
    OCCUPY,
    PAIR,
    R_COUNT,
    R_DOMAINS,
    R_FLOOR,
    R_HISTOGRAM,
    R_ILLEGAL,
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
    R_VIOLATION,
    R_WEIGHT,
    REPEL,
    SEEKER,
    SPREAD,
    TARGET,
)
from stowplan.optimizer.annealing.kernel.recount import assess, clash, shift_slow
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.compiled.jit import compiled, inlined


@compiled
def count_relations(s: SearchState, c: int, source: int, target: int, left: bool, came: bool) -> None:
    """Count a pod of a class that moved from one node to another; either may be none.

    Parameters
    ----------
    left, came
        Whether it is a newcomer on the source, and on the target.
    """
    for at in range(s.cls[c, C_MEMBER], s.cls[c, C_MEMBER_END]):
        q, role = s.member[at, 0], s.member[at, 1]
        kind = s.relation[q, R_KIND]
        if kind == MOVE_PEAK:
            nodes = s.head[H_NODES]
            change = (1 if source < nodes and not left else 0) - (1 if target < nodes and not came else 0)
            if change:
                _leavers(s, q, role, change)
            continue
        topology = s.relation[q, R_TOPOLOGY]
        if s.relation[q, R_SLOW]:
            shift_slow(s, q, role, source, -1, left)
            shift_slow(s, q, role, target, 1, came)
            assess(s, q)
            continue
        old, new = s.domain[topology, source], s.domain[topology, target]
        if kind in (AFFINITY, ATTRACT):
            outside = s.relation[q, R_DOMAINS]
            old = -1 if source == s.head[H_NODES] else (outside if old < 0 else old)
            new = -1 if target == s.head[H_NODES] else (outside if new < 0 else new)
        if old == new:
            continue
        if kind == AT_MOST:
            _at_most(s, q, old, -1)
            _at_most(s, q, new, 1)
        elif kind == REPEL:
            _repel(s, q, role, old, -1)
            _repel(s, q, role, new, 1)
        elif kind == AFFINITY:
            _affinity(s, q, old, -1)
            _affinity(s, q, new, 1)
        elif kind == ATTRACT:
            _attract(s, q, role, old, -1)
            _attract(s, q, role, new, 1)
        elif kind == SPREAD:
            _spread(s, q, role, old, -1)
            _spread(s, q, role, new, 1)
        elif kind == OCCUPY:
            _occupy(s, q, old, -1)
            _occupy(s, q, new, 1)
        elif kind == DOMAIN_CURVE:
            _domain_curve(s, q, old, -1)
            _domain_curve(s, q, new, 1)
        elif kind == PAIR:
            _pair(s, q, role, old, -1)
            _pair(s, q, role, new, 1)


@compiled
def book_violation(s: SearchState, q: int, change: int) -> None:
    """Add a change of the violation of a relation that held at the start."""
    if change:
        s.relation[q, R_VIOLATION] += change
        tiers = s.head[H_TIERS]
        s.value[tiers + ILLEGAL] += change
        s.relation[q, R_ILLEGAL] += change
        for t in range(tiers):
            s.value[t] += change * PENALTY_WEIGHT * s.violation_weight[t]


@compiled
def _at_most(s: SearchState, q: int, d: int, k: int) -> None:
    if d < 0:
        return
    at = s.relation[q, R_COUNT] + d
    was = s.counter[at]
    s.counter[at] = was + k
    limit = s.relation[q, R_LIMIT]
    book_violation(s, q, max(0, was + k - limit) - max(0, was - limit))


@compiled
def _repel(s: SearchState, q: int, role: int, d: int, k: int) -> None:
    if d < 0:
        return
    domains = s.relation[q, R_DOMAINS]
    at = s.relation[q, R_COUNT] + d
    was = clash(s.counter[at], s.counter[at + domains], s.counter[at + 2 * domains])
    s.counter[at + role * domains] += k
    book_violation(s, q, clash(s.counter[at], s.counter[at + domains], s.counter[at + 2 * domains]) - was)


@inlined
def lonely(a: int, b: int, matching: int, first: bool) -> int:
    """Return the seekers of one domain without a target; ``first`` if a pod may be the first of its kind."""
    return (a if matching < 2 and not first else 0) + (b if matching < 1 else 0)


@compiled
def _attract(s: SearchState, q: int, role: int, d: int, k: int) -> None:
    """Domain number ``R_DOMAINS`` stands for the nodes outside the topology, where no target counts."""
    if d < 0:
        return
    domains = s.relation[q, R_DOMAINS]
    stride = domains + 1
    at = s.relation[q, R_COUNT] + d
    targets = s.relation[q, R_STATE]
    inside = d < domains
    now = targets + (k if inside and role != SEEKER else 0)
    a, b, t = s.counter[at], s.counter[at + stride], s.counter[at + 2 * stride]
    s.counter[at + role * stride] += k
    if (targets <= 1) != (now <= 1):
        s.relation[q, R_STATE] = now
        total = 0
        base = s.relation[q, R_COUNT]
        for e in range(stride):
            a, b = s.counter[base + e], s.counter[base + stride + e]
            matching = a + s.counter[base + 2 * stride + e] if e < domains else 0
            total += lonely(a, b, matching, now <= 1)
        book_violation(s, q, total - s.relation[q, R_VIOLATION])
        return
    s.relation[q, R_STATE] = now
    was = lonely(a, b, a + t if inside else 0, targets <= 1)
    a, b, t = s.counter[at], s.counter[at + stride], s.counter[at + 2 * stride]
    book_violation(s, q, lonely(a, b, a + t if inside else 0, now <= 1) - was)


@compiled
def _affinity(s: SearchState, q: int, d: int, k: int) -> None:
    """Count one more or less; a dependency can only begin or end to fail where the first arrives or the last leaves.

    Every dependency that fails in a domain counts 1, however many pods are concerned.
    """
    if d < 0:
        return
    at = s.relation[q, R_COUNT] + d
    count = s.counter[at] + k
    s.counter[at] = count
    if count != (k + 1) // 2:
        return
    inside = d < s.relation[q, R_DOMAINS]
    change = 0
    for i in range(s.relation[q, R_NEEDS], s.relation[q, R_NEEDS_END]):
        if not inside or s.counter[s.relation[s.counter[i], R_COUNT] + d] == 0:
            change += k
    if inside:
        for i in range(s.relation[q, R_NEEDED], s.relation[q, R_NEEDED_END]):
            if s.counter[s.relation[s.counter[i], R_COUNT] + d] > 0:
                change -= k
    book_violation(s, q, change)


@compiled
def _spread(s: SearchState, q: int, role: int, d: int, k: int) -> None:
    if d < 0:
        return
    domains = s.relation[q, R_DOMAINS]
    at = s.relation[q, R_COUNT] + d
    count, seekers = s.counter[at], s.counter[at + domains]
    least, skew = s.relation[q, R_STATE], s.relation[q, R_LIMIT]
    now, seeking = count, seekers
    if role != SEEKER:
        now += k
    if role != TARGET:
        seeking += k
    s.counter[at], s.counter[at + domains] = now, seeking
    if now != count and not s.relation[q, R_FLOOR]:
        histogram = s.relation[q, R_HISTOGRAM]
        s.counter[histogram + count] -= 1
        s.counter[histogram + now] += 1
        fewest = least
        if now < least:
            fewest = now
        elif s.counter[histogram + least] == 0:
            fewest = least + 1
        if fewest != least:
            s.relation[q, R_STATE] = fewest
            total = 0
            base = s.relation[q, R_COUNT]
            for e in range(domains):
                if s.counter[base + domains + e] > 0:
                    total += max(0, s.counter[base + e] - fewest - skew)
            book_violation(s, q, total - s.relation[q, R_VIOLATION])
            return
    was = max(0, count - least - skew) if seekers > 0 else 0
    book_violation(s, q, (max(0, now - least - skew) if seeking > 0 else 0) - was)


@compiled
def _occupy(s: SearchState, q: int, d: int, k: int) -> None:
    if d < 0:
        return
    at = s.relation[q, R_COUNT] + d
    was = s.counter[at]
    s.counter[at] = was + k
    used = s.relation[q, R_STATE]
    now = used + (1 if was == 0 else 0) - (1 if was + k == 0 else 0)
    if now != used:
        s.relation[q, R_STATE] = now
        least = s.relation[q, R_LIMIT]
        book_violation(s, q, max(0, least - now) - max(0, least - used))


@compiled
def _domain_curve(s: SearchState, q: int, d: int, k: int) -> None:
    if d < 0:
        return
    at = s.relation[q, R_COUNT] + d
    was = s.counter[at]
    s.counter[at] = was + k
    first, pieces = s.relation[q, R_PIECE], s.relation[q, R_PIECES]
    change = curve_at(s.piece, first, pieces, was + k) - curve_at(s.piece, first, pieces, was)
    s.value[s.relation[q, R_TIER]] += s.relation[q, R_WEIGHT] * change


@compiled
def _pair(s: SearchState, q: int, role: int, d: int, k: int) -> None:
    if d < 0:
        return
    domains = s.relation[q, R_DOMAINS]
    at = s.relation[q, R_COUNT] + d
    a, b, t = s.counter[at], s.counter[at + domains], s.counter[at + 2 * domains]
    was = (a + b) * (a + t) - a
    s.counter[at + role * domains] += k
    if role == BOTH:
        a += k
    elif role == SEEKER:
        b += k
    else:
        t += k
    s.value[s.relation[q, R_TIER]] += s.relation[q, R_WEIGHT] * ((a + b) * (a + t) - a - was)


@compiled
def _leavers(s: SearchState, q: int, group: int, k: int) -> None:
    """Count a leaver more or less of a group; the cost is the largest number that any group has."""
    at = s.relation[q, R_COUNT] + group
    was = s.counter[at]
    s.counter[at] = was + k
    histogram = s.relation[q, R_HISTOGRAM]
    s.counter[histogram + was] -= 1
    s.counter[histogram + was + k] += 1
    most = s.relation[q, R_STATE]
    now = most
    if was + k > most:
        now = was + k
    elif was == most and s.counter[histogram + most] == 0:
        now = most - 1
    s.relation[q, R_STATE] = now
    s.value[s.relation[q, R_TIER]] += s.relation[q, R_WEIGHT] * (now - most)
