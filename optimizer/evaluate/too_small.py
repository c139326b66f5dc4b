"""Nodes that are too small for a pod of a class, whatever else is on them: no search needs to try those."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import Capacity, Problem

AT_ONCE = 1 << 22
"""Pairs of a class and a node that are looked at in one go."""


def too_small(problem: Problem) -> Iterator[tuple[int, Bools]]:
    """Yield each class for which some node is too small, and ``[N]`` whether a node is.

    Pods that started on a node hold what stays charged there wherever they go, and so leave no room for others. Pods of
    a class may come back where it started.
    """
    large = np.flatnonzero(_somewhere_too_large(problem))
    step = max(1, AT_ONCE // max(1, len(problem.nodes)))
    for first in range(0, len(large), step):
        cls = large[first : first + step]
        yield from zip(cls.tolist(), _too_small(problem, cls), strict=True)


def _somewhere_too_large(problem: Problem) -> Bools:
    found = np.zeros(len(problem.classes), dtype=np.bool_)
    for rule, room in _rooms(problem):
        found |= (rule.demand > 0) & (rule.demand > room.min(initial=np.iinfo(np.int64).max))
    return found


def _too_small(problem: Problem, cls: Ints) -> Bools:
    """``[K, N]`` whether a node is too small for a pod of each given class."""
    found = np.zeros((len(cls), len(problem.nodes)), dtype=np.bool_)
    for rule, room in _rooms(problem):
        asked = rule.demand[cls][:, None]
        found |= (asked > 0) & (asked > room[None, :])  # who asks for nothing may come where all is taken
    start = problem.start
    position = np.full(len(problem.classes), -1, dtype=np.int64)
    position[cls] = np.arange(len(cls))
    there = position[start.cls] >= 0
    found[position[start.cls[there]], start.node[there]] = False
    return found


def _rooms(problem: Problem) -> Iterator[tuple[Capacity, Ints]]:
    """Yield the capacities in which no pod makes room, each with ``[N]`` the most that one pod can ask for."""
    for rule in problem.plain_capacities:
        room = np.maximum(0, rule.free)
        if rule.held_on_source:
            room -= problem.start.per_node(len(problem.nodes), rule.demand)
        yield rule, room
