"""The pooled bound is never above the optimum, and meets it where nothing but loads matters."""

from __future__ import annotations

import numpy as np
import pytest

from models.objective import PRESETS
from models.problem import Curves, NodeCurve, Origin, Placement, Problem, Tier, Weighted
from optimizer.bounds.pooled import pooled_bound
from optimizer.evaluate.pooling import pool
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


@pytest.mark.parametrize("seed", range(30))
def test_what_nodes_cost_beyond_the_least_adds_up_to_what_the_placement_does(seed: int) -> None:
    """And no node costs less than it has to, wherever pods stand."""
    rng = np.random.default_rng(seed)
    nodes, pods = 4, 6
    slope = np.sort(rng.integers(-3, 6, (nodes, 3)), axis=1)
    start = np.array([0, 3, 7]) + rng.integers(-2, 3, (nodes, 1))
    value = 100 + np.cumsum(
        np.column_stack([np.zeros(nodes, dtype=int), slope[:, :-1] * np.diff(start, axis=1)]), axis=1
    )
    demand = rng.integers(1, 5, pods)
    held = rng.integers(0, 3, nodes)
    one = np.ones(pods, dtype=np.int64)
    term = NodeCurve(Origin("test"), demand, held, rng.permutation(nodes), Curves(start, slope, value))
    names = tuple("abcd"), tuple("uvwxyz")
    problem = Problem(*names, one, 0 * one, Placement.of([(c, 0, 1) for c in range(pods)]), (), ())
    pooled = pool(problem, term)
    for _ in range(20):
        on = rng.integers(0, nodes, pods)
        load = held + np.bincount(on, demand, nodes).astype(np.int64)
        cost = term.curves.at(term.curve, load)
        beyond = pooled.reduced(np.arange(nodes), cost, load)
        assert (beyond >= 0).all()
        assert beyond.sum() == cost.sum() - pooled.least


def test_what_a_free_total_is_worth() -> None:
    """Pods may wait, and two of them are worth having: a node with none of them has to be paid for, one more costs."""
    curves = Curves(np.array([[0, 2]]), np.array([[-1, 3]]), np.array([[5, 3]]))
    one = np.array([1])
    term = NodeCurve(Origin("test"), one, np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64), curves)
    problem = Problem(("a", "b"), ("c",), 7 * one, 7 * one, Placement.of([]), (), ())
    pooled = pool(problem, term)
    assert pooled.least == 6
    assert not pooled.price.any()
    load = np.array([1, 3])
    assert pooled.reduced(np.arange(2), curves.at(term.curve, load), load).tolist() == [1, 3]
