"""What a placement can be changed by. Every change is kept only if it makes the tiers better, in their order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optimizer.search.state import State, Values


def keep_if_better(state: State, change: Callable[[], bool], before: Values | None = None) -> bool:
    """Try a change: keep it if it succeeds, is legal, and improves the tiers; otherwise undo it."""
    before = state.values() if before is None else before
    mark = state.mark()
    if change() and state.values() < before and state.legal(state.touched(mark)):
        return True
    state.undo(mark)
    return False


def relocate(state: State, c: int, source: int) -> bool:
    """Move one pod of a class from a node to the best other one."""
    return keep_if_better(state, lambda: _shift_to_best(state, c, source))


def _shift_to_best(state: State, c: int, source: int) -> bool:
    """Take one pod of a class off a node and put it on the best other one; ``False`` leaves it without a node."""
    state.shift(c, source, -1)
    mask = state.open_to(c)
    mask[source] = False
    target = state.best(c, mask)
    if target is None:
        return False
    state.shift(c, target, 1)
    return True


def place(state: State, c: int) -> bool:
    """Give a pod that has no node the best one."""

    def change() -> bool:
        target = state.best(c, state.open_to(c))
        if target is None:
            return False
        state.shift(c, target, 1)
        return True

    return keep_if_better(state, change)


def exchange(state: State, c: int, source: int, other: int, target: int) -> bool:
    """Let one pod of a class and one of another change nodes."""

    def change() -> bool:
        state.shift(c, source, -1)
        state.shift(other, target, -1)
        if not state.open_to(c)[target]:
            return False
        state.shift(c, target, 1)
        if not state.open_to(other)[source]:
            return False
        state.shift(other, source, 1)
        return True

    return keep_if_better(state, change)


def make_room(state: State, c: int, target: int, most: int = 32) -> bool:
    """Put a pod on a node after moving up to ``most`` others off it to wherever they cost least."""

    def change() -> bool:
        for _ in range(most):
            if state.open_to(c)[target]:
                state.shift(c, target, 1)
                return True
            if not _make_way(state, c, target):
                return False
        return False

    return keep_if_better(state, change)


def _make_way(state: State, c: int, target: int) -> bool:
    """Move one pod off a node: the one that takes most of what is short there and has somewhere to go."""
    for other in _in_the_way(state, c, target):
        state.shift(other, target, -1)
        mask = state.open_to(other)
        mask[target] = False
        elsewhere = state.best(other, mask)
        if elsewhere is not None:
            state.shift(other, elsewhere, 1)
            return True
        state.shift(other, target, 1)
    return False


def _in_the_way(state: State, c: int, target: int) -> list[int]:
    """Return the other classes on a node, those first that take most of what a pod of class ``c`` lacks there.

    If nothing is short, company is in the way: then every other class is a candidate, small ones first.
    """
    others = [other for other in state.on[target] if other != c]
    relief = dict.fromkeys(others, 0.0)
    short = False
    for follower in state.capacities(c):
        missing = follower.load[target] + follower.demand[c] - follower.room[target]
        if missing > 0:
            short = True
            for other in others:
                relief[other] += min(1.0, follower.demand[other] / missing)
    if not short:
        return _by_size(state, others)
    return sorted((other for other in others if relief[other]), key=lambda other: -relief[other])


def evacuate(state: State, n: int) -> bool:
    """Empty a node, largest pods first; worth it only where that is better than before."""

    def change() -> bool:
        for c in reversed(_by_size(state, list(state.on[n]))):
            while state.on[n].get(c, 0):
                if not _shift_to_best(state, c, n):
                    return False
        return True

    return keep_if_better(state, change)


def _by_size(state: State, classes: list[int]) -> list[int]:
    """Sort classes from small to large by what they take of a node."""
    return [classes[i] for i in np.argsort(state.weights[classes], kind="stable")]
