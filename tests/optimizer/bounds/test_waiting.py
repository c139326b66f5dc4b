"""The waiting bound: what the pods that must stay unplaced cost a later tier at least."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stowplan.models.problem import Placement, Problem, Tier, Unplaced, Weighted
from stowplan.optimizer.bounds.waiting import WaitingBound, waiting_bound
from tests.support.problems import WHERE


def waiting(counted: list[list[int]], weight: list[int], pods: list[int]) -> Problem:
    """Return a problem of pods without a node: tiers that count them, and one that weighs them."""
    tiers = [Tier(f"t{i}", (Weighted(1, Unplaced(WHERE, np.array(one))),)) for i, one in enumerate([*counted, weight])]
    size, names = np.array(pods), tuple(f"c{i}" for i in range(len(pods)))
    return Problem(("n0",), names, size, size, Placement.of([]), (), tuple(tiers))


@pytest.mark.parametrize(
    ("counted", "weight", "pods", "proven", "bound"),
    [
        ([[1, 1]], [5, 3], [2, 1], [2], 8),  # the pod of 3, then one of 5
        ([[1, 1]], [5, 3], [2, 1], [0], 0),
        ([[2, 1]], [6, 4], [3, 0], [3], 12),  # all that are left count the same: two whole pods
        ([[2, 1]], [6, 4], [3, 1], [3], 9),  # one and a half of the first
        ([[1, 0], [0, 1]], [5, 3], [2, 2], [1, 2], 11),  # tiers that count other pods add up
        ([[1, 1], [0, 1]], [5, 3], [2, 2], [1, 2], 3),  # those that count the same ones do not
    ],
)
def test_the_cheapest_pods_that_reach_the_bound(
    counted: list[list[int]], weight: list[int], pods: list[int], proven: list[int], bound: int
) -> None:
    problem, tier = waiting(counted, weight, pods), len(counted)
    assert WaitingBound().supports(problem, tier)
    assert waiting_bound(problem, tier, proven) == bound


def test_a_tier_that_counts_more_than_pods_says_nothing() -> None:
    problem = waiting([[1]], [5], [1])
    mixed = replace(problem, tiers=(replace(problem.tiers[0], terms=()), problem.tiers[1]))
    assert not WaitingBound().supports(mixed, 1)
    assert not WaitingBound().supports(problem, 0)
