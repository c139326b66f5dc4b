"""Infeasibility proofs for a value from a few large kinds alone, the core items.

Where next to nothing of nodes may be left, all patterns together are still too many to be listed, but those that hold
a certain large pod are few: few pods have to fill the rest of the node exactly. If no choice among them covers the core
items, uses no pod twice and leaves no more capacity than there is, no placement has the value.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from ortools.sat.python import cp_model

from stowplan.models.arrays import Ints
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.master.enumeration import waste_of
from stowplan.optimizer.column_generation.master.generation import Generation
from stowplan.optimizer.column_generation.pricing.pricer import PricingResult
from stowplan.optimizer.column_generation.primal.integer import run
from stowplan.optimizer.column_generation.structure import Structure
from stowplan.optimizer.cpsat.builder import Builder, Linear


def refuted(generation: Generation, value: int, budget: Budget, threads: int = 1) -> bool:
    """Whether it is proven in time that no solution has a value of at most ``value``.

    Parameters
    ----------
    threads
        Core items that are examined in parallel.
    """
    s, chosen = generation.structure, generation.parameters
    waste = waste_of(s, generation.tier, generation.master.limits, value)
    if (waste < 0).any():
        return True
    searches = [pricer.meet_in_the_middle(waste, chosen.core_multisets // s.groups) for pricer in generation.pricers]
    unlisted = [g for g, meet_in_the_middle in enumerate(searches) if meet_in_the_middle is None]
    needed = s.size - s.affordable(generation.allowance(value), np.arange(s.kinds))
    core_items = [k for k in _by_promise(s, needed, waste, chosen.core_large) if not s.upper[unlisted, k].any()][
        : chosen.core_items
    ]
    if not core_items:
        return False
    for meet_in_the_middle in searches:
        budget.spend(meet_in_the_middle.prepare(budget.work) if meet_in_the_middle else 0)

    def listed(rank: int) -> list[tuple[int, PricingResult]]:
        """Find all patterns with this core item and none of those before it."""
        upper, core_item = s.upper.copy(), core_items[rank]
        upper[:, core_items[:rank]] = 0
        return [
            (
                g,
                generation.pricers[g].nearly_full(
                    meet_in_the_middle, upper[g], core_item, min(chosen.core_work, budget.work), chosen.core_patterns
                ),
            )
            for g, meet_in_the_middle in enumerate(searches)
            if meet_in_the_middle is not None and upper[g, core_item]
        ]

    group, pattern = np.zeros(0, dtype=np.int64), np.zeros((0, s.kinds), dtype=np.int64)
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(core_items), threads):
            ranks = range(first, min(first + threads, len(core_items)))
            for rank, found in zip(ranks, list(pool.map(listed, ranks)), strict=True):
                for g, priced in found:
                    budget.spend(priced.work)
                    if not priced.complete or len(pattern) > chosen.core_patterns:
                        return False
                    group = np.append(group, np.full(len(priced.patterns), g))
                    pattern = np.concatenate([pattern, priced.patterns])
                if _impossible(s, group, pattern, core_items[: rank + 1], needed, waste, budget):
                    return True
    return False


def _by_promise(s: Structure, needed: Ints, waste: Ints, share: float) -> list[int]:
    """Return kinds in the order in which they are worth listing patterns for.

    The larger a pod, the fewer patterns hold it. Patterns of a kind cost the same to list however many of its pods must
    be covered, and the more there are, the less do these patterns suffice: where sizes are alike, numbers count.
    """
    residual = (s.nodes @ s.residual) / s.nodes.sum()
    tight = (waste < residual) & (residual > 0)
    size = (np.maximum(0, s.demand[:, tight]) / residual[tight]).sum(axis=1)
    size[needed <= 0] = 0
    large = size >= share * size.max(initial=0)
    order = np.lexsort([-size, -needed * large, ~large])
    return [k for k in order.tolist() if size[k] > 0]


def _impossible(
    s: Structure, group: Ints, pattern: Ints, core_items: list[int], needed: Ints, waste: Ints, budget: Budget
) -> bool:
    """Whether no choice of patterns covers the core items with the pods, nodes and capacity that there are."""
    builder = Builder()
    use = [builder.var(0, int(s.nodes[g]), 0) for g in group.tolist()]

    def total(coefficients: Ints) -> Linear:
        used = np.flatnonzero(coefficients)
        return Linear([use[p] for p in used.tolist()], coefficients[used].tolist())

    for k in np.flatnonzero(pattern.any(axis=0)).tolist():
        builder.at_most(total(pattern[:, k]), int(s.size[k]))
    for k in core_items:
        builder.at_least(total(pattern[:, k]), int(needed[k]))
    for g, nodes in enumerate(s.nodes.tolist()):
        builder.at_most(total((group == g).astype(np.int64)), nodes)
    left = s.residual[group] - pattern @ s.demand
    for r in np.flatnonzero(waste < s.nodes @ s.residual).tolist():
        builder.at_most(total(left[:, r]), int(waste[r]))
    _, status = run(builder.minimize(Linear()), budget)
    return status == cp_model.INFEASIBLE
