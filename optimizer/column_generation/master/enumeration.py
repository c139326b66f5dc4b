"""All patterns that a solution of a given value can use, by their reduced costs.

Let ``L`` be the Lagrangian bound at some prices, and ``m_g ≤ 0`` the least reduced cost of a pattern of group ``g``. A
placement of value at most ``T`` uses no pattern whose reduced cost exceeds ``m_g + T − L``, since every pattern it
uses adds to ``L`` what it is above ``m_g``. Prices of pods are not negative, so a pattern may be replaced by one that
contains it: patterns to which nothing can be added suffice, if pods may be covered more than once.

The same holds for the prices that are the demands of a single row: no node that is used has more room left in that row
than all of them together have, if no more is opened, and no more is left without a node, than ``T`` allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.master.generation import Generation
from stowplan.optimizer.column_generation.pricing.pricer import UNLIMITED
from stowplan.optimizer.column_generation.structure import Structure

LARGEST_TABLE = 30_000_000
"""Patterns times kinds that are listed at most."""


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
    waste = waste_of(s, generation.tier, generation.master.limits, value)
    if (waste < 0).any():
        return Candidates(np.zeros(0, dtype=np.int64), np.zeros(s.kinds, dtype=np.int64))
    cap = min(cap, LARGEST_TABLE // s.kinds)
    listed: list[NDArray[np.int16]] = []
    total = 0
    for g, pricer in enumerate(generation.pricers):
        cost = b * prices.opening[g] + a * prices.opening_price[g]
        lowest = min(0, cost - a * certificate.best[g])
        least = -(-(cost - lowest - slack) // a)
        found = pricer.above(prices.cover, max(0, min(least, 1 << 60)), min(work, budget.work), cap - total, waste)
        budget.spend(found.work)
        if not found.complete:
            return None
        total += len(found.patterns)
        listed.append(found.patterns)
    # Only all of them together are of use; some would be a burden to the master.
    for g, patterns in enumerate(listed):
        generation.pool.add(g, patterns)
    chosen = [generation.pool.indices(g, patterns) for g, patterns in enumerate(listed)]
    missing = s.optional.copy()
    for k in range(s.kinds):
        reduced = b * prices.missing[k] + a * prices.missing_price[k]
        if reduced > 0:
            missing[k] = min(int(missing[k]), slack // reduced)
    return Candidates(np.concatenate(chosen), missing)


def waste_of(s: Structure, tier: int, limits: Ints, value: int) -> Ints:
    """``[r]`` the most room that the nodes in use have left together, if the tier is at most ``value``.

    Whatever opens nodes or leaves pods without one is bought with the value, the most room for it first; what costs
    something in an earlier tier of value 0 cannot be had.
    """
    forbidden_nodes, forbidden_pods = np.zeros(s.groups, dtype=np.bool_), np.zeros(s.kinds, dtype=np.bool_)
    for t in np.flatnonzero(limits <= 0).tolist():
        forbidden_nodes |= s.opening[t] > 0
        forbidden_pods |= s.missing[t] > 0
    costs = np.concatenate([s.opening[tier], s.missing[tier]]).tolist()
    number = np.concatenate([np.where(forbidden_nodes, 0, s.nodes), np.where(forbidden_pods, 0, s.optional)]).tolist()
    budget = value - int(s.constant[tier])
    waste = []
    for r in range(s.demand.shape[1]):
        gains = [*s.residual[:, r].tolist(), *np.maximum(0, s.demand[:, r]).tolist()]
        # A negative demand that stays away takes the room with it that it would have made.
        left = -int((s.demand[:, r] * s.size).sum())
        dual_value = budget
        offers = sorted(
            ((gain, cost, n) for gain, cost, n in zip(gains, costs, number, strict=True) if gain and n),
            key=lambda offer: (offer[1] > 0, -Fraction(offer[0], max(1, offer[1]))),
        )
        for gain, cost, n in offers:
            if not cost:
                left += gain * n
                continue
            bought = min(cost * n, max(0, dual_value))
            left += gain * bought // cost
            dual_value -= bought
        waste.append(min(left, UNLIMITED) if budget >= 0 else -1)
    return np.array(waste, dtype=np.int64)
