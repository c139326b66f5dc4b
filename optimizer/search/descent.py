"""Descent: sweep over all pods with every kind of change until none helps."""

from __future__ import annotations

import random

import numpy as np

from models.arrays import Ints
from models.problem import Placement
from optimizer.control import Deadline
from optimizer.evaluate.evaluation import Judge
from optimizer.search.moves import evacuate, exchange, make_room, place, relocate
from optimizer.search.state import State

TRIALS_PER_SECOND = 1000
"""Trials that stand for a second where the answer must not depend on the clock."""

PARTNER_NODES = 32
"""Nodes on which a partner for an exchange is looked for."""

PARTNERS = 3
"""Exchanges that are tried for each pod."""

CROWDED = 24
"""Nodes that are tried when room has to be made for a pod."""


class Clock:
    """Counts trials and knows when to stop."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.trials = 0
        self.most = int(deadline.seconds * TRIALS_PER_SECOND) if deadline.deterministic else None

    @property
    def over(self) -> bool:
        """Count one trial; whether it was one too many."""
        self.trials += 1
        if self.most is not None and self.trials > self.most:
            return True
        return self.deadline.over


def descend(judge: Judge, start: Placement, deadline: Deadline, seed: int = 0) -> Placement:
    """Improve a legal placement until nothing helps or time is up.

    Returns
    -------
    Placement
        A legal placement whose tiers are no worse.
    """
    state = State(judge, start)
    clock = Clock(deadline)
    rng = random.Random(seed)
    improved = True
    while improved and not clock.over:
        improved = False
        for sweep in (_place_pending, _relocate_all, _exchange_all, _evacuate_all):
            improved |= sweep(state, clock, rng)
    return state.placement()


def _place_pending(state: State, clock: Clock, rng: random.Random) -> bool:
    """Place pods without a node: largest first, making room where there is none."""
    placed = False
    waiting = [c for c, missing in enumerate(state.unplaced) if missing]
    waiting.sort(key=lambda c: (state.urgency[c], -state.weights[c]))
    for attempt in (place, _squeeze_in):
        for c in waiting:
            while state.unplaced[c] and not clock.over and attempt(state, c):
                placed = True
    return placed


def _squeeze_in(state: State, c: int) -> bool:
    """Place a pod on a node from which others can be moved away, nearly empty ones first."""
    allowed = np.flatnonzero(state.allowed(c))
    if not len(allowed):
        return False
    lacking = np.zeros(len(allowed))
    for follower in state.capacities(c):
        short = follower.load[allowed] + follower.demand[c] - follower.room[allowed]
        lacking += np.maximum(0, short) / max(1.0, float(follower.room.mean()))
        lacking[follower.demand[c] > follower.room[allowed]] = np.inf
    order = np.argsort(lacking, kind="stable")[:CROWDED]
    return any(make_room(state, c, int(allowed[i])) for i in order if np.isfinite(lacking[i]))


def _entries(state: State, rng: random.Random) -> list[tuple[int, int]]:
    entries = [(c, n) for n, classes in enumerate(state.on) for c in classes]
    rng.shuffle(entries)
    return entries


def _relocate_all(state: State, clock: Clock, rng: random.Random) -> bool:
    moved = False
    for c, n in _entries(state, rng):
        while c in state.on[n] and not clock.over and relocate(state, c, n):
            moved = True
    return moved


def _exchange_all(state: State, clock: Clock, rng: random.Random) -> bool:
    curves = state.curves()
    if not curves:
        return False
    exchanged = False
    for c, n in _entries(state, rng):
        if clock.over:
            break
        if c in state.on[n]:
            exchanged |= _exchange_one(state, c, n)
    return exchanged


def _exchange_one(state: State, c: int, source: int) -> bool:
    """Exchange a pod with the partner that promises most, judged by load alone."""
    partners = _partners(state, c, source)
    if not len(partners):
        return False
    other, target = partners[:, 0], partners[:, 1]
    gain = np.zeros(len(partners), dtype=np.int64)
    for weight, meter in state.curves():
        demand = np.array(meter.demand)
        difference = demand[other] - demand[c]
        gain += weight * meter.change(np.full(len(partners), source), difference)
        gain += weight * meter.change(target, -difference)
    for follower in state.capacities(c):
        difference = np.array(follower.demand)[other] - follower.demand[c]
        fits = follower.load[source] + difference <= follower.room[source]
        fits &= follower.load[target] - difference <= follower.room[target]
        gain[~fits] = 0
    order = np.argsort(gain, kind="stable")[:PARTNERS]
    return any(gain[i] < 0 and exchange(state, c, source, int(other[i]), int(target[i])) for i in order)


def _partners(state: State, c: int, source: int) -> Ints:
    """``[i, 2]`` classes and nodes of pods on the nodes that suit a class best, whether there is room or not."""
    wanted = np.zeros(len(state.on), dtype=np.int64)
    for weight, meter in state.curves():
        wanted += weight * meter.marginal(c)
    nodes = np.flatnonzero(state.allowed(c))
    nodes = nodes[nodes != source]
    nodes = nodes[np.argsort(wanted[nodes], kind="stable")[:PARTNER_NODES]]
    found = [(other, n) for n in nodes.tolist() for other in state.on[n] if other != c]
    return np.array([(o, n) for o, n in found if state.allowed(o)[source]], dtype=np.int64).reshape(-1, 2)


def _evacuate_all(state: State, clock: Clock, rng: random.Random) -> bool:
    if not state.counts_nodes:
        return False
    emptied = False
    used = sorted((n for n in range(len(state.on)) if state.on[n]), key=lambda n: sum(state.on[n].values()))
    for n in used:
        if clock.over:
            break
        emptied |= evacuate(state, n)
    return emptied
