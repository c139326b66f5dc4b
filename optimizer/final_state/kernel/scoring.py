"""What is counted, and what a pod scores on its node, apart from the others."""

from __future__ import annotations

from math import sqrt

from stowplan.optimizer.compiled.jit import compiled, inlined
from stowplan.optimizer.final_state.kernel.arrays import (
    BALANCE,
    E_BY_NODE,
    E_DOMAIN,
    E_READ,
    E_READ_END,
    E_REPEATED,
    E_SKEW,
    F_APART,
    F_ATTRACTED,
    F_COMPANY,
    F_EVEN,
    F_LIMIT,
    H_ATTRACTED,
    H_EVEN,
    LEAST,
    MOST,
    Q_ADDS,
    Q_COUNTS,
    Q_DOMAIN,
    Q_DOMAINS,
    Q_FROM_NONE,
    Q_KNOWN,
    Q_OWN,
    Q_SKEW,
    Q_WORTH,
    Scores,
)

POINTS = 100


# -- counts ------------------------------------------------------------------------------------------------------


@compiled
def count(f: Scores, c: int, n: int, pods: int) -> None:
    """Bring pods of a class to a node, or take them away; nothing is scored."""
    f.pods[c, n] += pods
    for r in range(f.adds.shape[1]):
        f.free[n, r] -= pods * f.adds[c, r]
    for u in range(len(f.use_kind)):
        for r in range(f.use_weight.shape[1]):
            f.load[u, n, r] += pods * f.use_own[u, c, r]
    for j in range(f.add_at[c], f.add_at[c + 1]):
        at = f.counted[f.add[j, 0], n]
        if at >= 0:
            f.counts[at] += pods * f.add[j, 1]
    for i in range(len(f.sort)):
        key = f.sort[i, n] + c
        for j in range(f.things_at[key], f.things_at[key + 1]):
            thing = f.things[j]
            before = f.holders[thing, n]
            f.holders[thing, n] = before + pods
            f.distinct[f.thing_limit[thing], n] += (1 if before + pods > 0 else 0) - (1 if before > 0 else 0)


@inlined
def _read(f: Scores, q: int, n: int, h: int) -> int:
    """Return what a reading finds at a node while a pod of the class is taken off another; -1 without a domain."""
    d = f.domain[f.reading[q, Q_DOMAIN], n]
    if d < 0:
        return -1
    at = f.counted_at[f.reading[q, Q_COUNTS]] + d
    found = f.counts[at]
    if f.counted[f.reading[q, Q_COUNTS], h] == at:
        found -= f.reading[q, Q_OWN]
    return int(found)


# -- filters -----------------------------------------------------------------------------------------------------


@inlined
def has_room(f: Scores, c: int, n: int, there: int) -> bool:
    """Whether requests of a pod, and what it attaches, fit; ``there`` is 1 if it is on the node, and taken off it."""
    if not f.allowed[c, n]:
        return False
    for r in range(f.needs.shape[1]):
        if f.needs[c, r] - there * f.adds[c, r] > f.free[n, r]:
            return False
    return _attaches(f, c, n, there)


@compiled
def _attaches(f: Scores, c: int, n: int, there: int) -> bool:
    """Whether the limits of attachments admit a pod; ``there`` as in `has_room`."""
    for i in range(len(f.sort)):
        key = f.sort[i, n] + c
        j, end = f.things_at[key], f.things_at[key + 1]
        while j < end:
            limit = f.thing_limit[f.things[j]]
            new, distinct = 0, f.distinct[limit, n]
            while j < end and f.thing_limit[f.things[j]] == limit:
                if f.holders[f.things[j], n] <= there:
                    new += 1
                    distinct -= there
                j += 1
            if distinct + new > f.limit_most[limit, n] and (new > 0 or f.limit_strict[limit]):
                return False
    return True


@compiled
def _admits(f: Scores, c: int, h: int) -> None:
    """Note in ``mask`` which nodes are feasible for a pod on ``h``, once it is taken off."""
    nodes = f.pods.shape[1]
    for n in range(nodes):
        f.mask[n] = f.room[c, n]
    f.mask[h] = f.back[c, h]
    for q in range(f.first[F_LIMIT, c], f.first[F_LIMIT, c + 1]):
        domains, k = f.reading[q, Q_DOMAINS], f.reading[q, Q_COUNTS]
        least, home = 1 << 60, f.counted[k, h] - f.counted_at[k]
        for d in range(domains):
            if f.known[f.reading[q, Q_KNOWN] + d]:
                there = f.counts[f.counted_at[k] + d] - (f.reading[q, Q_OWN] if d == home else 0)
                least = min(least, there)
        if f.reading[q, Q_FROM_NONE]:
            least = 0
        most = f.reading[q, Q_SKEW] - f.reading[q, Q_ADDS] + least
        for n in range(nodes):
            if f.mask[n]:
                there = _read(f, q, n, h)
                f.mask[n] = there >= 0 if domains == 0 else f.domain[f.reading[q, Q_DOMAIN], n] >= 0 and there <= most
    if f.first[F_COMPANY, c] < f.first[F_COMPANY, c + 1]:
        _seek_company(f, c, h)
    for q in range(f.first[F_APART, c], f.first[F_APART, c + 1]):
        for n in range(nodes):
            if f.mask[n] and _read(f, q, n, h) > 0:
                f.mask[n] = False


@inlined
def _seek_company(f: Scores, c: int, h: int) -> None:
    begin, end = f.first[F_COMPANY, c], f.first[F_COMPANY, c + 1]
    alone = f.first_of_kind[c]
    for q in range(begin, end):
        k = f.reading[q, Q_COUNTS]
        home = f.counted[k, h] - f.counted_at[k]
        for d in range(f.reading[q, Q_DOMAINS]):
            if alone and f.counts[f.counted_at[k] + d] - (f.reading[q, Q_OWN] if d == home else 0) != 0:
                alone = False
    least = 0 if alone else 1
    for q in range(begin, end):
        for n in range(f.pods.shape[1]):
            if f.mask[n]:
                f.mask[n] = f.domain[f.reading[q, Q_DOMAIN], n] >= 0 and _read(f, q, n, h) >= least


# -- scores by usage ---------------------------------------------------------------------------------------------


@compiled
def worth_of_usage(f: Scores, c: int, n: int) -> int:
    """Return the price of the points that a pod on a node has by what is used there, and by the node alone."""
    worth = f.fixed[c, n]
    for u in range(len(f.use_kind)):
        if f.use_scored[u, c]:
            kind = f.use_kind[u]
            if kind in (LEAST, MOST):
                points = _allocated(f, u, c, n)
            else:
                points = _balance(f, u, c, n, True)
                if kind != BALANCE:
                    change = POINTS // 2 + points - _balance(f, u, c, n, False)
                    points = POINTS // 2 + change // 2
            worth += f.use_price[u] * points
    return int(worth)


@inlined
def _allocated(f: Scores, u: int, c: int, n: int) -> int:
    weighted, total = 0, 0
    for r in range(f.use_weight.shape[1]):
        capacity = f.use_capacity[u, n, r]
        if not f.use_counted[u, c, r] or capacity <= 0:
            continue
        used = f.load[u, n, r] - f.use_own[u, c, r] + f.use_asked[u, c, r]
        if f.use_kind[u] == LEAST:
            part = 0 if used > capacity else (capacity - used) * POINTS // capacity
        else:
            part = min(used, capacity) * POINTS // capacity
        weighted += part * f.use_weight[u, r]
        total += f.use_weight[u, r]
    return int(weighted // total) if total > 0 else 0


@inlined
def _fraction(f: Scores, u: int, c: int, n: int, r: int, there: bool) -> float:
    used = f.load[u, n, r] - f.use_own[u, c, r] + (f.use_asked[u, c, r] if there else 0)
    return float(min(1.0, used / max(f.use_capacity[u, n, r], 1)))


@inlined
def _matters(f: Scores, u: int, c: int, n: int, r: int) -> bool:
    return bool(f.use_counted[u, c, r] and f.use_capacity[u, n, r] > 0)


@compiled
def _balance(f: Scores, u: int, c: int, n: int, there: bool) -> int:
    """Return ``trunc((1 − std)·100)`` of the fractions used, in the order of the resources."""
    number, total, first, last = 0, 0.0, 0.0, 0.0
    for r in range(f.use_weight.shape[1]):
        if _matters(f, u, c, n, r):
            last = _fraction(f, u, c, n, r, there)
            first = last if number == 0 else first
            total += last
            number += 1
    std = 0.0
    if number == 2:
        std = abs((first - last) / 2)
    elif number > 2:
        mean, squares = total / number, 0.0
        for r in range(f.use_weight.shape[1]):
            if _matters(f, u, c, n, r):
                apart = _fraction(f, u, c, n, r, there) - mean
                squares += apart * apart
        std = sqrt(squares / number)
    return int((1.0 - std) * float(POINTS))


# -- scores by comparison ----------------------------------------------------------------------------------------


@compiled
def compare(f: Scores, c: int, h: int) -> None:
    """Score a pod by the plugins that compare nodes, once it is taken off its own."""
    rows = 2
    for sort in range(len(f.first)):
        rows += f.first[sort, c + 1] - f.first[sort, c]
    f.work[0] += rows * f.pods.shape[1]
    _admits(f, c, h)
    f.stay[c, h] = f.mask[h]
    worth = 0
    if f.mask[h]:
        for i in range(len(f.scaled_price)):
            if f.scaled_row[i, c] >= 0:
                worth += f.scaled_price[i] * _scaled(f, i, f.scaled_row[i, c], h)
        if f.first[F_EVEN, c] < f.first[F_EVEN, c + 1]:
            worth += f.head[H_EVEN] * _even(f, c, h)
        if f.first[F_ATTRACTED, c] < f.first[F_ATTRACTED, c + 1]:
            worth += f.head[H_ATTRACTED] * _attracted(f, c, h)
    f.compared[c, h] = worth


@inlined
def _scaled(f: Scores, i: int, row: int, h: int) -> int:
    highest = 0
    for n in range(f.pods.shape[1]):
        if f.mask[n]:
            highest = max(highest, f.scaled_raw[row, n])
    scaled = f.scaled_raw[row, h] * POINTS // highest if highest > 0 else 0
    return int(POINTS - scaled if f.scaled_reverse[i] else scaled)


@compiled
def _even(f: Scores, c: int, h: int) -> int:
    """Return the points of PodTopologySpread; nodes that are left out no longer count as feasible."""
    nodes, begin, end = f.pods.shape[1], f.first[F_EVEN, c], f.first[F_EVEN, c + 1]
    for n in range(nodes):
        f.raw[n] = 0.0
    left_out = f.complete[c]
    if left_out and _lacks(f, h, begin, end):
        return 0
    for j in range(begin, end):
        row = f.even[j, E_DOMAIN]
        weight = f.logarithm[_size(f, c, j, begin, end)]
        skew = float(f.even[j, E_SKEW])
        for n in range(nodes):
            d = f.domain[row, n]
            if d < 0 or not f.mask[n]:
                continue
            counted = 0
            for i in range(f.even[j, E_READ], f.even[j, E_READ_END]):
                k = f.even_read[i, 0]
                at = f.counted_at[k] + d
                counted += f.counts[at]
                if f.counted[k, h] == at:
                    counted -= f.even_read[i, 1]
            f.raw[n] += counted * weight + skew
    highest, lowest, own = 0, 1 << 60, 0
    for n in range(nodes):
        if not f.mask[n] or (left_out and _lacks(f, n, begin, end)):
            continue
        whole = int(f.raw[n])
        if f.raw[n] - whole >= 0.5:
            whole += 1
        highest, lowest = max(highest, whole), min(lowest, whole)
        if n == h:
            own = whole
    if highest <= 0:
        return POINTS
    return int(POINTS * (highest + lowest - own) // highest)


@inlined
def _lacks(f: Scores, n: int, begin: int, end: int) -> bool:
    """Whether a node is in no domain of one of the scores."""
    lacks = False
    for j in range(begin, end):
        lacks = lacks or f.domain[f.even[j, E_DOMAIN], n] < 0
    return lacks


@inlined
def _size(f: Scores, c: int, j: int, begin: int, end: int) -> int:
    """Return the number of domains of the candidates; being in none is one too."""
    if f.even[j, E_REPEATED]:
        return 0
    by_node, row, left_out, size = f.even[j, E_BY_NODE], f.even[j, E_DOMAIN], f.complete[c], 0
    f.seen[-1] += 1
    for n in range(f.pods.shape[1]):
        if not f.mask[n] or (left_out and _lacks(f, n, begin, end)):
            continue
        if by_node:
            size += 1
        else:
            d = f.domain[row, n] if f.domain[row, n] >= 0 else len(f.seen) - 2
            if f.seen[d] != f.seen[-1]:
                f.seen[d] = f.seen[-1]
                size += 1
    return size


@compiled
def _attracted(f: Scores, c: int, h: int) -> int:
    """Return the points of InterPodAffinity, which divides before it multiplies."""
    lowest, highest, own = 1 << 60, -(1 << 60), 0
    for n in range(f.pods.shape[1]):
        if not f.mask[n]:
            continue
        raw = 0
        for q in range(f.first[F_ATTRACTED, c], f.first[F_ATTRACTED, c + 1]):
            if f.domain[f.reading[q, Q_DOMAIN], n] >= 0:
                raw += _read(f, q, n, h) * f.reading[q, Q_WORTH]
        lowest, highest = min(lowest, raw), max(highest, raw)
        if n == h:
            own = raw
    if highest <= lowest:
        return 0
    return int(float(POINTS) * ((own - lowest) / (highest - lowest)))
