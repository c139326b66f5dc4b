"""What few moves can gain: no legal placement of a tiny problem is below the bound, and some are met."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.problem import Curves, Move, MoveBudget, NodeCurve, Origin, Placement, Problem, Tier, Weighted
from stowplan.models.settings import Settings
from stowplan.optimizer.bounds import CHEAP, best_bound
from stowplan.optimizer.bounds.few_moves import few_moves_bound
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.settings.problem import make_problem
from tests.optimizer.bounds.test_bounds_of_moves import any_problem
from tests.support.brute_force import legal_values
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import ints, lifted

HERE = Origin("test")


def convex(choices: Choices, nodes: int, classes: int) -> NodeCurve:
    """Return a cost of loads that falls and rises in any way, as long as it is convex."""
    corners = sorted(choices.some(range(9), 3))
    slopes = sorted(choices.some(range(-4, 5), 3))
    which = ints([choices.one([0, 0, 0, -1]) for _ in range(nodes)])
    curves = lifted(corners, slopes, np.arange(60))
    return NodeCurve(HERE, choices.array(classes, 0, 3), choices.array(nodes, 0, 4), which, curves)


def random_loads(choices: Choices) -> Problem:
    problem = any_problem(choices)
    classes, nodes = problem.shape
    terms = [Weighted(choices.integer(1, 3), convex(choices, nodes, classes)) for _ in range(choices.integer(1, 2))]
    if choices.chance(0.5):
        terms.append(Weighted(1, Move(HERE, choices.array(classes, 0, 3))))
    rules = tuple(rule for rule in problem.rules if not isinstance(rule, MoveBudget))
    limit = MoveBudget(HERE, choices.integer(0, 3))
    return replace(problem, rules=(*rules, limit), tiers=(Tier("loads", tuple(terms)),))


@cases(60, at_least={"above nothing": 20, "met": 8, "met after a move": 3}, problem=drawn(random_loads))
def test_no_placement_gains_more_with_few_moves(problem: Problem) -> None:
    upper = upper_bounds(problem)
    least = min(value[0] for value in legal_values(problem))
    bounds = [few_moves_bound(problem, upper, 0, columns) for columns in (1, 2, 16)]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= least
    met = bounds[-1] == least > 0
    count("above nothing", bounds[-1] > 0)
    count("met", met)
    count("met after a move", met and least < Evaluator(problem).evaluate(problem.start).values[0])


@pytest.mark.parametrize(("moves", "share"), [(5, 0.8), (20, 0.6), (50, 0.3)])
def test_no_time_is_needed_to_know_what_few_moves_leave(moves: int, share: float) -> None:
    problem = make_problem(synthetic_snapshot(100, 1000, 7), Settings(objective="balance", max_moves=moves)).problem
    evaluator, last = Evaluator(problem), len(problem.tiers) - 1
    today = evaluator.evaluate(problem.start).values
    bound, name = best_bound(
        evaluator, upper_bounds(problem), last, today[:last], today[last], Deadline(0.0), bounds=CHEAP
    )
    assert name == "few-moves bound"
    assert share * today[last] < bound < today[last]


@pytest.mark.parametrize("steep", [2**20, 2**39, 2**40])
def test_steep_curves_of_large_loads_are_counted_without_overflow(steep: int) -> None:
    far = 2**28
    curves = Curves(ints([[0, 1, far]]), ints([[-steep, -1, 0]]), ints([[steep + far - 1, far - 1, 0]]))
    term = NodeCurve(HERE, ints([far]), ints([0, 0]), ints([0, -1]), curves)
    tiers = (Tier("loads", (Weighted(1, term),)),)
    rules = (MoveBudget(HERE, 1),)
    problem = Problem(("a", "b"), ("web",), ints([1]), ints([0]), Placement.of([(0, 1, 1)]), rules, tiers)
    assert min(value[0] for value in legal_values(problem)) == 0
    assert few_moves_bound(problem, upper_bounds(problem), 0) == 0
