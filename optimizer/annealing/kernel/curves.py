"""Piecewise linear curves, and the scores of a node."""

from __future__ import annotations

from stowplan.optimizer.annealing.kernel.layout import H_C_LOAD, H_C_SCORED, H_F_LOAD, H_V_SCORED, H_V_USAGE
from stowplan.optimizer.annealing.kernel.state import Int64, SearchState
from stowplan.optimizer.compiled.jit import compiled, inlined

POINTS = 100


@inlined
def curve_at(piece: Int64, first: int, pieces: int, x: int) -> int:
    """Evaluate the curve whose pieces are ``piece[first : first + pieces]``."""
    low = first
    high = first + pieces - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if piece[middle, 0] <= x:
            low = middle
        else:
            high = middle - 1
    return int(piece[low, 2] + piece[low, 1] * (x - piece[low, 0]))


@compiled
def missed(s: SearchState, score: int, n: int, c: int, k: int) -> int:
    """Return the points that all scored pods of a node miss, if ``k`` more pods of class ``c`` were on it."""
    first, loads = s.score[score, 3], s.score[score, 4]
    kind, weights = s.score[score, 2], s.score[score, 5]
    scored = s.live[n, s.head[H_V_SCORED] + score]
    if k:
        scored += k * s.cls[c, s.head[H_C_SCORED] + score]
    if scored == 0:
        return 0
    usage = s.head[H_V_USAGE] + first
    capacity = s.head[H_F_LOAD] + first
    demand = s.head[H_C_LOAD] + first
    if kind == 2:
        a, b = s.fix[n, capacity], s.fix[n, capacity + 1]
        if a <= 0 or b <= 0:
            return 0
        u, v = s.live[n, usage], s.live[n, usage + 1]
        if k:
            u += k * s.cls[c, demand]
            v += k * s.cls[c, demand + 1]
        apart = abs(min(u, a) * b - min(v, b) * a)
        return int(scored * -((-(POINTS // 2) * apart) // (a * b)))
    total = 0
    points = 0
    for r in range(loads):
        room = s.fix[n, capacity + r]
        if room <= 0:
            continue
        used = s.live[n, usage + r]
        if k:
            used += k * s.cls[c, demand + r]
        weight = s.load_weight[weights + r]
        total += weight
        if kind == 0:
            if used <= room:
                points += weight * ((room - used) * POINTS // room)
        else:
            points += weight * (min(used, room) * POINTS // room)
    if total == 0:
        return int(scored * POINTS)
    return int(scored * (POINTS - points // total))
