"""Move operators of several pods: ejection, exchange of one for several, emptying a node, moving a group."""

from __future__ import annotations

from stowplan.optimizer.annealing.kernel.chain import LONGEST, TRIALS, Chain, Penalties, enterable, on_node, open_node
from stowplan.optimizer.annealing.kernel.layout import (
    C_MEMBER,
    C_MEMBER_END,
    C_POD,
    H_MOVE_LIMIT,
    H_NODES,
    H_PODS,
    H_TIERS,
    ILLEGAL,
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
from stowplan.optimizer.annealing.kernel.moves import evaluate_delta, fits, shift
from stowplan.optimizer.annealing.kernel.screen import forbidden
from stowplan.optimizer.annealing.kernel.state import Int64, SearchState
from stowplan.optimizer.compiled.jit import compiled, inlined, merged
from stowplan.optimizer.compiled.random import below

TRADED = 16
"""Pods that one pod is exchanged for at most."""


@inlined
def penalized(s: SearchState, change: Int64, focus: int, penalties: Penalties) -> float:
    """Return the penalized change of cost: that of the tier, of the capacity that moves hold, and of the overload."""
    tiers = s.head[H_TIERS]
    return float(change[focus] + penalties.held * change[tiers] + penalties.overload * change[tiers + 1])


@inlined
def admissible(s: SearchState, penalties: Penalties) -> bool:
    """Whether the chain may continue from here: nothing is illegal but penalized overload."""
    tiers = s.head[H_TIERS]
    wrong = s.value[tiers + ILLEGAL] - (s.value[tiers + OVERLOADED] if penalties.most else 0)
    return bool(wrong == 0 and s.value[tiers + MOVED] <= s.head[H_MOVE_LIMIT])


@merged
def move_pod(s: SearchState, w: Chain, length: int, p: int, target: int) -> int:
    """Move a pod as part of a step; return the new length of the step's path."""
    w.path[length, 0] = p
    w.path[length, 1] = s.pod[p, P_NODE]
    shift(s, p, target)
    return length + 1


@compiled
def best_node(s: SearchState, w: Chain, p: int, focus: int, avoid: int, penalties: Penalties) -> int:
    """Return the best of a few random open nodes on which a pod fits, or -1."""
    c, source = s.pod[p, P_CLASS], s.pod[p, P_NODE]
    best, best_cost, best_fill = -1, 0.0, 0.0
    for _ in range(TRIALS):
        n = open_node(s, w.random, p)
        if n < 0 or n == avoid:
            continue
        if not evaluate_delta(s, p, -1, source, n, w.change, penalties.most) or forbidden(s, c, -1, source, n):
            continue
        cost = penalized(s, w.change, focus, penalties)
        if best < 0 or cost < best_cost or (cost == best_cost and s.fill[n] > best_fill):
            best, best_cost, best_fill = n, cost, s.fill[n]
    return best


@merged
def eject(s: SearchState, w: Chain, p: int, target: int, focus: int, penalties: Penalties) -> int:
    """Move a pod to a node and eject others from it, up to three, each to the best of a few nodes."""
    length = move_pod(s, w, 0, p, target)
    for _ in range(3):
        other = on_node(s, w, target)
        if other == p:
            continue
        elsewhere = best_node(s, w, other, focus, target, penalties)
        if elsewhere < 0:
            continue
        length = move_pod(s, w, length, other, elsewhere)
        if admissible(s, penalties):
            break
    return length


@inlined
def heavier_pod(s: SearchState, w: Chain, p: int) -> int:
    """Return the larger of a pod and a random placed one, by their share of an average node's capacities."""
    q = below(w.random, s.head[H_PODS])
    if s.pod[q, P_NODE] < s.head[H_NODES] and s.weight[s.pod[q, P_CLASS]] > s.weight[s.pod[p, P_CLASS]]:
        return q
    return p


@merged
def exchange_several(s: SearchState, w: Chain, p: int, target: int, focus: int, penalties: Penalties) -> int:
    """Move a pod to a node, and others from there to the node it left while the best of a few candidates improves.

    While the node is overloaded, the candidate that costs least moves. The step is given up at once where a relation
    forbids the pod on the node as it is, even if it would be allowed after the exchange.
    """
    source = s.pod[p, P_NODE]
    if forbidden(s, s.pod[p, P_CLASS], -1, source, target):
        return 0
    length = move_pod(s, w, 0, p, target)
    for _ in range(TRADED):
        fine = admissible(s, penalties)
        best, best_cost = _best_to_go(s, w, p, source, focus, penalties)
        if best < 0 or (best_cost >= 0 and fine):
            break
        length = move_pod(s, w, length, best, source)
        if fine and not admissible(s, penalties):
            # The delta evaluation ignores the move budget, devices and some relations: this move was one too many.
            shift(s, best, target)
            length -= 1
            break
    return length


@inlined
def _best_to_go(s: SearchState, w: Chain, p: int, target: int, focus: int, penalties: Penalties) -> tuple[int, float]:
    """Return the best of a few pods on a pod's node that fit on another node, or -1; and the change of cost."""
    c, source = s.pod[p, P_CLASS], s.pod[p, P_NODE]
    best, best_cost = -1, 0.0
    for _ in range(TRIALS):
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
    """Move all pods off the emptiest of a few random nodes."""
    nodes, pods = s.head[H_NODES], s.head[H_PODS]
    n = nodes
    for _ in range(4):
        other = s.pod[below(w.random, pods), P_NODE]
        if other < nodes and (n == nodes or s.fill[other] < s.fill[n]):
            n = other
    length = 0
    while n < nodes and 0 < s.width[n] <= LONGEST - length:
        p = s.on[s.on_at[n] + s.width[n] - 1]
        elsewhere = best_node(s, w, p, focus, n, penalties)
        if elsewhere < 0 or s.width[elsewhere] == 0:
            break
        length = move_pod(s, w, length, p, elsewhere)
    return length


@merged
def move_group(s: SearchState, w: Chain, p: int, target: int) -> int:
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
        length = move_pod(s, w, 0, p, target)
        for at in range(s.relation[q, R_PARTICIPANTS], s.relation[q, R_PARTICIPANTS_END]):
            member = s.participants[at]
            pod = s.cls[member, C_POD]
            while pod < s.head[H_PODS] and s.pod[pod, P_CLASS] == member and length < LONGEST:
                here = s.pod[pod, P_NODE]
                if here < nodes and s.domain[topology, here] == old:
                    for _ in range(2 * s.relation[q, R_DOMAINS] + TRIALS):
                        n = open_node(s, w.random, pod)
                        if n >= 0 and s.domain[topology, n] == new and fits(s, s.pod[pod, P_CLASS], -1, n):
                            length = move_pod(s, w, length, pod, n)
                            break
                pod += 1
    return length
