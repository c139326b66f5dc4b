"""Emptying of nodes: the pods of one node after another, each to the tightest node in use that takes it."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Open, Tier
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline


def costs_of_nodes(tier: Tier, nodes: int) -> Ints:
    """``[n]`` what a tier saves if the pods of the problem leave a node."""
    saved = np.zeros(nodes, dtype=np.int64)
    for weighted in tier.terms:
        if isinstance(weighted.term, Open):
            saved += np.where(weighted.term.held == 0, weighted.weight * weighted.term.cost, 0)
    return saved


def empty_nodes(state: State, tier: int, deadline: Deadline, parameters: ConstructiveParameters) -> int:
    """Empty nodes that a tier counts, those with the fewest pods for their cost first, and return how many.

    A node is left as it was if one of its pods finds no other node, or if the moves do not suffice.

    Parameters
    ----------
    state
        The placement, which is changed in place.
    """
    saved = costs_of_nodes(state.problem.tiers[tier], state.nodes)
    waiting = (saved > 0) & (state.pods > 0)
    emptied, steps = 0, parameters.emptying_steps
    while waiting.any() and steps > 0 and not deadline.over:
        candidates = np.flatnonzero(waiting)
        # Pods that came from elsewhere are counted too: they have to find a place like the others.
        source = int(candidates[(state.pods[candidates] / saved[candidates]).argmin()])
        waiting[source] = False
        done, tried = _empty(state, source, parameters.emptying_trials)
        steps -= tried
        emptied += done
    return emptied


def _empty(state: State, source: int, trials: int) -> tuple[bool, int]:
    """Empty a node if that is possible; also return how many pods were moved to find out."""
    here = np.flatnonzero(state.placement.node == source)
    pods = sorted(
        zip(state.placement.cls[here].tolist(), state.placement.count[here].tolist(), strict=True),
        key=lambda entry: (-state.size(entry[0]), entry[0]),
    )
    moved: list[tuple[int, int]] = []
    if sum(k for _, k in pods) > state.left:
        away = sum(min(k, k - state.arrived(c, source)) for c, k in pods)
        if away > state.left:
            return False, 1
    for c, count in pods:
        for _ in range(count):
            target = state.tightest(c, source, np.flatnonzero(state.pods > 0), trials)
            if target is None:
                for other, at in reversed(moved):
                    state.shift(other, at, source)
                return False, 1 + len(moved)
            state.shift(c, source, target)
            moved.append((c, target))
    return True, 1 + len(moved)
