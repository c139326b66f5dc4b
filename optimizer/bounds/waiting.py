"""Waiting bound: if so many pods have to stay unplaced, they cost a later tier at least what the cheapest ones cost.

An earlier tier that counts unplaced pods has a bound; a later tier weighs the same pods otherwise, such as by size. The
least weight of pods that reach the bound is a covering knapsack problem, whose linear relaxation takes the pods with
the least weight for what they count (G. Dantzig, "Discrete-variable extremum problems", 1957).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Problem, Unplaced
from stowplan.optimizer.bounds.bound import BoundRequest, CheapBound


class WaitingBound(CheapBound):
    """The waiting bound as one of `stowplan.optimizer.bounds.BOUNDS`."""

    name = "waiting bound"

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether unplaced pods cost something, and an earlier tier counts them too."""
        own = any(isinstance(weighted.term, Unplaced) for weighted in problem.tiers[tier].terms)
        return own and any(earlier.counts_unscheduled for earlier in problem.tiers[:tier])

    def __call__(self, request: BoundRequest) -> int:
        """Return the bound."""
        return waiting_bound(request.evaluator.problem, request.tier, request.proven)


def waiting_bound(problem: Problem, tier: int, proven: Sequence[int]) -> int:
    """Return a lower bound of a tier from those of earlier tiers that count other pods each.

    Parameters
    ----------
    proven
        Lower bounds of the earlier tiers.
    """
    worth, used, total = costs_of_waiting(problem, tier), np.zeros(len(problem.classes), dtype=np.bool_), 0
    for earlier, bound in enumerate(proven[:tier]):
        counted = costs_of_waiting(problem, earlier)
        if problem.tiers[earlier].counts_unscheduled and not (used & (counted > 0)).any():
            used |= counted > 0
            total += least_worth(worth, counted, problem.optional, bound)
    return total


def costs_of_waiting(problem: Problem, tier: int) -> Ints:
    """``[c]`` what an unplaced pod of a class costs a tier."""
    total = np.zeros(len(problem.classes), dtype=np.int64)
    for weighted in problem.tiers[tier].terms:
        if isinstance(weighted.term, Unplaced):
            total += weighted.weight * weighted.term.cost
    return total


def least_worth(worth: Ints, counted: Ints, pods: Ints, wanted: int) -> int:
    """Return at most the least worth of pods that count ``wanted`` together, of which there are ``pods[c]``."""
    total = Fraction(0)
    classes = np.flatnonzero((counted > 0) & (pods > 0)).tolist()
    alike = len({int(counted[c]) for c in classes}) <= 1
    for c in sorted(classes, key=lambda c: Fraction(int(worth[c]), int(counted[c]))):
        if wanted <= 0:
            break
        each = int(counted[c])
        taken = min(int(pods[c]), -(-wanted // each))
        # Where all pods count the same, the last one is taken whole.
        total += min(Fraction(taken), Fraction(taken) if alike else Fraction(wanted, each)) * int(worth[c])
        wanted -= taken * each
    return -(-total.numerator // total.denominator)
