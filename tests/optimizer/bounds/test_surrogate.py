"""The pooled bound is never above the optimum, and meets it where nothing but loads matters."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.problem import Curves, NodeCurve, Origin, Placement, Problem, Tier, Weighted
from stowplan.optimizer.bounds.surrogate import surrogate_bound
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.surrogate import convolve
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
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
        assert surrogate_bound(Evaluator(problem), tier) <= value


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
    assert surrogate_bound(Evaluator(problem), 0) == 3 * 4 * 2


@pytest.mark.parametrize("seed", range(60))
def test_what_nodes_cost_beyond_the_least_adds_up_to_what_the_placement_does(seed: int) -> None:
    """And no node costs less than it has to, wherever pods stand.

    Where the total of the loads is free, or a node does not count, it adds up to no more, and to nothing at a best one.
    """
    rng = np.random.default_rng(seed)
    nodes, pods = 4, 6
    slope = np.sort(rng.integers(-3, 6, (nodes, 3)), axis=1)
    start = np.array([0, 3, 7]) + rng.integers(-2, 3, (nodes, 1))
    first = np.zeros((nodes, 1), dtype=np.int64)
    value = 100 + np.cumsum(np.hstack([first, slope[:, :-1] * np.diff(start, axis=1)]), axis=1)
    demand = rng.integers(1, 5, pods)
    held = rng.integers(0, 3, nodes)
    one = np.ones(pods, dtype=np.int64)
    curve = rng.permutation(nodes)
    known = seed % 3 == 0
    if seed % 3 == 1:
        curve[0] = -1
    optional = one if seed % 3 == 2 else 0 * one
    term = NodeCurve(Origin("test"), demand, held, curve, Curves(start, slope, value))
    names = tuple("abcd"), tuple("uvwxyz")
    problem = Problem(*names, one, optional, Placement.of([]), (), ())
    surrogate = convolve(problem, term)
    counted = curve >= 0
    for _ in range(40):
        on = rng.integers(-1 if seed % 3 == 2 else 0, nodes, pods)
        load = held + np.bincount(on[on >= 0], demand[on >= 0], nodes).astype(np.int64)
        cost = np.where(counted, term.curves.at(np.maximum(0, curve), load), 0)
        beyond = surrogate.reduced(np.arange(nodes), cost, load)
        assert (beyond >= 0).all()
        assert not beyond[~counted].any()
        assert beyond.sum() == cost.sum() - surrogate.least if known else beyond.sum() <= cost.sum() - surrogate.least


@pytest.mark.parametrize(
    ("slope", "load", "beyond"),
    [
        ([[1, 3]], [4, 2], [0, 0]),  # six units have to be placed: as many as cost one each
        ([[1, 3]], [5, 1], [2, 0]),
        ([[-2, -1]], [4, 3], [0, 0]),  # all seven are worth having
    ],
)
def test_the_price_is_that_of_the_last_unit_that_has_to_be_placed(
    slope: list[list[int]], load: list[int], beyond: list[int]
) -> None:
    corner = 4 if slope[0][0] > 0 else 3
    curves = Curves(np.array([[0, corner]]), np.array(slope), np.array([[20, 20 + corner * slope[0][0]]]))
    one, two = np.array([1]), np.zeros(2, dtype=np.int64)
    problem = Problem(("a", "b"), ("c",), 7 * one, one, Placement.of([]), (), ())
    surrogate = convolve(problem, NodeCurve(Origin("test"), one, two, two, curves))
    reached = np.array(load)
    assert surrogate.reduced(np.arange(2), curves.at(two, reached), reached).tolist() == beyond


def test_what_a_free_total_is_worth() -> None:
    """Pods may wait, and two of them are worth having: a node with none of them has to be paid for, one more costs."""
    curves = Curves(np.array([[0, 2]]), np.array([[-1, 3]]), np.array([[5, 3]]))
    one = np.array([1])
    term = NodeCurve(Origin("test"), one, np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64), curves)
    problem = Problem(("a", "b"), ("c",), 7 * one, 7 * one, Placement.of([]), (), ())
    surrogate = convolve(problem, term)
    assert surrogate.least == 6
    assert not surrogate.dual.any()
    load = np.array([1, 3])
    assert surrogate.reduced(np.arange(2), curves.at(term.curve, load), load).tolist() == [1, 3]
