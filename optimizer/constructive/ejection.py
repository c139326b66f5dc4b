"""Ejection: room for a pod without a node, by sending the fewest pods of one node to other nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.models.problem import NOWHERE
from stowplan.optimizer.constructive.insertion import waiting_classes
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline


@dataclass(frozen=True, slots=True)
class _Ejection:
    """The classes of the pods that have to leave a node, and what they are in size together."""

    node: int
    leavers: tuple[int, ...]
    size: int

    @property
    def effort(self) -> tuple[int, int]:
        """Fewer pods come first, then smaller ones."""
        return len(self.leavers), self.size


def make_room(state: State, deadline: Deadline, parameters: ConstructiveParameters) -> int:
    """Place pods for which no node has room, those that cost the first tiers most first; return how many were placed.

    Parameters
    ----------
    state
        The placement, which is changed in place.
    """
    placed, left = 0, parameters.ejecting_pods
    for c, missing in waiting_classes(state.problem, state.placement):
        for _ in range(missing):
            if deadline.over or left <= 0 or state.left <= 0:
                return placed
            left -= 1
            if not _placed(state, c, parameters):
                break  # the other pods of the class are alike
            placed += 1
    return placed


def _placed(state: State, c: int, parameters: ConstructiveParameters) -> bool:
    """Place one pod of a class if room can be made for it."""
    found = [_ejection(state, c, n) for n in np.flatnonzero(state.allowed(c)).tolist()]
    possible = sorted((one for one in found if one is not None and one.leavers), key=lambda one: one.effort)
    return any(_eject(state, c, one, parameters) for one in possible[: parameters.ejecting_trials])


def _ejection(state: State, c: int, n: int) -> _Ejection | None:
    """Return the pods that have to leave a node for one of a class, or ``None`` if that is not enough.

    Greedy: the pod that covers most of what is missing, resource by resource, leaves first.
    """
    missing = state.missing(c, n)
    here = np.flatnonzero(state.placement.node == n)
    cls, count = state.placement.cls[here], state.placement.count[here].copy()
    leavers: list[int] = []
    while (missing > 0).any():
        short = missing > 0
        covered = np.minimum(state.demands(cls)[short], missing[short][:, None]) / missing[short][:, None]
        worth = np.where(count > 0, covered.sum(axis=0), 0.0)
        if not len(worth) or worth.max() <= 0:
            return None
        # Of pods that cover as much, the smallest has to find another node.
        best = max(range(len(cls)), key=lambda i: (worth[i], -state.size(int(cls[i]))))
        count[best] -= 1
        leavers.append(int(cls[best]))
        missing = missing - state.demands(cls[[best]])[:, 0]
    for leaver in sorted(leavers, key=state.size):
        back = missing + state.demands(np.array([leaver]))[:, 0]
        if (back <= 0).all():
            leavers.remove(leaver)
            missing = back
    return _Ejection(n, tuple(leavers), sum(state.size(leaver) for leaver in leavers))


def _eject(state: State, c: int, ejection: _Ejection, parameters: ConstructiveParameters) -> bool:
    """Send pods to the tightest other nodes that take them, and place the pod; undo everything if one finds none."""
    n, moved = ejection.node, list[tuple[int, int]]()
    for leaver in sorted(ejection.leavers, key=state.size, reverse=True):
        target = state.tightest(leaver, n, np.arange(state.nodes), parameters.emptying_trials)
        if target is None:
            break
        state.shift(leaver, n, target)
        moved.append((leaver, target))
    else:
        if state.fits(np.array([c]), np.array([n]))[0, 0] and state.legal(c, NOWHERE, n):
            state.shift(c, NOWHERE, n)
            return True
    for leaver, target in reversed(moved):
        state.shift(leaver, target, n)
    return False
