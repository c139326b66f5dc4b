"""All patterns that a solution of a given value can use, by their reduced costs.

Let ``L`` be the Lagrangian bound at some duals, and ``m_g ≤ 0`` the least reduced cost of a pattern of group ``g``. A
placement of value at most ``T`` uses no pattern whose reduced cost exceeds ``m_g + T − L``, since every pattern it
uses adds to ``L`` what it is above ``m_g``. Duals of pods are not negative, so a pattern may be replaced by one that
contains it: maximal patterns suffice, if pods may be covered more than once.

The same holds for duals equal to the demands of a single row: no node in use has more capacity left in that row than
all of them together have, if no more nodes are opened, and no more pods are unplaced, than ``T`` allows.
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
        Candidates to examine, and patterns to find, before giving up.
    """
    certificate, s = generation.certificate, generation.structure
    if certificate is None:
        return None
    rounded, a, b = certificate.rounded, certificate.share.numerator, certificate.share.denominator
    gap = (value - certificate.value) * b * rounded.scale
    if gap < 0:
        return Candidates(np.zeros(0, dtype=np.int64), np.zeros(s.kinds, dtype=np.int64))
    slack = gap.numerator // gap.denominator
    waste = waste_of(s, generation.tier, generation.master.limits, value)
    if (waste < 0).any():
        return Candidates(np.zeros(0, dtype=np.int64), np.zeros(s.kinds, dtype=np.int64))
    cap = min(cap, generation.parameters.largest_table // s.kinds)
    listed: list[NDArray[np.int16]] = []
    total = 0
    for g, pricer in enumerate(generation.pricers):
        cost = b * rounded.opening[g] + a * rounded.opening_dual[g]
        lowest = min(0, cost - a * certificate.best[g])
        least = -(-(cost - lowest - slack) // a)
        found = pricer.above(rounded.cover, max(0, min(least, 1 << 60)), min(work, budget.work), cap - total, waste)
        budget.spend(found.work)
        if not found.complete:
            return None
        total += len(found.patterns)
        listed.append(found.patterns)
    # Only the complete set is useful; a part of it would only slow down the master.
    for g, patterns in enumerate(listed):
        generation.pool.add(g, patterns)
    chosen = [generation.pool.indices(g, patterns) for g, patterns in enumerate(listed)]
    missing = s.optional.copy()
    for k in range(s.kinds):
        reduced = b * rounded.missing[k] + a * rounded.missing_dual[k]
        if reduced > 0:
            missing[k] = min(int(missing[k]), slack // reduced)
    return Candidates(np.concatenate(chosen), missing)


def waste_of(s: Structure, tier: int, limits: Ints, value: int) -> Ints:
    """``[r]`` the most capacity that the nodes in use have left together, if the tier is at most ``value``.

    A continuous knapsack: opening nodes and leaving pods unplaced costs a part of the value, the best ratio of capacity
    to cost first; what costs something in an earlier tier of value 0 is forbidden.
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
        # An unplaced pod of negative demand does not free the capacity that it would.
        left = -int((s.demand[:, r] * s.size).sum())
        allowance = budget
        offers = sorted(
            ((gain, cost, n) for gain, cost, n in zip(gains, costs, number, strict=True) if gain and n),
            key=lambda offer: (offer[1] > 0, -Fraction(offer[0], max(1, offer[1]))),
        )
        for gain, cost, n in offers:
            if not cost:
                left += gain * n
                continue
            bought = min(cost * n, max(0, allowance))
            left += gain * bought // cost
            allowance -= bought
        waste.append(min(left, UNLIMITED) if budget >= 0 else -1)
    return np.array(waste, dtype=np.int64)
