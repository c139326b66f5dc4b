"""State of one Markov chain of simulated annealing, and how it draws a pod, a related pod, a node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stowplan.optimizer.annealing.kernel.layout import (
    C_CHOICE,
    C_CHOICE_END,
    C_HOMES,
    C_HOMES_END,
    C_MEMBER,
    C_MEMBER_END,
    C_POD,
    H_CLASSES,
    H_NODES,
    H_PODS,
    MOVE_PEAK,
    P_CLASS,
    P_NODE,
    R_KIND,
    R_PARTICIPANTS,
    R_PARTICIPANTS_END,
)
from stowplan.optimizer.annealing.kernel.state import Int64, SearchState
from stowplan.optimizer.compiled.jit import inlined
from stowplan.optimizer.compiled.random import RandomState, below, uniform

LONGEST = 256
"""Pods that one step moves at most."""

TRIALS = 8
"""Nodes evaluated for a pod that has to move, and pods evaluated for one that has to leave."""


class Chain(NamedTuple):
    """What a Markov chain keeps between batches of steps.

    Parameters
    ----------
    random
        State of the random numbers.
    mix
        ``[OPERATORS]`` cumulative probabilities of the move operators.
    sampled
        Pods that half of all steps begin with: of violated constraints and on expensive nodes. The last entry does not
        count.
    best, best_value
        ``[P]`` node of each pod in the chain's incumbent, and ``[T]`` the values of its tiers.
    dirty, dirty_at, counts
        Pods that moved since the incumbent was recorded, ``[P]`` whether a pod is among them, and their number in
        ``counts[0]``.
    change, before
        ``[T + 2]`` scratch: the tiers, the capacity held by moves, and the overload.
    uphill
        By how much the last uphill proposals would have worsened the tier; ``counts[1]`` of them were seen.
    path
        ``[LONGEST, 2]`` pods moved in the current step, and the nodes they came from.
    """

    random: RandomState
    mix: NDArray[np.float64]
    sampled: Int64
    best: Int64
    best_value: Int64
    dirty: Int64
    dirty_at: NDArray[np.bool_]
    counts: Int64
    change: Int64
    before: Int64
    uphill: Int64
    path: Int64


class Penalties(NamedTuple):
    """Penalty weights of a chain, in units of the tier that it improves.

    Parameters
    ----------
    held
        For a unit of capacity that moved pods hold on the nodes they left.
    overload
        For a unit of overload of capacities that are violated on the way.
    most
        Overload up to which a node's capacity may be violated; 0 if the chain stays feasible.
    """

    held: float
    overload: float
    most: int


@inlined
def pick(s: SearchState, w: Chain) -> int:
    """Draw the pod that a step begins with."""
    if len(w.sampled) > 1 and uniform(w.random) < 0.5:
        return int(w.sampled[below(w.random, len(w.sampled) - 1)])
    return below(w.random, s.head[H_PODS])


@inlined
def on_node(s: SearchState, w: Chain, n: int) -> int:
    """Draw a pod on a node, or return -1 if there is none."""
    if s.width[n] == 0:
        return -1
    return int(s.on[s.on_at[n] + below(w.random, s.width[n])])


@inlined
def related_pod(s: SearchState, w: Chain, p: int) -> int:
    """Draw a pod that a rule or term counts together with pod ``p``, or return -1 if there is none."""
    c = s.pod[p, P_CLASS]
    first, end = s.cls[c, C_MEMBER], s.cls[c, C_MEMBER_END]
    if end == first:
        return -1
    q = s.member[first + below(w.random, end - first), 0]
    participants, participants_end = s.relation[q, R_PARTICIPANTS], s.relation[q, R_PARTICIPANTS_END]
    if participants == participants_end or s.relation[q, R_KIND] == MOVE_PEAK:
        return -1
    other = s.participants[participants + below(w.random, participants_end - participants)]
    begin = s.cls[other, C_POD]
    close = s.cls[other + 1, C_POD] if other + 1 < s.head[H_CLASSES] else s.head[H_PODS]
    return int(begin + below(w.random, close - begin))


@inlined
def home_node(s: SearchState, random: RandomState, p: int) -> int:
    """Draw a node that pods of a pod's class started on, or return -1 if the pod cannot go there."""
    c = s.pod[p, P_CLASS]
    return _one_of(s, random, p, s.home, s.cls[c, C_HOMES], s.cls[c, C_HOMES_END])


@inlined
def open_node(s: SearchState, random: RandomState, p: int) -> int:
    """Draw a node that is open to a pod, or return -1 if the pod cannot go there."""
    c = s.pod[p, P_CLASS]
    return _one_of(s, random, p, s.choice, s.cls[c, C_CHOICE], s.cls[c, C_CHOICE_END])


@inlined
def _one_of(s: SearchState, random: RandomState, p: int, nodes: Int64, first: int, end: int) -> int:
    """Draw one of ``nodes[first : end]``, or return -1 if a pod cannot go there; see `enterable`."""
    if end == first:
        return -1
    return enterable(s, p, int(nodes[first + below(random, end - first)]))


@inlined
def enterable(s: SearchState, p: int, n: int) -> int:
    """Return a node, or -1 if it is no node, the pod is on it already, or its list of pods is full."""
    if n >= s.head[H_NODES] or n == s.pod[p, P_NODE] or s.width[n] >= s.on_at[n + 1] - s.on_at[n]:
        return -1
    return n
