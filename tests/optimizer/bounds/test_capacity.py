"""The bound from pooled room is never above the optimum, and meets it where nothing but room matters."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.problem import Capacity, Open, Origin, Placement, Problem, Tier, Unplaced, Weighted
from stowplan.optimizer.bounds.capacity import capacity_bound
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.brute_force import best
from tests.support.clusters import random_cluster
from tests.support.problems import random_affinity, random_problem

HERE = Origin("test")


@pytest.mark.parametrize("seed", range(150))
def test_it_is_never_above_the_optimum(seed: int) -> None:
    if seed % 3 == 0:
        problem = random_problem(seed, broken=seed % 2 == 1)
    elif seed % 3 == 1:
        problem = random_affinity(seed, broken=seed % 2 == 1)
    else:
        snapshot = random_cluster(seed, broken=seed % 2 == 0)
        problem = compile_problem(snapshot, default_profile(K36), PRESETS["pack"]).problem
    values = best(problem)
    for tier, value in enumerate(values):
        assert capacity_bound(Evaluator(problem), tier, values[:tier]) <= value


def test_it_says_how_many_bins_are_needed() -> None:
    problem = packing([6, 5, 5, 4], bins=5)
    assert capacity_bound(Evaluator(problem), 0, ()) == 0
    assert capacity_bound(Evaluator(problem), 1, (0,)) == 2
    assert capacity_bound(Evaluator(problem), 1, (2,)) == 1  # without the largest two, half of a bin is enough


def test_it_says_how_many_must_wait() -> None:
    problem = packing([6, 5, 5, 4], bins=1)
    assert capacity_bound(Evaluator(problem), 0, ()) == 2


def packing(sizes: list[int], bins: int) -> Problem:
    """Items that wait in front of bins of 10."""
    items, one = len(sizes), np.ones(bins, dtype=np.int64)
    capacity = Capacity(HERE, np.array(sizes), 10 * one, one)
    each = np.ones(items, dtype=np.int64)
    tiers = (
        Tier("pending", (Weighted(1, Unplaced(HERE, each)),)),
        Tier("bins", (Weighted(1, Open(HERE, one, 0 * one)),)),
    )
    names = tuple(f"bin {n}" for n in range(bins)), tuple(f"item {i}" for i in range(items))
    return Problem(*names, each, each, Placement.of([]), (capacity,), tiers)
