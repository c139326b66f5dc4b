"""Whole solutions node by node: each is filled with what is worth most, by prices that are drawn at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Floats, Ints
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.master.generation import Generation

WORK = 100_000
"""Candidates looked at to fill one node."""

LARGE_FIRST = 1.4
"""Prices grow with the size of a pod, up to this power of it."""

BITS = 20
"""Prices are whole numbers of so many bits."""


def fill(generation: Generation, target: int, budget: Budget, random: np.random.Generator) -> Ints | None:
    """Fill nodes one by one until no pod is left; return ``[p]`` whole counts, or ``None`` if ``target`` is missed.

    Where a few pods may stay without a node, large ones are left out from the beginning: so it shows early that nodes
    are not filled well enough, and the room is there when the last ones, which leave no choice, are filled.

    A pod's price is the sum of its demands, each weighed by how much of the row is still asked for and by chance, to
    a power drawn at random: the larger it is, the earlier large pods have their turn.
    """
    s, pool, tier = generation.structure, generation.pool, generation.tier
    left, nodes = s.size - _left_out(generation, target, random), s.nodes.copy()
    used: list[tuple[int, int]] = []
    power = float(random.uniform(1.0, LARGE_FIRST))
    chance = np.asarray(random.uniform(0.5, 1.5, s.demand.shape[1]), dtype=np.float64)
    value = int(s.constant[tier])
    while left.any() and nodes.any():
        if budget.over or value >= target:
            return None
        price = _prices(generation, left, nodes, chance, power)
        best: tuple[float, int, NDArray[np.int16]] | None = None
        for g in np.flatnonzero(nodes).tolist():
            priced = generation.pricers[g].best(price, 0, min(WORK, budget.work), left)
            budget.spend(priced.work)
            if not len(priced.patterns):
                continue
            worth = priced.patterns @ price
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
    """``[k]`` large pods, drawn at random, that may stay without a node below ``target`` if no tier gets worse."""
    s, tier = generation.structure, generation.tier
    out = np.zeros(s.kinds, dtype=np.int64)
    if s.opening[tier].any():
        return out
    dual_value = generation.dual_value(target - int(s.step[tier]))
    size = np.maximum(0, s.demand) @ (1 / np.maximum(1, s.nodes @ s.residual))
    worth = size / np.maximum(s.missing[tier], 1e-9) * random.uniform(0.5, 1, s.kinds)
    for k in np.argsort(-worth, kind="stable").tolist():
        out[k] = s.affordable(dual_value, np.array([k]))[0]
        dual_value = dual_value - out[k] * s.missing[: tier + 1, k]
    return out


def _prices(generation: Generation, left: Ints, nodes: Ints, chance: Floats, power: float) -> Ints:
    """``[k]`` what a pod of each kind is worth, as whole numbers above 0."""
    s = generation.structure
    residual = np.maximum(1.0, nodes @ s.residual)
    asked = np.maximum(0, s.demand.T @ left) / residual
    size = np.maximum(0, s.demand) @ (asked * chance / residual)
    price = (size / max(float(size.max(initial=0.0)), 1e-300)) ** power
    whole: Ints = 1 + np.rint(price * (1 << BITS)).astype(np.int64)
    return whole
