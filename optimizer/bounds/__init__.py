"""Lower bounds: what no legal placement can be below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stowplan.optimizer.bounds import capacity, lagrangian, linear, surrogate
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.evaluation import Evaluator

UNBOUNDED = 1e6
"""Seconds that never run out, where the answer must not depend on the clock."""

NEAR = 0.001
"""Share of the value by which a cheap bound is so near that dear ones, where they leave terms out, are not worth it."""

SMALL = 5_000
"""(class, node) variables up to which no bound is dear."""


def best_bound(
    evaluator: Evaluator, upper: NDArray[np.int32], tier: int, reached: Sequence[int], value: int, deadline: Deadline
) -> tuple[int, str]:
    """Return the best lower bound of one tier and its name.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold; see `stowplan.optimizer.domains.upper_bounds`.
    reached
        Values of the earlier tiers, which must not get worse.
    value
        Value of this tier that is known to be reachable: a bound that meets it ends the search.
    """
    found = [
        (surrogate.surrogate_bound(evaluator, tier), surrogate.NAME),
        (capacity.capacity_bound(evaluator, tier, reached), capacity.NAME),
    ]
    if max(found)[0] >= value:
        return max(found)
    near, small = value - max(found)[0] <= NEAR * value, np.count_nonzero(upper) <= SMALL
    reads_all = lagrangian.reads_all(evaluator.problem, tier)
    if near and not small and not reads_all:
        return max(found)
    nodewise = lagrangian.lagrangian_bound(evaluator, upper, tier, reached, deadline, value)
    if nodewise is not None:
        found.append((nodewise, lagrangian.NAME))
        if nodewise >= value or reads_all:
            return max(found)
    if not deadline.over:
        seconds = UNBOUNDED if deadline.deterministic else deadline.remaining
        relaxed = linear.linear_bound(evaluator, upper, tier, reached, seconds)
        if relaxed is not None:
            found.append((relaxed, linear.NAME))
    return max(found)
