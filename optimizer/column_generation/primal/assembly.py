"""From counts of patterns to a placement: which node gets which pattern, and which classes of a kind."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement, Problem
from stowplan.optimizer.column_generation.device_shares import fits_devices
from stowplan.optimizer.column_generation.master.restricted import PatternPool
from stowplan.optimizer.column_generation.structure import Structure


def assemble(problem: Problem, structure: Structure, pool: PatternPool, count: Ints, near: Placement) -> Placement:
    """Return a placement that uses each pattern ``count[p]`` times, as close to another placement as is easily found.

    Pods that patterns cover too often are left out; nodes with room take pods that no pattern covers.
    """
    wanted = _nodes(structure, pool, count, structure.patterns(near))
    _trim(structure, wanted)
    _fill(structure, wanted)
    return _classes(problem, structure, wanted, near)


def _nodes(structure: Structure, pool: PatternPool, count: Ints, now: Ints) -> Ints:
    """``[n, k]`` assign every pattern to the most similar nodes of its group."""
    wanted = np.zeros_like(now)
    for g in range(structure.groups):
        free = np.flatnonzero(structure.group == g)
        used = np.flatnonzero((pool.group == g) & (count[: pool.size] > 0))
        # The largest patterns are assigned first, each to as many nodes as it is used on.
        for p in used[np.argsort(-pool.pattern[used].sum(axis=1, dtype=np.int64), kind="stable")].tolist():
            row = pool.pattern[p].astype(np.int64)
            alike = np.minimum(now[free], row).sum(axis=1)
            best = np.argsort(-alike, kind="stable")[: int(count[p])]
            wanted[free[best]] = row
            free = np.delete(free, best)
    return wanted


def _trim(structure: Structure, wanted: Ints) -> None:
    """Remove pods that are covered too often, first from the nodes with the fewest pods."""
    over = wanted.sum(axis=0) - structure.size
    for k in np.flatnonzero(over > 0).tolist():
        holders = np.flatnonzero(wanted[:, k])
        for n in holders[np.argsort(wanted[holders].sum(axis=1), kind="stable")].tolist():
            less = min(int(over[k]), int(wanted[n, k]))
            wanted[n, k] -= less
            over[k] -= less


def _fill(structure: Structure, wanted: Ints) -> None:
    """Put pods that no pattern covers where there is room, on nodes in use if possible."""
    missing = structure.size - wanted.sum(axis=0)
    if not missing.any():
        return
    residual = structure.residual[structure.group] - wanted @ structure.demand
    upper = structure.upper[structure.group] - wanted
    shut = (wanted.sum(axis=1) == 0) & (structure.opening[:, structure.group].sum(axis=0) > 0)
    # The most urgent first, the smallest of them before the others.
    order = np.lexsort([*structure.demand.T, *-structure.missing[::-1]])
    everyone = np.arange(structure.kinds)
    for k in order.tolist():
        # A node that cannot take a pod of the kind now cannot take one later either.
        candidates = np.flatnonzero((upper[:, k] > 0) & (residual >= structure.demand[k]).all(axis=1))
        for n in candidates[np.argsort(shut[candidates], kind="stable")].tolist():
            shares = structure.shares[structure.group[n]].of(everyone)
            while missing[k] and upper[n, k] > 0 and (residual[n] >= structure.demand[k]).all():
                wanted[n, k] += 1
                if not fits_devices(wanted[n], *shares):
                    wanted[n, k] -= 1
                    break
                upper[n, k] -= 1
                residual[n] -= structure.demand[k]
                shut[n] = False
                missing[k] -= 1
            if not missing[k]:
                break


def _classes(problem: Problem, structure: Structure, wanted: Ints, near: Placement) -> Placement:
    """Divide the pods of a kind among its classes: first those on the node already, then those that must be placed."""
    left, kind = problem.size.tolist(), structure.kind.tolist()
    placed: list[tuple[int, int, int]] = []
    need = wanted.copy()
    for c, n, pods in near.entries():
        stay = min(pods, int(need[n, kind[c]]))
        placed.append((c, n, stay))
        need[n, kind[c]] -= stay
        left[c] -= stay
    # Of each kind the classes that still have pods to place, the last one first.
    members: list[list[int]] = [[] for _ in range(structure.kinds)]
    for c in np.argsort(problem.optional - problem.size, kind="stable")[::-1].tolist():
        if left[c]:
            members[kind[c]].append(c)
    for n, k in zip(*(at.tolist() for at in np.nonzero(need)), strict=True):
        missing, waiting = int(need[n, k]), members[k]
        while missing and waiting:
            some = min(left[waiting[-1]], missing)
            placed.append((waiting[-1], n, some))
            left[waiting[-1]] -= some
            missing -= some
            if not left[waiting[-1]]:
                waiting.pop()
    return Placement.of(placed)
