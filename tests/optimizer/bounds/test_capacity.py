"""The bound from capacities is never above the optimum, and meets it where nothing but room matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Capacity, Open, Origin, Placement, Problem, Tier, Unplaced, Weighted
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.bounds.capacity import capacity_bound
from stowplan.optimizer.evaluate import Evaluator
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import affinity_problems, problems
from tests.support.random_clusters import Setup, clusters, setups

HERE = Origin("test")


def with_hardly_any_room(problem: Problem, room: Ints) -> Problem:
    """Add a capacity that leaves pods waiting: each takes a unit, of which there are fewer than pods."""
    classes, nodes = problem.shape
    one = np.ones(nodes, dtype=np.int64)
    return replace(problem, rules=(*problem.rules, Capacity(HERE, one[:1].repeat(classes), room[:nodes], one)))


ROOM = drawn(Choices.array, 4, 0, 1)
"""Units on each node."""


@cases(10, at_least={"above nothing": 3}, problem=problems(), room=ROOM)
def test_the_bound_of_a_problem_of_devices_is_never_above_the_optimum(problem: Problem, room: Ints) -> None:
    never_above(with_hardly_any_room(problem, room))


@cases(8, at_least={"above nothing": 2}, problem=affinity_problems(), room=ROOM)
def test_the_bound_of_a_problem_of_affinity_is_never_above_the_optimum(problem: Problem, room: Ints) -> None:
    never_above(with_hardly_any_room(problem, room))


@cases(10, at_least={"above nothing": 3}, cluster=clusters(), setup=setups("pack"))
def test_the_bound_of_a_cluster_is_never_above_the_optimum(cluster: Snapshot, setup: Setup) -> None:
    never_above(setup.compile(cluster).problem.steered)


def never_above(problem: Problem) -> None:
    values = best(problem)
    for tier, value in enumerate(values):
        bound = capacity_bound(Evaluator(problem), tier, values[:tier])
        assert bound <= value
        count("above nothing", bound > 0)


def test_the_bound_says_how_many_bins_are_needed() -> None:
    problem = packing([6, 5, 5, 4], bins=5)
    assert capacity_bound(Evaluator(problem), 0, ()) == 0
    assert capacity_bound(Evaluator(problem), 1, (0,)) == 2
    assert capacity_bound(Evaluator(problem), 1, (2,)) == 1  # without the largest two, half of a bin is enough


def test_the_bound_says_how_many_items_have_to_wait() -> None:
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
