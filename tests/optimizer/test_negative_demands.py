"""Capacities in which some classes ask for less than nothing, as items of published packings do."""

from __future__ import annotations

import numpy as np

from stowplan.instances.suites.packing import Packing, packing_problem
from stowplan.models.problem import Capacity, Open, Origin, Placement, Problem, Tier, Unplaced, Weighted
from stowplan.models.result import Status
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options, solve
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn


def answered(problem: Problem) -> None:
    """Solve, and compare with enumeration."""
    outcome = solve(problem, Options(time_limit=5, deterministic=True))
    assert outcome.status is Status.OPTIMAL
    assert outcome.values == best(problem)
    assert Evaluator(problem).evaluate(outcome.placement).legal
    assert not outcome.notes
    count("negative", any((rule.demand < 0).any() for rule in problem.rules if isinstance(rule, Capacity)))


def random_bins(choices: Choices) -> Problem:
    packing = Packing(np.array([8, 9]), choices.array((5, 2), -3, 6), np.ones(5, dtype=np.int64))
    return packing_problem(packing).problem


def random_nodes(choices: Choices) -> Problem:
    """Build three nodes, some of which may hold too much."""
    demand, free, size = choices.array(3, -3, 5), choices.array(3, 0, 6), choices.array(3, 1, 2)
    start = Placement.of((c, choices.integer(0, 2), 1) for c in range(3) if choices.chance(0.7))
    names, ones, zero = ("a", "b", "c"), np.ones(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    tiers = (
        Tier("unplaced", (Weighted(1, Unplaced(Origin("unplaced"), ones)),)),
        Tier("open", (Weighted(1, Open(Origin("open"), ones, zero)),)),
    )
    rules = (Capacity(Origin("room"), demand, free, ones),)
    return Problem(names, names, size, size - start.placed(3), start, rules, tiers)


@cases(16, at_least={"negative": 8}, problem=drawn(random_bins))
def test_bins_are_packed_to_the_optimum_with_items_of_negative_size(problem: Problem) -> None:
    answered(problem)


@cases(16, at_least={"negative": 5}, problem=drawn(random_nodes))
def test_nodes_are_packed_to_the_optimum_with_pods_of_negative_demand(problem: Problem) -> None:
    answered(problem)
