"""Steps of several pods: pushed aside, traded, a node emptied, a whole group moved."""

from __future__ import annotations

from stowplan.optimizer.annealing.kernel.chain import LONGEST, LOOKS, Chain, Penalties, enterable, on_node, open_node
from stowplan.optimizer.annealing.kernel.layout import (
    BAD,
    C_MEMBER,
    C_MEMBER_END,
    C_POD,
    H_MOVE_LIMIT,
    H_NODES,
    H_PODS,
    H_TIERS,
    MOVE_PEAK,
    MOVED,
    OVERLOADED,
    P_CLASS,
    P_NODE,
    R_DOMAINS,
    R_KIND,
    R_PARTICIPANTS,
    R_PARTICIPANTS_END,
    R_TOPOLOGY,
)
from stowplan.optimizer.annealing.kernel.moves import admits, evaluate_delta, shift
from stowplan.optimizer.annealing.kernel.screen import forbidden
from stowplan.optimizer.annealing.kernel.state import Int64, SearchState
from stowplan.optimizer.compiled.jit import compiled, inlined, merged
from stowplan.optimizer.compiled.random import below

TRADED = 16
"""Most pods that one pod is traded for."""


@inlined
def penalized(s: SearchState, change: Int64, focus: int, penalties: Penalties) -> float:
    """Return what a change of tiers, of room that moves hold and of overfill comes to for a walk."""
    tiers = s.head[H_TIERS]
    return float(change[focus] + penalties.held * change[tiers] + penalties.overload * change[tiers + 1])


@inlined
def passable(s: SearchState, penalties: Penalties) -> bool:
    """Whether a walk may go on from here: nothing is illegal but for nodes that are overfilled at a price."""
    tiers = s.head[H_TIERS]
    wrong = s.value[tiers + BAD] - (s.value[tiers + OVERLOADED] if penalties.most else 0)
    return bool(wrong == 0 and s.value[tiers + MOVED] <= s.head[H_MOVE_LIMIT])


@merged
def go(s: SearchState, w: Chain, length: int, p: int, target: int) -> int:
    """Move a pod as part of a path; return the path's new length."""
    w.path[length, 0] = p
    w.path[length, 1] = s.pod[p, P_NODE]
    shift(s, p, target)
    return length + 1


@compiled
def somewhere(s: SearchState, w: Chain, p: int, focus: int, avoid: int, penalties: Penalties) -> int:
    """Return the best of a few open nodes that could take a pod, or -1."""
    c, source = s.pod[p, P_CLASS], s.pod[p, P_NODE]
    best, best_cost, best_fill = -1, 0.0, 0.0
    for _ in range(LOOKS):
        n = open_node(s, w, p)
        if n < 0 or n == avoid:
            continue
        if not evaluate_delta(s, p, -1, source, n, w.change, penalties.most) or forbidden(s, c, -1, source, n):
            continue
        cost = penalized(s, w.change, focus, penalties)
        if best < 0 or cost < best_cost or (cost == best_cost and s.fill[n] > best_fill):
            best, best_cost, best_fill = n, cost, s.fill[n]
    return best


@merged
def push(s: SearchState, w: Chain, p: int, target: int, focus: int, penalties: Penalties) -> int:
    """Push a pod onto a node and others off it, up to three, each to the best of a few nodes."""
    length = go(s, w, 0, p, target)
    for _ in range(3):
        other = on_node(s, w, target)
        if other == p:
            continue
        elsewhere = somewhere(s, w, other, focus, target, penalties)
        if elsewhere < 0:
            continue
        length = go(s, w, length, other, elsewhere)
        if passable(s, penalties):
            break
    return length


@inlined
def heavier(s: SearchState, w: Chain, p: int) -> int:
    """Return which of a pod and a random one that has a node takes more of an average node's capacities."""
    q = below(w.random, s.head[H_PODS])
    if s.pod[q, P_NODE] < s.head[H_NODES] and s.weight[s.pod[q, P_CLASS]] > s.weight[s.pod[p, P_CLASS]]:
        return q
    return p


@merged
def trade(s: SearchState, w: Chain, p: int, target: int, focus: int, penalties: Penalties) -> int:
    """Move a pod to a node, and others from there to the node it left as long as the best of a few gains something.

    While the pod is one too many there, whoever costs least goes. Given up at once where a relation keeps the pod off
    the node as it is, even if it would not after the trade.
    """
    source = s.pod[p, P_NODE]
    if forbidden(s, s.pod[p, P_CLASS], -1, source, target):
        return 0
    length = go(s, w, 0, p, target)
    for _ in range(TRADED):
        fine = passable(s, penalties)
        best, best_cost = _best_to_go(s, w, p, source, focus, penalties)
        if best < 0 or (best_cost >= 0 and fine):
            break
        length = go(s, w, length, best, source)
        if fine and not passable(s, penalties):
            # A glance does not see the move budget, devices, and all relations: this one was one too many.
            shift(s, best, target)
            length -= 1
            break
    return length


@inlined
def _best_to_go(s: SearchState, w: Chain, p: int, target: int, focus: int, penalties: Penalties) -> tuple[int, float]:
    """Return the best of a few pods that stand beside a pod and could go to a node, or -1; and what that would cost."""
    c, source = s.pod[p, P_CLASS], s.pod[p, P_NODE]
    best, best_cost = -1, 0.0
    for _ in range(LOOKS):
        other = on_node(s, w, source)
        e = s.pod[other, P_CLASS]
        if e == c or enterable(s, other, target) < 0:
            continue
        if not evaluate_delta(s, other, -1, source, target, w.change, penalties.most) or forbidden(
            s, e, -1, source, target
        ):
            continue
        worse = False
        for t in range(focus):
            worse = worse or w.change[t] > 0
        cost = penalized(s, w.change, focus, penalties)
        if not worse and (best < 0 or cost < best_cost):
            best, best_cost = other, cost
    return best, best_cost


@merged
def empty_node(s: SearchState, w: Chain, focus: int, penalties: Penalties) -> int:
    """Empty the emptiest of a few nodes."""
    nodes, pods = s.head[H_NODES], s.head[H_PODS]
    n = nodes
    for _ in range(4):
        other = s.pod[below(w.random, pods), P_NODE]
        if other < nodes and (n == nodes or s.fill[other] < s.fill[n]):
            n = other
    length = 0
    while n < nodes and 0 < s.width[n] <= LONGEST - length:
        p = s.on[s.on_at[n] + s.width[n] - 1]
        elsewhere = somewhere(s, w, p, focus, n, penalties)
        if elsewhere < 0 or s.width[elsewhere] == 0:
            break
        length = go(s, w, length, p, elsewhere)
    return length


@merged
def group(s: SearchState, w: Chain, p: int, target: int) -> int:
    """Move all pods of a relation that share a domain with a pod into the domain of another node."""
    c = s.pod[p, P_CLASS]
    first, end = s.cls[c, C_MEMBER], s.cls[c, C_MEMBER_END]
    nodes = s.head[H_NODES]
    length = 0
    q = s.member[first + below(w.random, end - first), 0] if end > first else -1
    old, new = -1, -1
    if q >= 0 and s.relation[q, R_KIND] != MOVE_PEAK:
        old, new = s.domain[s.relation[q, R_TOPOLOGY], s.pod[p, P_NODE]], s.domain[s.relation[q, R_TOPOLOGY], target]
    if old >= 0 and new >= 0 and old != new:
        topology = s.relation[q, R_TOPOLOGY]
        length = go(s, w, 0, p, target)
        for at in range(s.relation[q, R_PARTICIPANTS], s.relation[q, R_PARTICIPANTS_END]):
            participants = s.participants[at]
            pod = s.cls[participants, C_POD]
            while pod < s.head[H_PODS] and s.pod[pod, P_CLASS] == participants and length < LONGEST:
                here = s.pod[pod, P_NODE]
                if here < nodes and s.domain[topology, here] == old:
                    for _ in range(2 * s.relation[q, R_DOMAINS] + LOOKS):
                        n = open_node(s, w, pod)
                        if n >= 0 and s.domain[topology, n] == new and admits(s, s.pod[pod, P_CLASS], -1, n):
                            length = go(s, w, length, pod, n)
                            break
                pod += 1
    return length
