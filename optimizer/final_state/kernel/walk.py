"""The Metropolis algorithm on the exact cost of a final state, over legal placements, no tier above getting worse."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.optimizer.annealing.kernel.chain import home_node, open_node
from stowplan.optimizer.annealing.kernel.layout import (
    H_MOVE_LIMIT,
    H_NODES,
    H_PODS,
    H_TIERS,
    MOVED,
    P_CLASS,
    P_NODE,
)
from stowplan.optimizer.annealing.kernel.moves import fits, legal, shift
from stowplan.optimizer.annealing.kernel.node import is_newcomer
from stowplan.optimizer.annealing.kernel.screen import forbidden
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.compiled.jit import compiled, inlined, merged
from stowplan.optimizer.compiled.random import RandomState, below, uniform
from stowplan.optimizer.final_state.kernel.arrays import Scores
from stowplan.optimizer.final_state.kernel.following import change, undo

LONGEST = 3
"""Pods that one step moves at most: two that are exchanged, and one that goes home."""

TRIALS = 8
"""Pods that are asked whether they may go home."""

MOST_WORK = 30_000_000
"""Units of work after which a batch of steps ends: about a tenth of a second."""

STEP_WORK = 100
"""Units of work of a step that is not scored."""

TRIED, MADE, MEASURED = range(3)


class Walk(NamedTuple):
    """What a search keeps between batches of steps.

    Parameters
    ----------
    random
        State of the random numbers.
    best, best_value
        ``[P]`` node of each pod in the best placement, and ``[T]`` its tiers, the last with the price of all points
        taken off.
    moved
        Pods that left their node some time ago, one of which goes home where no move is left. The last entry does not
        count.
    measured
        ``[i, 2]`` by how much the last steps would have changed the cost, and how much better that is than it seemed.
    steps
        Steps that were scored at all, steps that were made, and steps that were scored to the end.
    before
        ``[T]`` the tiers before a step.
    path, moves
        ``[LONGEST]`` the pods that a step moves; ``[LONGEST, 3]`` class, source and target of each.
    """

    random: RandomState
    best: Ints
    best_value: Ints
    moved: Ints
    measured: NDArray[np.int64]
    steps: Ints
    before: Ints
    path: Ints
    moves: Ints


@compiled
def run(s: SearchState, w: Walk, f: Scores, steps: int, temperature: float, margin: int, swaps: float) -> int:
    """Take steps; the last tier of the state is the one to improve. Pods without a node are left to others.

    Parameters
    ----------
    steps
        How many at most. Some take a thousand times as long as others, so they also end after `MOST_WORK`.
    margin
        Steps that seem to be worse by so much than what is accepted are given up before all is scored.
    swaps
        Share of the steps that exchange two pods.

    Returns
    -------
    int
        How many were taken.
    """
    tiers, begun = s.head[H_TIERS], f.work[0]
    for step in range(steps):
        if f.work[0] - begun > MOST_WORK:
            return step
        f.work[0] += STEP_WORK
        threshold = -temperature * log(uniform(w.random)) if temperature > 0 else 0.0
        p = _pod(s, w)
        target = open_node(s, w.random, p)
        if s.pod[p, P_NODE] == s.head[H_NODES] or target < 0:
            continue
        other = -1
        if uniform(w.random) < swaps and s.width[target]:
            other = s.on[s.on_at[target] + below(w.random, s.width[target])]
            if s.pod[other, P_CLASS] == s.pod[p, P_CLASS]:
                continue
        if not _may_pass(s, p, other, target):
            continue
        for t in range(tiers):
            w.before[t] = s.value[t]
        length = _make(s, w, p, other, target)
        earlier = _earlier(s, w)
        if legal(s) and earlier <= 0:
            total = f.total[0]
            least = total + s.value[tiers - 1] - w.before[tiers - 1] - int(threshold) - margin
            if earlier < 0:
                least = -(1 << 60)
            complete = change(f, w.moves, length, least)
            delta = s.value[tiers - 1] - w.before[tiers - 1] - (f.total[0] - total)
            w.steps[TRIED] += 1
            if complete:
                w.measured[w.steps[MEASURED] % len(w.measured), 0] = delta
                w.measured[w.steps[MEASURED] % len(w.measured), 1] = f.total[0] - f.total[1]
                w.steps[MEASURED] += 1
            if complete and (delta <= threshold or earlier < 0):
                w.steps[MADE] += 1
                _record(s, w, f)
                continue
            undo(f, w.moves, length, total)
        for i in range(length - 1, -1, -1):
            shift(s, w.path[i], w.moves[i, 1])
    return steps


@inlined
def _pod(s: SearchState, w: Walk) -> int:
    """Draw a pod; where moves are limited, half of the time one that has moved."""
    if len(w.moved) > 1 and uniform(w.random) < 0.5:
        return int(w.moved[below(w.random, len(w.moved) - 1)])
    return below(w.random, s.head[H_PODS])


@merged
def _may_pass(s: SearchState, p: int, other: int, target: int) -> bool:
    """Whether a move is not certainly illegal."""
    source, c = s.pod[p, P_NODE], s.pod[p, P_CLASS]
    e = s.pod[other, P_CLASS] if other >= 0 else -1
    return fits(s, c, e, target) and (e < 0 or fits(s, e, c, source)) and not forbidden(s, c, e, source, target)


@merged
def _make(s: SearchState, w: Walk, p: int, other: int, target: int) -> int:
    """Make a move, an exchange if there is another pod, and where that takes more moves than are left, a way home."""
    source = s.pod[p, P_NODE]
    length = _step(s, w, 0, p, target)
    if other >= 0:
        length = _step(s, w, length, other, source)
    if s.value[s.head[H_TIERS] + MOVED] > s.head[H_MOVE_LIMIT] and len(w.moved) > 1:
        for _ in range(TRIALS):
            q = w.moved[below(w.random, len(w.moved) - 1)]
            c, n = s.pod[q, P_CLASS], s.pod[q, P_NODE]
            if q in (p, other) or n == s.head[H_NODES] or not is_newcomer(s, c, n, 0):
                continue
            home = home_node(s, w.random, q)
            if home >= 0 and not is_newcomer(s, c, home, 1) and fits(s, c, -1, home):
                return _step(s, w, length, q, home)
    return length


@merged
def _step(s: SearchState, w: Walk, length: int, p: int, target: int) -> int:
    w.path[length] = p
    w.moves[length, 0] = s.pod[p, P_CLASS]
    w.moves[length, 1] = s.pod[p, P_NODE]
    w.moves[length, 2] = target
    shift(s, p, target)
    return length + 1


@inlined
def _earlier(s: SearchState, w: Walk) -> int:
    """Return below 0 if the tiers before the last are better than before the step, 0 if equal, above 0 if worse."""
    for t in range(s.head[H_TIERS] - 1):
        if s.value[t] != w.before[t]:
            return int(s.value[t] - w.before[t])
    return 0


@merged
def _record(s: SearchState, w: Walk, f: Scores) -> None:
    """Record the placement if it is better than the best one."""
    tiers = s.head[H_TIERS]
    for t in range(tiers):
        value = s.value[t] - (f.total[0] if t == tiers - 1 else 0)
        if value > w.best_value[t]:
            return
        if value < w.best_value[t]:
            break
        if t == tiers - 1:
            return
    for t in range(tiers):
        w.best_value[t] = s.value[t] - (f.total[0] if t == tiers - 1 else 0)
    for p in range(s.head[H_PODS]):
        w.best[p] = s.pod[p, P_NODE]
