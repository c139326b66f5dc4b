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
    """``[n, k]`` assign every pattern to the most similar node of its group."""
    wanted = np.zeros_like(now)
    for g in range(structure.groups):
        free = np.flatnonzero(structure.group == g)
        used = np.flatnonzero((pool.group == g) & (count[: pool.size] > 0))
        patterns = np.repeat(pool.pattern[used].astype(np.int64), count[used], axis=0)[: len(free)]
        # The largest patterns are assigned first.
        for row in patterns[np.argsort(-patterns.sum(axis=1), kind="stable")]:
            best = int(np.argmax(np.minimum(now[free], row).sum(axis=1)))
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
    classes, nodes = problem.shape
    left = problem.size.copy()
    now = near.table(classes, nodes)
    placed = np.zeros((classes, nodes), dtype=np.int64)
    need = wanted.copy()
    for c in range(classes):
        k = int(structure.kind[c])
        stay = np.minimum(now[c], need[:, k])
        placed[c] += stay
        need[:, k] -= stay
        left[c] -= int(stay.sum())
    members: list[list[int]] = [[] for _ in range(structure.kinds)]
    for c in np.argsort(problem.optional - problem.size, kind="stable").tolist():
        members[int(structure.kind[c])].append(c)
    for n, k in zip(*np.nonzero(need), strict=True):
        for c in members[int(k)]:
            some = min(int(left[c]), int(need[n, k]))
            placed[c, n] += some
            left[c] -= some
            need[n, k] -= some
    return Placement.from_table(placed)
