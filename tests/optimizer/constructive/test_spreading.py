"""Spreading: legal, exact in what it gains, and at its end where no single move of a pod gains anything."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from stowplan.models.objective import HOSTNAME, ZONE, Objective, TierSettings
from stowplan.models.problem import MoveBudget, Problem
from stowplan.models.settings import Settings
from stowplan.optimizer.constructive.spreading import Spreading
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.settings.problem import make_problem
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import WHERE
from tests.support.random_clusters import random_cluster

FOREVER = Deadline(1e6)


def spread_problem(choices: Choices) -> Problem:
    """Return a tiny cluster whose pods are to be spread, alone or after another tier that moves could worsen."""
    spread = TierSettings(name="even", spread={ZONE: choices.integer(1, 3), HOSTNAME: 1}, moves=choices.integer(0, 1))
    first = [TierSettings(name="balance", variance={"cpu": 1})] if choices.chance(0.3) else []
    objective = Objective(name="test", tiers=(*first, spread))
    return make_problem(random_cluster(choices, broken=None), Settings(objective=objective)).problem


SPREAD = drawn(spread_problem)


def tier_of(problem: Problem) -> int:
    return next(t for t, tier in enumerate(problem.tiers) if tier.name == "even")


def legal_moves(problem: Problem, state: State) -> list[tuple[int, int, int]]:
    """Return class, source, and target of each move of one pod that is legal by all that a state knows."""
    placement = state.placement
    every = product(zip(placement.cls.tolist(), placement.node.tolist(), strict=True), range(len(problem.nodes)))
    return [(c, n, m) for (c, n), m in every if m != n and may(state, c, m) and state.legal(c, n, m)]


def may(state: State, c: int, node: int) -> bool:
    return bool(state.fits(np.array([c]), np.array([node]))[0, 0])


@cases(250, at_least={"improved": 5}, problem=SPREAD)
def test_no_single_move_improves_what_it_leaves(problem: Problem) -> None:
    tier = tier_of(problem)
    if not Spreading.suits(problem, tier):
        return
    evaluator = Evaluator(problem)
    state = State(evaluator, problem.start)
    made = Spreading(state, tier).run(FOREVER)
    evaluation = evaluator.evaluate(state.placement)
    before, after = evaluator.evaluate(problem.start).values[: tier + 1], evaluation.values[: tier + 1]
    assert evaluation.legal, evaluation.violations
    assert after < before if made else after == before
    for move in legal_moves(problem, state):
        other = evaluator.evaluate(state.placement.with_pod_moved(*move))
        # What repairs a violation may cost the tiers between: no table knows of it.
        worse = other.values[1:tier] > after[1:tier] or other.values[0] != after[0]
        assert worse or other.values[tier] >= after[tier], move
    count("improved", made > 0)


@pytest.mark.parametrize("limit", [0, 1, 2])
@cases(15, problem=SPREAD)
def test_no_more_pods_move_than_may(problem: Problem, limit: int) -> None:
    limited = replace(problem, rules=(*problem.rules, MoveBudget(WHERE, limit)))
    tier = tier_of(limited)
    if Spreading.suits(limited, tier):
        state = State(Evaluator(limited), limited.start)
        Spreading(state, tier).run(FOREVER)
        evaluation = Evaluator(limited).evaluate(state.placement)
        assert evaluation.legal, evaluation.violations
        assert evaluation.moves <= limit
