"""The pooled bound is never above the optimum, and meets it where nothing but loads matters."""

from __future__ import annotations

import numpy as np
import pytest

from models.objective import PRESETS
from models.problem import Curves, NodeCurve, Origin, Placement, Problem, Tier, Weighted
from optimizer.bounds.pooled import pooled_bound
from plugins_compat.compiler.compile import compile_problem
from plugins_compat.profiles import default_profile
from plugins_compat.release import K36
from tests.support.brute_force import best
from tests.support.clusters import random_cluster
from tests.support.problems import random_problem


@pytest.mark.parametrize("seed", range(60))
def test_it_is_never_above_the_optimum(seed: int) -> None:
    if seed % 2:
        problem = random_problem(seed, broken=seed % 4 == 1)
    else:
        snapshot = random_cluster(seed, broken=seed % 4 == 0)
        problem = compile_problem(snapshot, default_profile(K36), PRESETS["balance"]).problem
    for tier, value in enumerate(best(problem)):
        assert pooled_bound(problem, tier) <= value


def test_it_fills_the_flattest_nodes_first() -> None:
    """Seven units on two nodes, free up to 2 and 3, then at 5 and 4 a unit: the last two go where they cost 4."""
    curves = Curves(
        start=np.array([[0, 2], [0, 3]]), slope=np.array([[0, 5], [0, 4]]), value=np.array([[0, 0], [0, 0]])
    )
    one = np.array([1])
    where = Origin("test")
    term = NodeCurve(where, one, np.zeros(2, dtype=np.int64), np.array([0, 1]), curves)
    tier = Tier("load", (Weighted(3, term),))
    problem = Problem(("a", "b"), ("c",), 7 * one, 0 * one, Placement.of([(0, 0, 7)]), (), (tier,))
    assert pooled_bound(problem, 0) == 3 * 4 * 2
