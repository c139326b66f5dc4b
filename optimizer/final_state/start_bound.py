"""A bound of a cost of the final state from where pods are: what it costs at least today, less what moves can save.

It has no multipliers, and reads what plugins cost at least for some classes at a time. So it serves where tables of all
classes and nodes would take too long or too much memory, and is sharp where few pods may move.

Each pod on a node with ``k`` pods costs ``h + Σ q`` beside what it costs alone, for amounts ``q`` of all pods there.
As long as none of that is negative, the first one to leave saves ``h + Σ q + (k − 1)·q``, others save no more than if
they had been the first, and one that comes costs at least ``h + q``. Of a plugin of which some is negative, nodes that
no pod leaves or comes to cost what they cost today, and others nothing at least: no pod misses less than no points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import FinalCost, Part, Placement, Problem
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.final_state.bound import SAFETY

PAIRS_AT_ONCE = 1_000_000
"""Pairs of a class and a node whose parts are read at a time."""


class _Beside:
    """What pods on a node cost each other by one plugin.

    Parameters
    ----------
    start
        Where pods are.
    signed
        See `Part`.

    Attributes
    ----------
    amount
        ``[e]`` what a pod of each entry of the start costs each pod on its node.
    held
        ``[n]`` what each pod on a node costs beside that.
    least
        ``[c]`` the least that one pod alone on a node costs.
    """

    def __init__(self, start: Placement, classes: int, nodes: int, *, signed: bool) -> None:
        self.amount, self.held, self.least = np.zeros(len(start.cls)), np.zeros(nodes), np.zeros(classes)
        self.signed = signed

    def read(self, part: Part, classes: range, entries: slice, start: Placement) -> None:
        """Take over some classes."""
        crowding = np.zeros_like(part.table) if part.crowding is None else part.crowding
        self.held = self.held if part.held is None else part.held
        self.amount[entries] = crowding[start.cls[entries] - classes.start, start.node[entries]]
        self.least[classes] = (crowding + self.held).min(axis=1)

    def crowd(self, start: Placement) -> Floats:
        """``[n]`` what each pod on a node costs at the start."""
        found: Floats = self.held + np.bincount(start.node, start.count * self.amount, len(self.held))
        return found


@dataclass(slots=True, eq=False)
class _Today:
    """What plugins cost at least, as far as classes have been read.

    Parameters
    ----------
    alone
        ``[e]`` what a pod of each entry of the start costs by itself.
    resting
        ``[c]`` what a class costs beside all that if none of its pods moves.
    anywhere, missing
        ``[c]`` what a pod costs by itself wherever it goes, and without a node.
    beside
        By plugin, what pods cost each other.
    whole
        Whether all classes have been read.
    """

    alone: Floats
    resting: Floats
    anywhere: Floats
    missing: Floats
    beside: dict[str, _Beside]
    whole: bool


def start_bound(
    problem: Problem,
    final: FinalCost,
    move: Ints,
    upper: NDArray[np.int32],
    deadline: Deadline,
    *,
    resting: bool = True,
) -> int:
    """Return a lower bound of a cost of the final state, with what moves cost.

    Classes that there is no time to read count as if they cost nothing, and then so do all plugins by which they could
    make others cost less.

    Parameters
    ----------
    move
        ``[c]`` cost of a pod that leaves its node.
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    resting
        Whether to ask what classes cost that rest, which takes as long as all else.
    """
    today = _read(problem, final, upper, deadline, resting=resting)
    start, limit, (classes, nodes) = problem.start, problem.move_limit, problem.shape
    pods, waiting = start.per_node(nodes), problem.size - start.placed(classes)
    plain = [one for one in today.beside.values() if not one.signed]
    crowd = sum((one.crowd(start) for one in plain), np.zeros(nodes))
    amount = sum((one.amount for one in plain), np.zeros(len(start.cls)))
    elsewhere = np.minimum(today.missing, sum((one.least for one in plain), today.anywhere))
    cost = float((start.count * today.alone).sum() + (pods * crowd).sum() + today.resting.sum())
    saved = today.alone + crowd[start.node] + (pods[start.node] - 1) * amount - (move + elsewhere)[start.cls]
    saving = _most_saved(start, saved, today.resting, limit)
    for one in today.beside.values():
        if one.signed and today.whole:
            by_node = np.sort(np.maximum(0.0, pods * one.crowd(start)))[::-1]
            cost += float(by_node.sum())
            saving += float(by_node[: nodes if limit is None else 2 * limit + int(waiting.sum())].sum())
    # Where all may move, what each pod costs if it were alone on its node may prove more.
    held = sum((one.held for one in plain), np.zeros(nodes))
    cheapest = np.minimum(elsewhere[start.cls], today.alone + held[start.node] + amount)
    placed = max(cost - saving, float((start.count * cheapest).sum()))
    pending = float((waiting * elsewhere).sum())
    return max(0, math.ceil(placed + pending - SAFETY * (cost + saving + pending)))


def _read(problem: Problem, final: FinalCost, upper: NDArray[np.int32], deadline: Deadline, *, resting: bool) -> _Today:
    start, (classes, nodes) = problem.start, problem.shape
    by_class = np.zeros((3, classes))
    today = _Today(np.zeros(len(start.cls)), by_class[0], by_class[1], by_class[2], {}, whole=False)
    at_once = max(1, PAIRS_AT_ONCE // max(1, nodes))
    for some, parts in final.relaxations(start, problem.move_limit if resting else None, at_once):
        if deadline.over:
            return today
        entries = slice(*np.searchsorted(start.cls, (some.start, some.stop)))
        table, missing = np.zeros((len(some), nodes)), np.zeros(len(some))
        for part in parts:
            table, missing = table + part.table, missing + part.missing
            if part.resting is not None:
                today.resting[some] += part.resting
            if part.crowding is not None or part.held is not None:
                if part.name not in today.beside:
                    today.beside[part.name] = _Beside(start, classes, nodes, signed=part.signed)
                today.beside[part.name].read(part, some, entries, start)
        today.alone[entries] = table[start.cls[entries] - some.start, start.node[entries]]
        today.anywhere[some] = np.where(upper[some] > 0, table, np.inf).min(axis=1, initial=np.inf)
        today.missing[some] = missing
    today.whole = True
    return today


def _most_saved(start: Placement, saved: Floats, resting: Floats, limit: int | None) -> float:
    """Return the most that moves save.

    Parameters
    ----------
    saved
        ``[e]`` by a pod of each entry.
    resting
        ``[c]`` by the first pod of each class that moves, beside that.
    """
    order = np.lexsort((-saved, start.cls))
    first = order[np.unique(start.cls[order], return_index=True)[1]]
    others = start.count.copy()
    others[first] -= 1
    value = np.concatenate([saved[first] + resting[start.cls[first]], saved])
    pods = np.concatenate([np.ones(len(first), dtype=np.int64), others])
    order = np.argsort(-value)
    value, pods = np.maximum(0.0, value[order]), pods[order]
    if limit is not None:
        pods = np.diff(np.minimum(np.cumsum(pods), limit), prepend=0)
    return float((value * pods).sum())
