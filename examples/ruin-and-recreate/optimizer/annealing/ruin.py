"""Ruin and recreate: empty a few nodes, and put their pods back where they cost least."""

from __future__ import annotations

import random

import numpy as np

from stowplan.models.problem import Placement
from stowplan.optimizer.annealing.budgets import with_budgets_kept
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.moves import evaluate_delta, legal, place_all, shift
from stowplan.optimizer.annealing.kernel.screen import forbidden
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.annealing.state_builder import build_state, placement_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator

AT_ONCE = 3
"""Nodes that are emptied together."""

PATIENCE = 200
"""Attempts in a row without improvement after which to give up."""

ATTEMPTS_PER_SECOND = 100
"""Attempts that count as a second in deterministic mode."""


def ruin_and_recreate(evaluator: Evaluator, start: Placement, deadline: Deadline, seed: int = 0) -> Placement:
    """Improve a legal placement until nothing has helped for a while or time is up.

    Returns
    -------
    Placement
        A legal placement whose tiers are no worse.
    """
    state = build_state(with_budgets_kept(evaluator, start), start)
    nodes, tiers = int(state.head[at.H_NODES]), int(state.head[at.H_TIERS])
    rng = random.Random(seed)
    left = int(deadline.seconds * ATTEMPTS_PER_SECOND) if deadline.deterministic else None
    idle = 0
    while idle < PATIENCE and not deadline.over and left != 0:
        left = None if left is None else left - 1
        node_of, before = state.pod[:, at.P_NODE].copy(), state.value[:tiers].tolist()
        used = np.unique(node_of[node_of < nodes]).tolist()
        pods = np.flatnonzero(np.isin(node_of, rng.sample(used, min(AT_ONCE, len(used))))).tolist()
        emptied = node_of.copy()
        emptied[pods] = nodes
        place_all(state, emptied)
        rng.shuffle(pods)
        for p in pods:
            target = _cheapest(state, p)
            if target < nodes:
                shift(state, p, target)
        idle += 1
        if legal(state) and state.value[:tiers].tolist() < before:
            idle = 0
        else:
            place_all(state, emptied)
            place_all(state, node_of)
    return placement_of(state)


def _cheapest(state: SearchState, p: int) -> int:
    """Return the node where a pod without one costs least, or nowhere if none can take it."""
    nodes, tiers = int(state.head[at.H_NODES]), int(state.head[at.H_TIERS])
    c = int(state.pod[p, at.P_CLASS])
    best, least = nodes, None
    delta = np.zeros(tiers + 2, dtype=np.int64)
    for n in state.choice[state.cls[c, at.C_CHOICE] : state.cls[c, at.C_CHOICE_END]].tolist():
        has_slot = state.width[n] < state.on_at[n + 1] - state.on_at[n]
        if has_slot and evaluate_delta(state, p, -1, nodes, n, delta, 0) and not forbidden(state, c, -1, nodes, n):
            cost = delta[:tiers].tolist()
            if least is None or cost < least:
                best, least = n, cost
    return best
