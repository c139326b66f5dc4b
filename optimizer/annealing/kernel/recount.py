"""Relations that are violated at the start, or span several topologies: recomputed after each change."""

from __future__ import annotations

from stowplan.models.problem import PENALTY_WEIGHT
from stowplan.optimizer.annealing.kernel.layout import (
    AT_MOST,
    ATTRACT,
    BOTH,
    H_NODES,
    H_TIERS,
    ILLEGAL,
    OCCUPY,
    R_ARRIVED,
    R_BEFORE,
    R_COUNT,
    R_DOMAINS,
    R_FLOOR,
    R_ILLEGAL,
    R_KIND,
    R_LIMIT,
    R_NODE,
    R_TOPOLOGIES,
    R_TOPOLOGIES_END,
    R_TOPOLOGY,
    R_VIOLATION,
    REPEL,
    SEEKER,
    SPREAD,
    TARGET,
)
from stowplan.optimizer.annealing.kernel.node import is_illegal
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.compiled.jit import compiled, inlined


@inlined
def clash(a: int, b: int, t: int) -> int:
    """Return the pods in conflict in one domain, given its seekers that are targets, other seekers, other targets."""
    return a + b + t if a >= 2 or (a >= 1 and b + t >= 1) or (b >= 1 and t >= 1) else 0


@compiled
def shift_slow(s: SearchState, q: int, role: int, n: int, k: int, newcomer: bool) -> None:
    """Count a pod that arrives at a node or leaves it; `assess` follows."""
    nodes = s.head[H_NODES]
    if n == nodes:
        return
    kind, domains, base = s.relation[q, R_KIND], s.relation[q, R_DOMAINS], s.relation[q, R_COUNT]
    if kind == ATTRACT:
        s.counter[s.relation[q, R_NODE] + role * nodes + n] += k
        if newcomer and role != TARGET:
            s.counter[s.relation[q, R_ARRIVED] + (0 if role == BOTH else nodes) + n] += k
        offset = base
        for at in range(s.relation[q, R_TOPOLOGIES], s.relation[q, R_TOPOLOGIES_END], 2):
            d = s.domain[s.counter[at], n]
            if role != SEEKER and d >= 0:
                s.counter[offset + d] += k
            offset += s.counter[at + 1]
        return
    d = s.domain[s.relation[q, R_TOPOLOGY], n]
    if d < 0:
        return
    if kind == SPREAD:
        if role != SEEKER:
            s.counter[base + d] += k
        if role != TARGET:
            s.counter[base + domains + d] += k
            if newcomer:
                s.counter[s.relation[q, R_ARRIVED] + d] += k
        return
    s.counter[base + (role * domains if kind == REPEL else 0) + d] += k
    if newcomer and kind != OCCUPY:
        s.counter[s.relation[q, R_ARRIVED] + d] += k


@compiled
def assess(s: SearchState, q: int) -> None:
    """Compute the violation of a relation and its illegal places, and add the differences to the values."""
    if s.relation[q, R_KIND] == ATTRACT:
        violation, wrong = _assess_attract(s, q)
    else:
        violation, wrong = _assess_domains(s, q)
    tiers = s.head[H_TIERS]
    s.value[tiers + ILLEGAL] += wrong - s.relation[q, R_ILLEGAL]
    for t in range(tiers):
        s.value[t] += (violation - s.relation[q, R_VIOLATION]) * PENALTY_WEIGHT * s.violation_weight[t]
    s.relation[q, R_VIOLATION], s.relation[q, R_ILLEGAL] = violation, wrong


@compiled
def _assess_domains(s: SearchState, q: int) -> tuple[int, int]:
    kind, domains, base, limit = (
        s.relation[q, R_KIND],
        s.relation[q, R_DOMAINS],
        s.relation[q, R_COUNT],
        s.relation[q, R_LIMIT],
    )
    before, arrived = s.relation[q, R_BEFORE], s.relation[q, R_ARRIVED]
    if kind == OCCUPY:
        used = 0
        for d in range(domains):
            used += 1 if s.counter[base + d] > 0 else 0
        over = max(0, limit - used)
        return over, is_illegal(over, s.counter[before], 0)
    least = 0
    if kind == SPREAD and not s.relation[q, R_FLOOR] and domains > 0:
        least = s.counter[base]
        for d in range(1, domains):
            least = min(least, s.counter[base + d])
    violation, wrong = 0, 0
    for d in range(domains):
        count = s.counter[base + d]
        if kind == AT_MOST:
            over = max(0, count - limit)
        elif kind == SPREAD:
            over = max(0, count - least - limit) if s.counter[base + domains + d] > 0 else 0
        else:
            b, t = s.counter[base + domains + d], s.counter[base + 2 * domains + d]
            over = clash(count, b, t)
        violation += over
        wrong += is_illegal(over, s.counter[before + d], s.counter[arrived + d])
    return violation, wrong


@compiled
def _assess_attract(s: SearchState, q: int) -> tuple[int, int]:
    """Places are pairs of a node and a role."""
    nodes = s.head[H_NODES]
    here, before, arrived = s.relation[q, R_NODE], s.relation[q, R_BEFORE], s.relation[q, R_ARRIVED]
    first, end = s.relation[q, R_TOPOLOGIES], s.relation[q, R_TOPOLOGIES_END]
    targets = 0
    for n in range(nodes):
        covered = False
        for at in range(first, end, 2):
            covered = covered or s.domain[s.counter[at], n] >= 0
        if covered:
            targets += s.counter[here + n] + s.counter[here + 2 * nodes + n]
    violation, wrong = 0, 0
    for n in range(nodes):
        a, b = s.counter[here + n], s.counter[here + nodes + n]
        if a == 0 and b == 0:
            continue
        matching = 1 << 30
        offset = s.relation[q, R_COUNT]
        for at in range(first, end, 2):
            d = s.domain[s.counter[at], n]
            matching = min(matching, s.counter[offset + d] if d >= 0 else 0)
            offset += s.counter[at + 1]
        over = a if matching < 2 and targets > 1 else 0
        violation += over
        wrong += is_illegal(over, s.counter[before + n], s.counter[arrived + n])
        over = b if matching < 1 else 0
        violation += over
        wrong += is_illegal(over, s.counter[before + nodes + n], s.counter[arrived + nodes + n])
    return violation, wrong
