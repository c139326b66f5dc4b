"""Room bound: no legal placement of a tiny problem schedules more pods with the moves it may make."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.models.problem import Capacity, MoveBudget, Origin, Placement, Problem, Tier, Unplaced, Weighted
from stowplan.optimizer.bounds.room import MOST_DEPARTURES, Room, room_bound
from stowplan.optimizer.domains import upper_bounds
from tests.optimizer.bounds.test_bounds_of_moves import any_problem, with_tiers
from tests.support.brute_force import legal_values
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn

HERE = Origin("test")


def random_pending(choices: Choices) -> Problem:
    """Return a problem that counts unplaced pods in two tiers, each with costs of its own; moves are limited."""
    problem = any_problem(choices)
    classes = len(problem.classes)
    tiers = ((Weighted(2, Unplaced(HERE, choices.array(classes, 0, 2))),) for _ in range(2))
    return with_tiers(problem, *tiers, limit=choices.one((0, 1, 2, 3)))


@cases(60, at_least={"above nothing": 3, "met": 3, "met by the second tier": 1}, problem=drawn(random_pending))
def test_no_placement_schedules_more_pods_with_few_moves(problem: Problem) -> None:
    values, upper = legal_values(problem), upper_bounds(problem)
    least = min(value[0] for value in values)
    bound = room_bound(problem, upper, 0, ())
    assert bound <= least
    count("above nothing", bound > 0)
    count("met", bound == least > 0)
    for reached in {value[0] for value in values}:
        least = min(value[1] for value in values if value[0] <= reached)
        bound = room_bound(problem, upper, 1, (reached,))
        assert bound <= least
        count("met by the second tier", bound == least > 0)


def nodes_with_gaps(limit: int) -> Problem:
    """Return four nodes with three pods of 3 each and 1 free, on which pods of 4, and of 1, wait."""
    start = Placement.of((0, n, 3) for n in range(4))
    rules = (Capacity(HERE, np.array([3, 4, 1]), np.full(4, 10), np.ones(4, dtype=np.int64)), MoveBudget(HERE, limit))
    tier = Tier("pending", (Weighted(1, Unplaced(HERE, np.array([1, 1, 1]))),))
    names = ("old", "large", "small")
    return Problem(tuple("abcd"), names, np.array([12, 3, 4]), np.array([0, 3, 4]), start, rules, (tier,))


@pytest.mark.parametrize(("limit", "waiting"), [(0, 3), (1, 2), (2, 1), (3, 0)])
def test_each_large_pod_takes_an_eviction(limit: int, waiting: int) -> None:
    problem = nodes_with_gaps(limit)
    assert room_bound(problem, upper_bounds(problem), 0, ()) == waiting


def test_pods_that_earlier_tiers_leave_unplaced_are_not_counted_twice() -> None:
    """Of two pods each of two classes one has room, and it is taken by the class that the tier above counts."""
    rules = (Capacity(HERE, np.array([1, 1]), np.array([1]), np.ones(1, dtype=np.int64)), MoveBudget(HERE, 0))
    tiers = tuple(
        Tier(name, (Weighted(1, Unplaced(HERE, np.array(cost))),))
        for name, cost in (("urgent", [0, 1]), ("pending", [1, 0]))
    )
    two = np.array([2, 2])
    problem = Problem(("node",), ("a", "b"), two, two, Placement.of([]), rules, tiers)
    assert room_bound(problem, upper_bounds(problem), 1, (1,)) == 2


def test_many_departures_from_one_node_take_no_time() -> None:
    """Nearly 5,000 pods may leave a node; what waits finds room, and the arrays do not grow with it."""
    start = Placement.of([(0, 0, 5000)])
    rules = (Capacity(HERE, np.array([1, 2000]), np.array([5000, 5000]), np.ones(2, dtype=np.int64)),)
    tier = Tier("pending", (Weighted(1, Unplaced(HERE, np.array([0, 1]))),))
    problem = Problem(
        ("full", "empty"),
        ("old", "large"),
        np.array([5000, 5]),
        np.array([0, 5]),
        start,
        (*rules, MoveBudget(HERE, 4900)),
        (tier,),
    )
    room = Room(problem, upper_bounds(problem), 4900)
    assert room.departures == MOST_DEPARTURES
    assert room_bound(problem, upper_bounds(problem), 0, ()) == 1
