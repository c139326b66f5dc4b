"""The Metropolis algorithm over feasible placements: simulated annealing of one tier, the others in order.

N. Metropolis et al., "Equation of state calculations by fast computing machines" (1953); S. Kirkpatrick, C. Gelatt and
M. Vecchi, "Optimization by simulated annealing" (1983).
"""

from __future__ import annotations

from math import log

from stowplan.optimizer.annealing.kernel.chain import (
    Chain,
    Penalties,
    enterable,
    home_node,
    on_node,
    open_node,
    pick,
    related_pod,
)
from stowplan.optimizer.annealing.kernel.layout import C_COSTED, H_NODES, H_SCORES, H_TIERS, OVERLOAD, P_CLASS, P_NODE
from stowplan.optimizer.annealing.kernel.moves import evaluate_delta, legal, shift
from stowplan.optimizer.annealing.kernel.operators import (
    admissible,
    best_node,
    eject,
    empty_node,
    exchange_several,
    heavier_pod,
    move_group,
    move_pod,
    penalized,
)
from stowplan.optimizer.annealing.kernel.screen import forbidden, relation_costs
from stowplan.optimizer.annealing.kernel.state import Int64, SearchState
from stowplan.optimizer.compiled.jit import compiled, inlined, merged
from stowplan.optimizer.compiled.random import below, uniform

OPERATORS = 10
SHIFT, SWAP, EJECTION, INSERT, EMPTY_NODE, GROUP, HOME, RETURN, RELATED, TRADE = range(OPERATORS)


@compiled
def run_chain(
    s: SearchState, w: Chain, steps: int, focus: int, temperature: float, bias: float, penalties: Penalties
) -> None:
    """Take a number of steps of a Markov chain.

    Parameters
    ----------
    focus
        The tier to improve. Earlier tiers never get worse.
    temperature
        Temperature, in units of that tier.
    bias
        Temperature of the preference for fuller and emptier nodes that breaks ties; 0 for no preference.
    penalties
        Penalty weights, in units of that tier.
    """
    nodes, tiers = s.head[H_NODES], s.head[H_TIERS]
    for _ in range(steps):
        threshold = -temperature * log(uniform(w.random)) if temperature > 0 else 0.0
        tie_break = -bias * log(uniform(w.random)) if bias > 0 else -1.0
        draw = uniform(w.random)
        kind = 0
        while kind < OPERATORS - 1 and draw > w.mix[kind]:
            kind += 1
        p = pick(s, w)
        if s.pod[p, P_NODE] == nodes:
            kind = INSERT
        elif kind == INSERT and s.width[nodes]:
            p = s.on[s.on_at[nodes] + below(w.random, s.width[nodes])]
        elif kind == INSERT:
            kind = SHIFT
        for t in range(tiers + 1):
            w.before[t] = s.value[t]
        w.before[tiers + 1] = s.value[tiers + OVERLOAD]
        if kind == TRADE:
            p = heavier_pod(s, w, p)
        other = -1
        if kind == RELATED:
            other = related_pod(s, w, p)
            target = enterable(s, p, s.pod[other, P_NODE]) if other >= 0 else -1
        else:
            target = home_node(s, w.random, p) if kind in (HOME, RETURN) else open_node(s, w.random, p)
        if kind in (SWAP, RETURN) and target >= 0:
            other = on_node(s, w, target)
            if other < 0:
                continue
        if other >= 0 and s.pod[other, P_CLASS] == s.pod[p, P_CLASS]:
            continue
        if kind == INSERT:
            elsewhere = best_node(s, w, p, focus, -1, penalties)
            if elsewhere >= 0:
                target = elsewhere
            elif target >= 0 and s.width[target]:
                # No node has room: swap with another pod, or eject others.
                kind = EJECTION
                if uniform(w.random) < 0.5:
                    kind, other = SWAP, on_node(s, w, target)
        length = 0
        if kind == EMPTY_NODE:
            length = empty_node(s, w, focus, penalties)
        elif target < 0:
            continue
        elif kind == EJECTION:
            length = eject(s, w, p, target, focus, penalties)
        elif kind == GROUP:
            length = move_group(s, w, p, target)
        elif kind == TRADE:
            length = exchange_several(s, w, p, target, focus, penalties)
        elif _passes_screen(s, w, p, other, target, focus, threshold, tie_break, penalties):
            source = s.pod[p, P_NODE]
            length = move_pod(s, w, 0, p, target)
            if other >= 0:
                length = move_pod(s, w, length, other, source)
        if length:
            _accept_or_undo(s, w, length, focus, threshold, penalties)


@inlined
def _accepts(s: SearchState, change: Int64, focus: int, threshold: float, penalties: Penalties) -> bool:
    """Metropolis acceptance: whether a change of the tiers, with its penalties, is at most the drawn threshold."""
    tiers = s.head[H_TIERS]
    for t in range(focus):
        if change[t] != 0:
            return bool(change[t] < 0 and change[tiers + 1] <= 0)
    return bool(penalized(s, change, focus, penalties) <= threshold)


@inlined
def _mark_moved(s: SearchState, w: Chain, p: int) -> None:
    """Note that a pod has moved since the incumbent was recorded."""
    if not w.dirty_at[p]:
        w.dirty_at[p] = True
        w.dirty[w.counts[0]] = p
        w.counts[0] += 1


@compiled
def _record_incumbent(s: SearchState, w: Chain) -> None:
    """Record the placement if it is better than the incumbent."""
    tiers = s.head[H_TIERS]
    for t in range(tiers):
        if s.value[t] > w.best_value[t]:
            return
        if s.value[t] < w.best_value[t]:
            break
        if t == tiers - 1:
            return
    for t in range(tiers):
        w.best_value[t] = s.value[t]
    for i in range(w.counts[0]):
        p = w.dirty[i]
        w.best[p] = s.pod[p, P_NODE]
        w.dirty_at[p] = False
    w.counts[0] = 0


@merged
def _accept_or_undo(s: SearchState, w: Chain, length: int, focus: int, threshold: float, penalties: Penalties) -> None:
    """Keep the moves on the path if together they are admissible and accepted; undo them otherwise."""
    tiers = s.head[H_TIERS]
    if admissible(s, penalties):
        for t in range(tiers + 1):
            w.change[t] = s.value[t] - w.before[t]
        w.change[tiers + 1] = s.value[tiers + OVERLOAD] - w.before[tiers + 1]
        if _accepts(s, w.change, focus, threshold, penalties):
            for i in range(length):
                _mark_moved(s, w, w.path[i, 0])
            if legal(s):
                _record_incumbent(s, w)
            return
    for i in range(length - 1, -1, -1):
        shift(s, w.path[i, 0], w.path[i, 1])


@merged
def _passes_screen(
    s: SearchState,
    w: Chain,
    p: int,
    other: int,
    target: int,
    focus: int,
    threshold: float,
    tie_break: float,
    penalties: Penalties,
) -> bool:
    """Screen the move of a pod to a node, in exchange for another pod or not, by its change of cost."""
    source, c = s.pod[p, P_NODE], s.pod[p, P_CLASS]
    e = s.pod[other, P_CLASS] if other >= 0 else -1
    if not evaluate_delta(s, p, other, source, target, w.change, penalties.most) or forbidden(s, c, e, source, target):
        return False
    unsure = _has_violation(s) or (e >= 0 and s.head[H_SCORES] > 0)
    if s.cls[c, C_COSTED] or (e >= 0 and s.cls[e, C_COSTED]):
        unsure = not relation_costs(s, c, e, source, target, w.change) or unsure
    if w.change[focus] > 0:
        w.uphill[w.counts[1] % len(w.uphill)] = w.change[focus]
        w.counts[1] += 1
    if unsure:
        return True
    if not _accepts(s, w.change, focus, threshold, penalties):
        return False
    if tie_break < 0 or source == s.head[H_NODES] or w.change[focus] != 0:
        return True
    mine = s.weight[c] - (s.weight[e] if e >= 0 else 0.0)
    return bool(-mine * (s.fill[target] - s.fill[source] + mine) <= tie_break)


@inlined
def _has_violation(s: SearchState) -> bool:
    """Whether a constraint violation may add to a tier."""
    exceeds = False
    for t in range(s.head[H_TIERS]):
        exceeds = exceeds or bool(s.violation_weight[t] and s.value[t] != 0)
    return exceeds
