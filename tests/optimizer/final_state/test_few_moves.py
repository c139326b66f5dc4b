"""With few moves allowed, they are spent on what gains most by the exact score."""

from __future__ import annotations

from itertools import pairwise

import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.problem import Placement, Problem
from stowplan.models.settings import Settings
from stowplan.optimizer.constructive.descent import Descent
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.descent import FinalStateDescent
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.position import Position
from stowplan.optimizer.final_state.search import FinalStateSearch
from stowplan.settings.problem import make_problem

UNITS = Deadline(2.0, deterministic=True)


def asked(seed: int, moves: int) -> tuple[Problem, int]:
    """Return a problem with at most so many moves, and its tier with the exact score."""
    compiled = make_problem(synthetic_snapshot(30, 300, seed, fill=0.6), Settings(objective="kube", max_moves=moves))
    tiers = compiled.problem.tiers
    return compiled.problem, next(t for t, tier in enumerate(tiers) if tier.final is not None)


def descended(problem: Problem, tier: int) -> tuple[Position, list[Placement]]:
    steered = Evaluator(problem.steered)
    position, found = Position(steered, problem, tier, problem.start), []
    descent = FinalStateDescent(
        position, State(steered, problem.start), tier, found.append, FinalStateParameters(compared=8)
    )
    descent.run(UNITS)
    return position, found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("moves", [1, 4])
def test_the_exact_descent_is_ahead_of_the_surrogates_alone(seed: int, moves: int) -> None:
    problem, tier = asked(seed, moves)
    evaluator, steered = Evaluator(problem), State(Evaluator(problem.steered), problem.start)
    Descent(steered, tier).run(UNITS)
    position, found = descended(problem, tier)
    (placement,) = found
    reached = evaluator.evaluate(placement)
    assert reached.legal
    assert reached.values[tier] == position.cost
    assert position.cost <= evaluator.evaluate(steered.placement).values[tier]
    assert position.cost < evaluator.evaluate(problem.start).values[tier]


def test_no_pod_moves_twice_in_one_step() -> None:
    """A pod that goes home to save its move is no longer there to be exchanged for another one."""
    problem, tier = asked(0, 50)
    position = Position(Evaluator(problem.steered), problem, tier, problem.start)
    c, n = next((c, n) for c, n, k in problem.start.entries() if k == 1)
    others = [m for m in range(len(problem.nodes)) if m != n][:2]
    before = position.placement
    assert position.attempt([(c, n, others[0]), (c, n, others[1])], lambda change: True) is None
    assert position.placement.same_as(before)
    assert position.cost == Evaluator(problem).evaluate(before).values[tier]


@pytest.mark.parametrize("seed", range(3))
def test_a_spent_move_is_taken_back_for_a_better_one(seed: int) -> None:
    """From a placement that wastes its moves the search comes away, though none is left to spend."""
    problem, tier = asked(seed, 2)
    evaluator, state = Evaluator(problem), State(Evaluator(problem.steered), problem.start)
    for c, n, _ in problem.start.entries():
        target = state.tightest(c, n, state.allowed(c).nonzero()[0], 5)
        if state.left and target is not None:
            state.shift(c, n, target)
    assert state.left == 0
    nodes, wasted = len(problem.nodes), state.placement
    spent, found = evaluator.evaluate(state.placement).values[tier], []
    FinalStateSearch(state.evaluator, problem, tier, state.placement, found.append, FinalStateParameters()).run(UNITS)
    values = [evaluator.evaluate(placement) for placement in found]
    assert all(value.legal for value in values)
    assert values[-1].values[tier] < spent
    moved = [placement.beyond(problem.start, nodes).cls.tolist() for placement in (wasted, found[-1])]
    assert moved[0] != moved[1]  # other pods moved than those that had: some went home
    assert all(now.values < before.values for before, now in pairwise(values))
