"""Leveling: legal, exact in what it gains, and most of what steepest descent gains, where that has tables."""

from __future__ import annotations

import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import Objective, TierSettings
from stowplan.models.problem import Problem
from stowplan.models.settings import Settings
from stowplan.optimizer.constructive.descent import Descent
from stowplan.optimizer.constructive.leveling import Leveling
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.settings.problem import make_problem
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.random_clusters import random_cluster

FOREVER = Deadline(1e6)
WITHOUT_TABLES = ConstructiveParameters(table=0)


def balance_problem(choices: Choices) -> Problem:
    """Return a tiny cluster whose nodes are to be loaded evenly, some with rules that are violated today."""
    tier = TierSettings(name="balance", variance={"cpu": 1}, moves=choices.integer(0, 1))
    objective = Objective(name="test", tiers=(tier,))
    return make_problem(random_cluster(choices, nodes=8, pods=16, broken=None), Settings(objective=objective)).problem


@cases(
    200,
    at_least={"improved": 20, "several rounds": 5, "several at once": 5, "violated today": 20},
    problem=drawn(balance_problem),
)
def test_it_gains_what_it_says_and_breaks_no_rule(problem: Problem) -> None:
    tier = next((t for t, tier in enumerate(problem.tiers) if tier.name == "balance"), None)
    if tier is None or not Leveling.suits(problem, tier, WITHOUT_TABLES):
        return
    evaluator = Evaluator(problem)
    state = State(evaluator, problem.start)
    leveling = Leveling(state, tier, WITHOUT_TABLES)
    before, rounds = evaluator.evaluate(problem.start), 0
    count("violated today", bool(before.violations))
    for _ in range(8):
        made, gain = leveling.round()
        after = evaluator.evaluate(state.placement)
        assert after.legal, after.violations
        assert after.values[:tier] <= before.values[:tier]
        if after.values[:tier] == before.values[:tier]:
            assert before.values[tier] - after.values[tier] == gain
        assert (made > 0) == (gain > 0)
        count("several at once", made > 1)
        before, rounds = after, rounds + (made > 0)
    count("improved", rounds > 0)
    count("several rounds", rounds > 1)


@pytest.mark.parametrize("seed", range(3))
def test_it_gains_most_of_what_steepest_descent_gains(seed: int) -> None:
    problem = make_problem(synthetic_snapshot(150, 1500, seed, fill=0.6), Settings(objective="balance")).problem
    tier, evaluator, values = len(problem.tiers) - 1, Evaluator(problem), []
    for heuristic in (Leveling, Descent):
        state = State(evaluator, problem.start)
        heuristic(state, tier, WITHOUT_TABLES if heuristic is Leveling else None).run(FOREVER)
        evaluation = evaluator.evaluate(state.placement)
        assert evaluation.legal
        values.append(evaluation.values[tier])
    today = evaluator.evaluate(problem.start).values[tier]
    assert today - values[0] > 0.8 * (today - values[1])
    assert values[0] < today


def test_it_leaves_limited_moves_to_descent() -> None:
    problem = make_problem(synthetic_snapshot(10, 60, 1), Settings(objective="balance", max_moves=5)).problem
    assert not Leveling.suits(problem, len(problem.tiers) - 1, WITHOUT_TABLES)


def test_time_ends_it() -> None:
    problem = make_problem(synthetic_snapshot(20, 200, 1), Settings(objective="balance")).problem
    state = State(Evaluator(problem), problem.start)
    assert Leveling(state, len(problem.tiers) - 1, WITHOUT_TABLES).run(Deadline(0.0)) == 0
    assert state.placement is problem.start
