"""Domains of the counting variables: how many pods of a class a node can hold at most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    GroupMoveBudget,
    MoveBudget,
    Occupy,
    Problem,
    Repel,
    Rule,
    Spread,
)

NONE = -1

ENTRIES_AT_ONCE = 250_000
"""Entries of a table that are computed at a time, so that temporary tables stay in a processor's cache."""


def upper_bounds(
    problem: Problem,
    classes: Ints | None = None,
    nodes: Ints | None = None,
    rules: Iterable[Rule] | None = None,
) -> NDArray[np.int32]:
    """``[class, node]`` the most pods of each class that a node can hold by itself.

    Where a rule is violated at the start, the pods there may stay.

    Parameters
    ----------
    classes, nodes
        Which rows and columns to compute, sorted; all of them if not given.
    rules
        Those that name any of the classes; all of them if not given.
    """
    classes = np.arange(len(problem.classes), dtype=np.int64) if classes is None else classes
    nodes = np.arange(len(problem.nodes), dtype=np.int64) if nodes is None else nodes
    row = np.full(len(problem.classes), NONE, dtype=np.int64)
    row[classes] = np.arange(len(classes))
    upper = np.empty((len(classes), len(nodes)), dtype=np.int32)
    upper[:] = problem.size[classes][:, None]
    every = problem.pods

    def fit(room: Ints, demand: Ints) -> None:
        """Limit classes to as many pods as their demand fits into the room."""
        asking = np.flatnonzero(demand[classes] > 0)
        amount, which = np.unique(demand[classes[asking]], return_inverse=True)
        times = np.minimum(np.maximum(0, room[nodes]) // amount[:, None], every).astype(np.int32)
        rows = max(1, ENTRIES_AT_ONCE // max(1, len(nodes)))
        for some in np.split(np.arange(len(asking)), range(rows, len(asking), rows)):
            upper[asking[some]] = np.minimum(upper[asking[some]], times[which[some]])

    for rule in problem.rules if rules is None else rules:
        match rule:
            case Allow():
                for mask in np.unique(rule.row[classes]).tolist():
                    closed = np.flatnonzero(~rule.mask[mask, nodes])
                    upper[np.ix_(rule.row[classes] == mask, closed)] = 0
            case Capacity():
                # Pods of negative demand free capacity: at most all of them, on one node.
                made = int((np.maximum(0, -rule.demand) * problem.size).sum())
                fit(np.maximum(0, rule.free) + made, rule.demand)
            case Distinct():
                fit(rule.limit, rule.own)
            case Devices():
                # Whole devices cannot be shared; shares have to fit the room that is left, and a device at a time.
                fit(rule.count - rule.held_whole, rule.whole)
                for _, demand, free in rule.sums:
                    fit(free, demand)
                for part in np.unique(rule.part[classes][rule.part[classes] > 0]).tolist():
                    alike = np.where(rule.part == part, 1, 0)
                    fit(np.maximum(0, rule.count - rule.held_whole) * (rule.size // part), alike)
            case AtMost():
                inside = np.flatnonzero(rule.topology.domain[nodes] >= 0)
                room = np.maximum(0, rule.limit - rule.held[rule.topology.domain[nodes[inside]]])
                _lower(upper, row[rule.group], inside, room)
            case Repel():
                inside = np.flatnonzero(rule.topology.domain[nodes] >= 0)
                _lower(upper, row[np.intersect1d(rule.seekers, rule.targets)], inside, np.ones_like(inside))
            case Attract() | Spread() | Occupy() | MoveBudget() | GroupMoveBudget():
                pass  # they depend on other pods, not on the node alone
            case _:
                assert_never(rule)
    start = problem.start
    column = np.full(len(problem.nodes), NONE, dtype=np.int64)
    column[nodes] = np.arange(len(nodes))
    here = (row[start.cls] >= 0) & (column[start.node] >= 0)
    at = row[start.cls[here]], column[start.node[here]]
    upper[at] = np.maximum(upper[at], start.count[here])
    return upper


def _lower(upper: NDArray[np.int32], rows: Ints, columns: Ints, room: Ints) -> None:
    most = np.full(upper.shape[1], np.iinfo(np.int32).max, dtype=np.int32)
    most[columns] = np.minimum(room, most[columns])
    for row in rows[rows >= 0].tolist():
        np.minimum(upper[row], most, out=upper[row])
