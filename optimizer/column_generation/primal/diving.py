"""Diving heuristic: fix a few patterns of the fractional solution, generate columns for the rest, and repeat."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.master.generation import Generation
from stowplan.optimizer.column_generation.master.lagrangian import round_duals

WHOLE = 1e-6
"""Integrality tolerance of counts."""


def dive(generation: Generation, target: int, budget: Budget, random: np.random.Generator | None) -> Ints | None:
    """Round the master's solution pattern by pattern; return ``[p]`` integer counts.

    The dive is pruned when the master, with the fixed patterns, can no longer get below ``target``. The less time is
    left, the more patterns are fixed together; when it is over, the patterns fixed so far are returned.

    Parameters
    ----------
    random
        Randomizes the dive.
    """
    master, pool, structure = generation.master, generation.pool, generation.structure
    fixed = np.zeros(pool.size, dtype=np.int64)
    steps, began = 0, budget.seconds
    try:
        while True:
            solution = master.solve(budget)
            fixed = np.concatenate([fixed, np.zeros(pool.size - len(fixed), dtype=np.int64)])
            if solution is None:
                return fixed if budget.over else None
            most = target - int(structure.step[generation.tier])
            if solution.value + float(structure.constant[generation.tier]) > most + 1e-6:
                return None
            count = solution.count
            if np.abs(count - np.rint(count)).max(initial=0.0) <= WHOLE:
                return np.rint(count).astype(np.int64)
            if budget.over:
                return fixed
            extra = count - fixed
            if random is not None:
                extra *= random.uniform(1 - generation.parameters.dive_noise, 1, len(extra))
            affordable = max(1.0, steps * budget.seconds / max(1e-6, began - budget.seconds)) if steps else 1e9
            together = int(np.ceil(float(extra.sum()) / affordable))
            _fix(generation, fixed, extra, together)
            _refill(generation, np.maximum(0, structure.size - fixed @ pool.pattern[: len(fixed)]), budget)
            steps += 1
    finally:
        master.release()


def _fix(generation: Generation, fixed: Ints, extra: Floats, together: int) -> None:
    """Fix the patterns whose counts are nearly integer, and at least ``together`` more, largest first."""
    pool = generation.pool
    left = np.maximum(0, generation.structure.size - fixed @ pool.pattern[: len(fixed)])
    order = np.argsort(-extra, kind="stable")
    done = 0
    for p in order[: np.count_nonzero(extra > WHOLE)].tolist():
        if extra[p] < generation.parameters.fixed_together and done >= together:
            break
        often = max(1, int(np.floor(extra[p] + WHOLE)))
        use = pool.pattern[p] * often
        # The first is fixed in any case; others only if they still cover pods that are left.
        if done and (use > left).any():
            continue
        fixed[p] += often
        left = np.maximum(0, left - use)
        generation.master.fix(p, int(fixed[p]))
        done += often


def _refill(generation: Generation, left: Ints, budget: Budget) -> None:
    """Generate patterns of pods that are not covered yet."""
    for _ in range(generation.parameters.dive_pricings):
        if budget.over or generation.pool.size >= generation.parameters.largest_pool:
            return
        solution = generation.master.solve(budget)
        if solution is None:
            return
        rounded = round_duals(generation.structure, generation.tier, generation.master.limits, solution.duals)
        new = 0
        for g, pricer in enumerate(generation.pricers):
            patterns, _ = pricer.greedy(rounded.cover, left)
            budget.spend(len(patterns) ** 2)
            new += generation.want(g, patterns, solution)
        if not new:
            for g, pricer in enumerate(generation.pricers):
                least = max(0, min(rounded.opening[g] + rounded.opening_dual[g], 1 << 50))
                least += int(solution.node[g] * rounded.scale)
                priced = pricer.best(
                    rounded.cover, least, min(generation.parameters.short_pricing // 4, budget.work), left
                )
                budget.spend(priced.work)
                new += generation.want(g, priced.patterns, solution)
        if not new:
            return
