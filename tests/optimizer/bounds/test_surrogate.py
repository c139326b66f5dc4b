"""The surrogate bound is never above the optimum, and meets it where nothing but loads matters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from stowplan.models.arrays import Ints
from stowplan.models.problem import Curves, NodeCurve, Origin, Placement, Problem, Tier, Weighted
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.bounds.surrogate import surrogate_bound
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.surrogate import convolve
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import problems
from tests.support.random_clusters import Setup, clusters, setups


@cases(13, at_least={"above nothing": 1}, problem=problems(broken=True))
def test_the_bound_of_a_problem_of_devices_is_never_above_the_optimum(problem: Problem) -> None:
    never_above(problem)


@cases(10, at_least={"above nothing": 1}, cluster=clusters(), setup=setups("balance"))
def test_the_bound_of_a_cluster_is_never_above_the_optimum(cluster: Snapshot, setup: Setup) -> None:
    never_above(setup.compile(cluster).problem.steered)


def never_above(problem: Problem) -> None:
    for tier, value in enumerate(best(problem)):
        bound = surrogate_bound(Evaluator(problem), tier)
        assert bound <= value
        count("above nothing", bound > 0)


def test_the_bound_fills_the_flattest_nodes_first() -> None:
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


@dataclass(frozen=True)
class Loads:
    """Pods of different demands, nodes with convex curves of different costs, and ways to place the pods."""

    demand: Ints
    held: Ints
    curve: Ints
    curves: Curves
    may_wait: bool
    placed: tuple[Ints, ...]
    """``[p]`` a node for each pod, or -1."""


def random_loads(choices: Choices) -> Loads:
    nodes, pods = choices.integer(1, 4), choices.integer(1, 6)
    slope = np.sort(choices.array((nodes, 3), -3, 5), axis=1)
    start = np.array([0, 3, 7]) + choices.array((nodes, 1), -2, 2)
    value = 100 + np.cumsum(np.hstack([0 * start[:, :1], slope[:, :-1] * np.diff(start, axis=1)]), axis=1)
    curve = np.array(choices.any_order(range(nodes)))
    free = choices.one(["nothing", "a node that does not count", "pods that may wait"])
    if free == "a node that does not count":
        curve[0] = -1
    may_wait = free == "pods that may wait"
    placed = tuple(choices.array(pods, -1 if may_wait else 0, nodes - 1) for _ in range(choices.integer(1, 20)))
    curves = Curves(start, slope, value)
    return Loads(choices.array(pods, 1, 4), choices.array(nodes, 0, 2), curve, curves, may_wait, placed)


@cases(20, at_least={"equal to the excess": 24, "at most the excess": 24}, loads=drawn(random_loads))
def test_reduced_costs_of_the_nodes_add_up_to_what_the_placement_costs_beyond_the_least(loads: Loads) -> None:
    """And no node has a negative one, wherever pods are.

    Where the total of the loads is free, or a node does not count, they add up to no more than that.
    """
    pods, nodes = len(loads.demand), len(loads.held)
    one = np.ones(pods, dtype=np.int64)
    term = NodeCurve(Origin("test"), loads.demand, loads.held, loads.curve, loads.curves)
    names = tuple(map(str, range(nodes))), tuple(map(str, range(pods)))
    problem = Problem(*names, one, one if loads.may_wait else 0 * one, Placement.of([]), (), ())
    surrogate = convolve(problem, term)
    counted = loads.curve >= 0
    known = counted.all() and not loads.may_wait
    for on in loads.placed:
        load = loads.held + np.bincount(on[on >= 0], loads.demand[on >= 0], nodes).astype(np.int64)
        cost = np.where(counted, term.curves.at(np.maximum(0, loads.curve), load), 0)
        beyond = surrogate.reduced(np.arange(nodes), cost, load)
        assert (beyond >= 0).all()
        assert not beyond[~counted].any()
        excess = cost.sum() - surrogate.least
        assert beyond.sum() == excess if known else beyond.sum() <= excess
        count("equal to the excess" if known else "at most the excess")


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


def test_where_the_total_load_is_free_the_least_is_at_the_best_total() -> None:
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
