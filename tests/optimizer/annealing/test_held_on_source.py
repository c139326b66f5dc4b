"""Room that moved pods hold on the nodes they left: what the search books of them, and how it begins."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from stowplan.models.arrays import Ints
from stowplan.models.problem import Capacity, Problem
from stowplan.optimizer.annealing.anneal import anneal
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.moves import shift
from stowplan.optimizer.annealing.state_builder import build_state
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.support.problems import random_affinity


def _held(problem: Problem, where: Ints, held: list[int]) -> int:
    """Count what moved pods hold, class by class."""
    classes = np.repeat(np.arange(len(problem.classes)), problem.size)
    now = Counter(zip(classes.tolist(), where.tolist(), strict=True))
    return sum(held[c] * max(0, k - now[c, n]) for c, n, k in problem.start.entries())


@pytest.mark.parametrize("seed", range(60))
def test_held_room_follows_every_move(seed: int) -> None:
    problem = random_affinity(seed)
    state = build_state(Evaluator(problem), problem.start)
    tiers = len(problem.tiers)
    held = state.cls[:, state.head[at.H_C_MOVE] + tiers].tolist()
    base = int(state.value[tiers + at.HELD]) - _held(problem, state.pod[:, at.P_NODE], held)
    rng = random.Random(seed)
    for _ in range(100):
        p, target = rng.randrange(problem.pods), rng.randrange(len(problem.nodes) + 1)
        if state.pod[p, at.P_NODE] != target:
            shift(state, p, target)
        assert state.value[tiers + at.HELD] - base == _held(problem, state.pod[:, at.P_NODE], held)


def test_only_capacities_that_stay_charged_are_held() -> None:
    some = False
    for seed in range(60):
        problem = random_affinity(seed)
        state = build_state(Evaluator(problem), problem.start)
        held = state.cls[:, state.head[at.H_C_MOVE] + len(problem.tiers)]
        charged = [rule for rule in problem.rules if isinstance(rule, Capacity) and rule.held_on_source]
        assert held.any() == any(rule.demand.any() for rule in charged)
        some = some or bool(charged)
    assert some


@pytest.mark.parametrize("seed", range(10))
def test_annealing_with_rents_stays_legal(seed: int) -> None:
    problem = random_affinity(seed)
    evaluator = Evaluator(problem)
    found = evaluator.evaluate(anneal(evaluator, problem.start, Deadline(0.2, deterministic=True), seed))
    assert found.legal
    assert found.values <= evaluator.evaluate(problem.start).values
