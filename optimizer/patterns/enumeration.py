"""All patterns that a solution of a given value can use, by their reduced costs.

Let ``L`` be the Lagrangian bound at some prices, and ``m_g ≤ 0`` the least reduced cost of a pattern of group ``g``. A
placement of value at most ``T`` uses no pattern whose reduced cost exceeds ``m_g + T − L``, since every pattern it
uses adds to ``L`` what it is above ``m_g``. Prices of pods are not negative, so a pattern may be replaced by one that
contains it: patterns to which nothing can be added suffice, if pods may be covered more than once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Ints
from optimizer.patterns.budget import Budget
from optimizer.patterns.generation import Generation


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What a solution of a given value can consist of.

    Parameters
    ----------
    chosen
        ``[i]`` patterns of the pool.
    missing
        ``[k]`` how many pods of each kind may be without a node.
    """

    chosen: Ints
    missing: Ints


def candidates(generation: Generation, value: int, work: int, cap: int, budget: Budget) -> Candidates | None:
    """Find all patterns that a solution of at most ``value`` can use; ``None`` if there are too many.

    Parameters
    ----------
    work, cap
        Candidates to look at, and patterns to find, before giving up.
    """
    certificate, s = generation.certificate, generation.structure
    if certificate is None:
        return None
    prices, a, b = certificate.prices, certificate.share.numerator, certificate.share.denominator
    gap = (value - certificate.value) * b * prices.scale
    if gap < 0:
        return Candidates(np.zeros(0, dtype=np.int64), np.zeros(s.kinds, dtype=np.int64))
    slack = gap.numerator // gap.denominator
    chosen: list[Ints] = []
    total = 0
    for g, pricer in enumerate(generation.pricers):
        cost = b * prices.opening[g] + a * prices.opening_price[g]
        lowest = min(0, cost - a * certificate.best[g])
        least = -(-(cost - lowest - slack) // a)
        found = pricer.above(prices.cover, max(0, min(least, 1 << 60)), min(work, budget.work), cap - total)
        budget.spend(found.work)
        if not found.complete:
            return None
        total += len(found.patterns)
        generation.pool.add(g, found.patterns)
        chosen.append(generation.pool.indices(g, found.patterns))
    missing = s.spare.copy()
    for k in range(s.kinds):
        reduced = b * prices.missing[k] + a * prices.missing_price[k]
        if reduced > 0:
            missing[k] = min(int(missing[k]), slack // reduced)
    return Candidates(np.concatenate(chosen), missing)
