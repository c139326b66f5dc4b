"""Bounds of what moves bring: no legal placement of a tiny problem is below them, and they are often met."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stowplan.models.problem import (
    Capacity,
    DomainCurve,
    Move,
    MoveBudget,
    Open,
    Origin,
    Placement,
    Prefer,
    Problem,
    Tier,
    Topology,
    Unplaced,
    Weighted,
)
from stowplan.optimizer.bounds.emptying import emptying_moves_bound
from stowplan.optimizer.bounds.evictions import eviction_bound
from stowplan.optimizer.bounds.leaving import leaving_bound
from stowplan.optimizer.bounds.water_filling import may_wait
from stowplan.optimizer.bounds.workload_spread import workload_spread_bound
from stowplan.optimizer.domains import upper_bounds
from tests.support.brute_force import legal_values
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import CHOOSE, random_room
from tests.support.random_clusters import Setup, random_cluster

HERE = Origin("test")


def with_tiers(problem: Problem, *tiers: tuple[Weighted, ...], limit: int | None = None) -> Problem:
    """Return a problem with other tiers, and with a limit on moves."""
    rules = tuple(rule for rule in problem.rules if not isinstance(rule, MoveBudget))
    rules += () if limit is None else (MoveBudget(HERE, limit),)
    named = tuple(Tier(f"t{t}", terms) for t, terms in enumerate(tiers))
    return replace(problem, rules=rules, tiers=named)


def any_problem(choices: Choices) -> Problem:
    """Return a tiny problem: a cluster, or one that is made of arrays."""
    if choices.chance(0.5):
        return random_room(choices)
    return Setup("pack").compile(random_cluster(choices, broken=None)).problem


def random_curve(choices: Choices, problem: Problem, group: list[int]) -> DomainCurve:
    domain = choices.array(len(problem.nodes), -1 if choices.chance(0.33) else 0, 2)
    return DomainCurve(HERE, np.array(group), Topology("zone", domain, ("a", "b", "c")), choices.array(3, 0, 1), CHOOSE)


def random_spread(choices: Choices) -> Problem:
    """Return a problem of workloads to spread, which may share classes; moves may cost something, or be limited."""
    problem = any_problem(choices)
    classes = len(problem.classes)
    groups = [list(range(classes)), [0]] if choices.chance(0.25) else [[c] for c in range(classes)]
    curves = [
        Weighted(choices.integer(1, 3), random_curve(choices, problem, group)) for group in groups for _ in range(2)
    ]
    move = Weighted(1, Move(HERE, choices.array(classes, 0, 2)))
    return with_tiers(problem, (*curves, move), limit=choices.one((None, 0, 1, 2, 3)))


@cases(20, at_least={"met": 3, "above nothing": 3}, problem=drawn(random_spread))
def test_no_placement_spreads_workloads_further_with_the_moves_it_makes(problem: Problem) -> None:
    least = min(value[0] for value in legal_values(problem))
    bound = workload_spread_bound(problem, upper_bounds(problem), 0)
    assert bound <= least
    count("met", bound == least)
    count("above nothing", bound > 0)


@cases(40, at_least={"higher": 3}, problem=drawn(random_spread))
def test_pods_that_earlier_tiers_schedule_are_spread_too(problem: Problem) -> None:
    """For all values that a tier before may have: no placement that keeps it is below the bound."""
    count_pods = Tier("pending", (Weighted(1, Unplaced(HERE, np.ones(len(problem.classes), dtype=np.int64))),))
    after = replace(problem, tiers=(count_pods, *problem.tiers))
    values, upper = legal_values(after), upper_bounds(after)
    loose = workload_spread_bound(after, upper, 1)
    for reached in {value[0] for value in values}:
        least = min(value[1] for value in values if value[0] <= reached)
        bound = workload_spread_bound(after, upper, 1, may_wait(after, 1, (reached,)))
        assert loose <= bound <= least
        count("higher", bound > loose)


@pytest.mark.parametrize("limit", [0, 1, 2, 3, None])
def test_one_workload_with_room_is_spread_as_the_bound_says(limit: int | None) -> None:
    start = Placement.of([(0, 0, 3), (0, 1, 2)])
    term = DomainCurve(
        HERE, np.array([0]), Topology("node", np.arange(3), ("a", "b", "c")), np.array([0, 0, 1]), CHOOSE
    )
    tiers = (Tier("spread", (Weighted(2, term), Weighted(1, Move(HERE, np.array([1]))))),)
    rules = () if limit is None else (MoveBudget(HERE, limit),)
    problem = Problem(("a", "b", "c"), ("web",), np.array([5]), np.array([0]), start, rules, tiers)
    least = min(value[0] for value in legal_values(problem))
    assert workload_spread_bound(problem, upper_bounds(problem), 0) == least


def random_task(choices: Choices) -> tuple[Problem, bool]:
    """Return a problem whose first tier counts nodes in use, or unplaced pods, and whose second counts moves."""
    problem = any_problem(choices)
    classes, nodes = problem.shape
    move = Weighted(1, Move(HERE, choices.array(classes, 0, 3)))
    if choices.chance(0.5):
        return with_tiers(problem, (Weighted(2, Unplaced(HERE, choices.array(classes, 0, 2))),), (move,)), False
    cost = np.ones(nodes, dtype=np.int64) if choices.chance(0.5) else choices.array(nodes, 0, 4)
    return with_tiers(problem, (Weighted(2, Open(HERE, cost, choices.array(nodes, 0, 1))),), (move,)), True


@cases(20, at_least={"above nothing": 1}, task=drawn(random_task))
def test_no_placement_empties_nodes_or_makes_room_with_fewer_moves(task: tuple[Problem, bool]) -> None:
    problem, empties = task
    values = legal_values(problem)
    for reached in {value[0] for value in values}:
        least = min(value[1] for value in values if value[0] <= reached)
        bound = (emptying if empties else evicting)(problem, reached)
        assert bound <= least
        count("above nothing", bound > 0)


def emptying(problem: Problem, reached: int) -> int:
    return emptying_moves_bound(problem, 1, (reached,))


def evicting(problem: Problem, reached: int) -> int:
    return eviction_bound(problem, upper_bounds(problem), 1, (reached,))


def full_nodes(pods: int) -> Problem:
    """Return three nodes, each with two small pods and room for one more, and large pods that take two evictions."""
    start = Placement.of((0, n, 2) for n in range(3))
    capacity = Capacity(HERE, np.array([1, 3]), np.array([3, 3, 3]), np.ones(3, dtype=np.int64))
    tiers = (
        Tier("pending", (Weighted(1, Unplaced(HERE, np.array([0, 1]))),)),
        Tier("moves", (Weighted(1, Move(HERE, np.array([1, 1]))),)),
    )
    size, optional = np.array([6, pods]), np.array([6, pods])
    return Problem(("a", "b", "c"), ("small", "large"), size, optional, start, (capacity,), tiers)


@pytest.mark.parametrize("pods", [1, 2, 3])
def test_each_large_pod_takes_two_evictions(pods: int) -> None:
    problem = full_nodes(pods)
    for left in range(pods + 1):
        assert evicting(problem, left) == 2 * (pods - left)
    assert min(legal_values(problem)) == (0, 2 * pods)


def test_the_fewest_pods_leave_first() -> None:
    start = Placement.of([(0, 0, 3), (0, 1, 1), (0, 2, 2)])
    one = np.ones(3, dtype=np.int64)
    tiers = (
        Tier("nodes", (Weighted(1, Open(HERE, one, 0 * one)),)),
        Tier("moves", (Weighted(1, Move(HERE, one[:1])),)),
    )
    problem = Problem(("a", "b", "c"), ("web",), np.array([6]), np.array([0]), start, (), tiers)
    assert [emptying(problem, reached) for reached in (3, 2, 1)] == [0, 1, 3]
    assert min(legal_values(problem)) == (1, 3)


def random_charges(choices: Choices) -> Problem:
    """Return a problem whose first tier charges pods on nodes, and whose second counts moves."""
    problem = any_problem(choices)
    classes, nodes = problem.shape
    rows = choices.integer(1, 2)
    table = np.stack([choices.array(nodes, -1, 2).clip(0) for _ in range(rows)])
    charge = Prefer(HERE, choices.array(classes, 0, rows - 1), table)
    move = Weighted(1, Move(HERE, choices.array(classes, 0, 3)))
    return with_tiers(problem, (Weighted(choices.integer(1, 2), charge),), (move,))


@cases(100, at_least={"above nothing": 5, "met": 3}, problem=drawn(random_charges))
def test_no_placement_frees_nodes_with_fewer_moves(problem: Problem) -> None:
    values = legal_values(problem)
    for reached in {value[0] for value in values}:
        least = min(value[1] for value in values if value[0] <= reached)
        bound = leaving_bound(problem, upper_bounds(problem), 1, (reached,))
        assert bound <= least
        count("above nothing", bound > 0)
        count("met", 0 < bound == least)


def test_pods_that_leave_need_room_where_others_are() -> None:
    """Three large pods leave a node; each of the two others has room for one of them, or for more if small ones go."""
    start = Placement.of([(0, 0, 3), (1, 1, 2), (1, 2, 2)])
    capacity = Capacity(HERE, np.array([3, 1]), np.array([9, 6, 6]), np.ones(3, dtype=np.int64))
    charge = Prefer(HERE, np.array([0, 1]), np.array([[1, 0, 0], [0, 0, 0]]))
    tiers = (
        Tier("left", (Weighted(1, charge),)),
        Tier("moves", (Weighted(1, Move(HERE, np.array([1, 1]))),)),
    )
    problem = Problem(
        ("a", "b", "c"), ("large", "small"), np.array([3, 4]), np.zeros(2, int), start, (capacity,), tiers
    )
    upper = upper_bounds(problem)
    assert [leaving_bound(problem, upper, 1, (left,)) for left in (3, 2, 1, 0)] == [0, 1, 2, 5]
    assert min(legal_values(problem)) == (0, 5)
