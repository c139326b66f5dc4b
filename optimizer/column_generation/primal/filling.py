"""Randomized sequential value correction: nodes are filled one by one with the most valuable pattern.

Values of pods are drawn at random around their sizes (G. Belov and G. Scheithauer, "Setup and open-stacks minimization
in one-dimensional stock cutting", 2007).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Floats, Ints
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.master.generation import Generation

BITS = 20
"""Values are integers of so many bits."""


def fill(generation: Generation, target: int, budget: Budget, random: np.random.Generator) -> Ints | None:
    """Fill nodes one by one until no pod is left; return ``[p]`` integer counts, or ``None`` if ``target`` is missed.

    Where a few pods may be unplaced, large ones are left out from the beginning: so a failure shows early, and the
    capacity is still there when the last nodes, which leave no choice, are filled.

    A pod's value is the sum of its demands, each weighed by the remaining utilization of the row and at random, to a
    random power: the larger the power, the earlier large pods are placed.
    """
    s, pool, tier = generation.structure, generation.pool, generation.tier
    left, nodes = s.size - _left_out(generation, target, random), s.nodes.copy()
    used: list[tuple[int, int]] = []
    power = float(random.uniform(1.0, generation.parameters.fill_power))
    weights = np.asarray(random.uniform(0.5, 1.5, s.demand.shape[1]), dtype=np.float64)
    value = int(s.constant[tier])
    while left.any() and nodes.any():
        if budget.over or value >= target:
            return None
        values = _values(generation, left, nodes, weights, power)
        best: tuple[float, int, NDArray[np.int16]] | None = None
        for g in np.flatnonzero(nodes).tolist():
            priced = generation.pricers[g].best(values, 0, min(generation.parameters.fill_work, budget.work), left)
            budget.spend(priced.work)
            if not len(priced.patterns):
                continue
            worth = priced.patterns @ values
            row = priced.patterns[int(np.argmax(worth))]
            rate = float(worth.max()) / max(1, int(s.opening[tier, g]))
            if best is None or rate > best[0]:
                best = (rate, g, row)
        if best is None:
            break
        _, g, row = best
        pool.add(g, row[None, :])
        used.append((int(pool.indices(g, row[None, :])[0]), g))
        left -= row
        nodes[g] -= 1
        value += int(s.opening[tier, g])
    count = np.zeros(pool.size, dtype=np.int64)
    for p, _ in used:
        count[p] += 1
    return count


def _left_out(generation: Generation, target: int, random: np.random.Generator) -> Ints:
    """``[k]`` large pods, drawn at random, that may be unplaced below ``target`` if no tier gets worse."""
    s, tier = generation.structure, generation.tier
    out = np.zeros(s.kinds, dtype=np.int64)
    if s.opening[tier].any():
        return out
    allowance = generation.allowance(target - int(s.step[tier]))
    size = np.maximum(0, s.demand) @ (1 / np.maximum(1, s.nodes @ s.residual))
    worth = size / np.maximum(s.missing[tier], 1e-9) * random.uniform(0.5, 1, s.kinds)
    for k in np.argsort(-worth, kind="stable").tolist():
        out[k] = s.affordable(allowance, np.array([k]))[0]
        allowance = allowance - out[k] * s.missing[: tier + 1, k]
    return out


def _values(generation: Generation, left: Ints, nodes: Ints, weights: Floats, power: float) -> Ints:
    """``[k]`` value of a pod of each kind, a positive integer."""
    s = generation.structure
    residual = np.maximum(1.0, nodes @ s.residual)
    asked = np.maximum(0, s.demand.T @ left) / residual
    size = np.maximum(0, s.demand) @ (asked * weights / residual)
    values = (size / max(float(size.max(initial=0.0)), 1e-300)) ** power
    whole: Ints = 1 + np.rint(values * (1 << BITS)).astype(np.int64)
    return whole
