"""Changes of nodes: bounds hold for every limit on moves, placements keep all rules, few moves are found and proven."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.problem import MoveBudget, Placement, Problem
from stowplan.models.result import Status
from stowplan.models.settings import Settings
from stowplan.optimizer.bounds.lagrangian import lagrangian_bound
from stowplan.optimizer.constructive import warm_start
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.node_changes.engine import NodeChangeEngine
from stowplan.optimizer.node_changes.parameters import NodeChangeParameters
from stowplan.optimizer.node_changes.realization import realize
from stowplan.optimizer.portfolio import solve
from stowplan.settings.problem import make_problem
from tests.support.brute_force import best, legal_values
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import WHERE, random_problem
from tests.support.random_clusters import Setup, random_cluster

WORK = Deadline(20, deterministic=True)


def limited(problem: Problem, limit: int | None) -> Problem:
    """Return a problem with another limit on moves."""
    rules = tuple(rule for rule in problem.rules if not isinstance(rule, MoveBudget))
    return replace(problem, rules=rules if limit is None else (*rules, MoveBudget(WHERE, limit)))


def random_limited(choices: Choices) -> Problem:
    """Return a tiny problem of which few pods may move."""
    if choices.chance(0.3):
        return limited(random_problem(choices, broken=None), choices.integer(0, 3))
    setup = Setup(choices.one(("balance", "pack", "spread")))
    return limited(setup.compile(random_cluster(choices, broken=None)).problem, choices.integer(0, 3))


def engines(problem: Problem) -> list[tuple[Problem, int, NodeChangeEngine]]:
    """Return an engine for every tier that suits, at the start, with the tiers before it as they are at the start."""
    evaluator, upper = Evaluator(problem), upper_bounds(problem)
    values = evaluator.evaluate(problem.start).values
    return [
        (problem, tier, NodeChangeEngine(evaluator, upper, tier, values[:tier], problem.start))
        for tier in range(len(values))
        if NodeChangeEngine.suits(problem, tier)
    ]


@cases(10, at_least={"above nothing": 1, "met": 1}, problem=drawn(random_limited))
def test_no_placement_is_below_the_bound_for_any_limit(problem: Problem) -> None:
    for limited_problem, tier, engine in engines(problem):
        start = Evaluator(problem).evaluate(problem.start).values
        bound = engine.bound(WORK)
        assert bound is not None
        assert engine.generation is not None
        for limit in range(4):
            legal = legal_values(limited(limited_problem, limit))
            below = [v[tier] for v in legal if all(a <= b for a, b in zip(v[:tier], start[:tier], strict=True))]
            assert engine.generation.bound(limit) <= min(below)
            count("met", engine.generation.bound(limit) == min(below))
        count("above nothing", bound > 0)


@cases(10, at_least={"better": 1}, problem=drawn(random_limited))
def test_what_is_offered_is_legal_or_told_apart_and_no_better_than_the_optimum(problem: Problem) -> None:
    evaluator, optimum = Evaluator(problem), best(problem)
    for _, _, engine in engines(problem):
        engine.bound(WORK)
        offered: list[Placement] = []
        engine.improve(WORK, taker(evaluator, offered), lambda: False)
        for placement in offered:
            evaluation = evaluator.evaluate(placement)
            if evaluation.legal:
                assert evaluation.values >= optimum
                count("better", evaluation.values < evaluator.evaluate(problem.start).values)


def taker(evaluator: Evaluator, offered: list[Placement]) -> Callable[[Placement], bool]:
    """Return a function that keeps what is offered, and says whether it is the best so far."""
    best_values = [evaluator.evaluate(evaluator.problem.start).values]

    def offer(placement: Placement) -> bool:
        offered.append(placement)
        evaluation = evaluator.evaluate(placement)
        if not evaluation.legal or evaluation.values >= best_values[-1]:
            return False
        best_values.append(evaluation.values)
        return True

    return offer


@cases(15, at_least={"moves": 3}, problem=drawn(random_limited))
def test_the_portfolio_proves_the_optimum_of_few_moves(problem: Problem) -> None:
    outcome = solve(problem, Options(time_limit=20, deterministic=True))
    assert outcome.values == best(problem)
    assert outcome.status is Status.OPTIMAL
    assert not outcome.notes
    count("moves", Evaluator(problem).evaluate(outcome.placement).moves)


def test_the_bound_is_as_good_as_that_of_the_linear_relaxation_and_nearly_met() -> None:
    problem = make_problem(synthetic_snapshot(12, 90, 3), Settings(max_moves=5)).problem
    evaluator, upper, found = Evaluator(problem), upper_bounds(problem), [problem.start]
    warm_start(evaluator, problem.start, WORK, found.append)
    values = evaluator.evaluate(found[-1]).values
    tier = len(values) - 1
    engine = NodeChangeEngine(evaluator, upper, tier, values[:tier], found[-1])
    bound = engine.bound(WORK)
    relaxed = lagrangian_bound(evaluator, upper, tier, values[:tier], WORK)
    assert bound is not None
    assert relaxed is not None
    assert relaxed * (1 - 1e-4) <= bound <= values[tier]
    placement = engine.whole(WORK)
    assert placement is not None
    evaluation = evaluator.evaluate(placement)
    assert evaluation.moves <= 5
    if evaluation.legal and evaluation.values[:tier] <= values[:tier]:
        assert bound <= evaluation.values[tier]


def test_a_bound_that_says_something_takes_no_linear_relaxation() -> None:
    """Large clusters have no time for one: the price of a move is bisected for, with the multipliers of a placement."""
    problem = make_problem(synthetic_snapshot(60, 600, 7), Settings(max_moves=20)).problem
    evaluator, found = Evaluator(problem), [problem.start]
    warm_start(evaluator, problem.start, WORK, found.append)
    start, value = (evaluator.evaluate(placement).values for placement in (problem.start, found[-1]))
    tier = len(value) - 1
    shares = []
    for bisections in (0, 10):
        parameters = NodeChangeParameters(bisections=bisections, begin=0.0, rounds=0)
        engine = NodeChangeEngine(evaluator, upper_bounds(problem), tier, value[:tier], found[-1], parameters)
        said: list[int] = []
        bound = engine.bound(Deadline(60), None, said.append)
        assert [bound] == said
        assert bound is not None
        assert bound <= value[tier]
        shares.append((start[tier] - value[tier]) / (start[tier] - bound))
    assert 0.7 < shares[0] < shares[1]


def test_a_change_that_no_rule_allows_leaves_its_pods_where_they_were() -> None:
    problem = make_problem(synthetic_snapshot(12, 90, 3), Settings(max_moves=5)).problem
    evaluator = Evaluator(problem)
    values = evaluator.evaluate(problem.start).values
    engine = NodeChangeEngine(evaluator, upper_bounds(problem), len(values) - 1, values[:-1], problem.start)
    assert engine.generation is not None
    programs = engine.generation.programs
    full = programs.tables.upper[programs.program[0]] + 1
    coming, leaving = full, np.zeros_like(full)
    k = int(np.flatnonzero(np.bincount(programs.kind[problem.start.cls], minlength=len(full)))[0])
    source = int(problem.start.node[programs.kind[problem.start.cls] == k][0])
    leaving[k] = -1
    placement = realize(evaluator, programs, [(source, leaving), (0, coming)])
    assert evaluator.evaluate(placement).legal


def test_sub_problems_let_pods_in_with_few_moves() -> None:
    """No change of a node costs anything then: the master has only the costs of pods without a node."""
    problem = make_problem(synthetic_snapshot(14, 150, 4, fill=0.95), Settings(max_moves=3)).problem
    evaluator, found = Evaluator(problem), [problem.start]
    warm_start(evaluator, problem.start, WORK, found.append, tiers=2)
    before = evaluator.evaluate(found[-1]).values
    tier = next(tier for tier, value in enumerate(before) if value)
    assert problem.tiers[tier].counts_unscheduled
    engine = NodeChangeEngine(evaluator, upper_bounds(problem), tier, before[:tier], found[-1])
    bound = engine.bound(WORK)
    offered: list[tuple[int, ...]] = []

    def offer(placement: Placement) -> bool:
        evaluation = evaluator.evaluate(placement)
        if better := evaluation.legal and evaluation.values < min(offered, default=before):
            offered.append(evaluation.values)
        return better

    engine.improve(WORK, offer, lambda: bool(offered))
    assert min(offered)[: tier + 1] < before[: tier + 1]
    assert bound is not None
    assert bound <= min(offered)[tier]
