"""Under a limit on moves, a walk finds what steepest descent cannot: who makes room for whom."""

from __future__ import annotations

import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.problem import Placement, Problem
from stowplan.models.settings import Settings
from stowplan.optimizer.constructive import warm_start
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import solve
from stowplan.optimizer.rearrangement.engine import NAME
from stowplan.optimizer.rearrangement.walking import walk
from stowplan.settings.problem import make_problem

LIMIT = 15


def tight(seed: int) -> Problem:
    settings = Settings(objective="balance", max_moves=LIMIT)
    return make_problem(synthetic_snapshot(20, 220, seed, fill=0.85), settings).problem


def descended(problem: Problem) -> Placement:
    """Return where the constructive heuristics end."""
    evaluator, found = Evaluator(problem), [problem.start]

    def offered(placement: Placement) -> None:
        if evaluator.evaluate(placement).values < evaluator.evaluate(found[-1]).values:
            found.append(placement)

    for _ in range(2):
        warm_start(evaluator, found[-1], Deadline(60.0), offered)
    return found[-1]


@pytest.mark.parametrize("seed", range(3))
def test_a_walk_spends_the_same_moves_better(seed: int) -> None:
    problem = tight(seed)
    evaluator, start = Evaluator(problem), descended(problem)
    last = len(problem.tiers) - 1
    before = evaluator.evaluate(start)
    after = evaluator.evaluate(walk(evaluator, start, last, Deadline(1.0, deterministic=True), seed))
    assert before.legal
    assert after.legal
    assert after.values[:last] == before.values[:last]
    assert after.values[last] < before.values[last]


def test_it_has_its_turn_in_a_solve() -> None:
    problem, engines = tight(1), []
    outcome = solve(problem, Options(time_limit=4.0), found=lambda placement, engine: engines.append(engine))
    assert NAME in engines
    assert problem.start.moved(outcome.placement, len(problem.nodes)) <= LIMIT


def waiting(moves: int) -> Problem:
    return make_problem(synthetic_snapshot(20, 200, 901, fill=0.9), Settings(max_moves=moves)).problem


@pytest.mark.parametrize("largest", [0, 20_000])
def test_which_few_moves_let_pods_in_is_proven_where_a_model_is_small_enough(largest: int) -> None:
    problem = waiting(3)
    options = Options(time_limit=4.0, deterministic=True, largest_model=largest)
    tiers = solve(problem, options).tiers
    first = next(tier for tier in tiers if tier.tier.name.startswith("pending") and tier.value)
    assert (first.bound_by == "CP-SAT") == bool(largest)
    if largest:
        assert first.value == first.bound
