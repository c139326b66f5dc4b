"""Insertion of pods without a node, each where it costs the first tiers least."""

from __future__ import annotations

from itertools import islice

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import NOWHERE, Placement, Problem, Unplaced
from stowplan.optimizer.constructive.marginal import marginals, total_rise
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline


def insert(state: State, deadline: Deadline, parameters: ConstructiveParameters) -> int:
    """Place pods that have no node, those that cost the first tiers most first, and return how many were placed.

    Parameters
    ----------
    state
        The placement, which is changed in place.
    """
    problem, steps = state.problem, parameters.steps
    waiting = waiting_classes(problem, state.placement)
    if not waiting:
        return 0
    split = [marginals(problem, tier, state.placement) for tier in problem.tiers]
    terms = [[*local, *relational] for local, relational in split if local or relational]
    every, placed = np.arange(state.nodes), 0
    for c, missing in waiting:
        for _ in range(missing):
            if deadline.over or steps <= 0:
                return placed
            steps -= 1
            nodes = every[state.fits(np.array([c]), every)[0]]
            costs = [total_rise(tier, np.array([[c]]), nodes, 1)[0] for tier in terms]
            order = nodes[np.lexsort(costs[::-1])] if costs else nodes
            target = next(
                (n for n in islice(order.tolist(), parameters.insertion_trials) if state.legal(c, NOWHERE, n)), None
            )
            if target is None:
                break  # the other pods of the class are alike
            state.shift(c, NOWHERE, target)
            for tier in terms:
                for term in tier:
                    term.shift(c, target, 1)
            placed += 1
    return placed


def waiting_classes(problem: Problem, placement: Placement) -> list[tuple[int, int]]:
    """Return the classes with pods without a node, and how many; those that cost the first tiers most come first."""
    missing, worth = problem.size - placement.placed(len(problem.classes)), _worth(problem)
    if not len(worth):
        return []
    return [(c, int(missing[c])) for c in np.lexsort(-worth[::-1]).tolist() if missing[c] > 0 and worth[:, c].any()]


def _worth(problem: Problem) -> Ints:
    """``[t, c]`` what a tier saves if a pod of a class is placed, for each tier that counts unplaced pods."""
    rows = [
        sum(weighted.weight * weighted.term.cost for weighted in tier.terms if isinstance(weighted.term, Unplaced))
        for tier in problem.tiers
        if any(isinstance(weighted.term, Unplaced) for weighted in tier.terms)
    ]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(problem.classes))
