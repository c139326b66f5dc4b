"""Room that moved pods hold on the nodes they left: what the search books of them, and how it begins."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import strategies as st

from stowplan.models.arrays import Ints
from stowplan.models.problem import Capacity, Problem
from stowplan.optimizer.annealing.anneal import anneal
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.moves import shift
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.annealing.state_builder import build_state
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.support.cases import cases, count
from tests.support.choices import steps
from tests.support.problems import problems_with_room


def _held(problem: Problem, where: Ints, held: list[int]) -> int:
    """Count what moved pods hold, class by class."""
    classes = np.repeat(np.arange(len(problem.classes)), problem.size)
    now = Counter(zip(classes.tolist(), where.tolist(), strict=True))
    return sum(held[c] * max(0, k - now[c, n]) for c, n, k in problem.start.entries())


def held_by_class(problem: Problem, state: SearchState) -> Ints:
    """``[c]`` what a pod that has moved holds on the node it left."""
    return state.cls[:, state.head[at.H_C_MOVE] + len(problem.tiers)]


@cases(15, at_least={"moved pods hold room": 16}, problem=problems_with_room(), walk=steps(120, 2))
def test_held_room_follows_every_move(problem: Problem, walk: list[tuple[int, ...]]) -> None:
    state = build_state(Evaluator(problem), problem.start)
    tiers = len(problem.tiers)
    held = held_by_class(problem, state).tolist()
    base = int(state.value[tiers + at.HELD]) - _held(problem, state.pod[:, at.P_NODE], held)
    for which, where in walk:
        p, target = which % problem.pods, where % (len(problem.nodes) + 1)
        if state.pod[p, at.P_NODE] != target:
            shift(state, p, target)
        now = _held(problem, state.pod[:, at.P_NODE], held)
        assert state.value[tiers + at.HELD] - base == now
        count("moved pods hold room", now > 0)


@cases(15, at_least={"some": 1, "none": 1}, problem=problems_with_room())
def test_only_capacities_that_stay_charged_are_held(problem: Problem) -> None:
    state = build_state(Evaluator(problem), problem.start)
    charged = [rule for rule in problem.rules if isinstance(rule, Capacity) and rule.held_on_source]
    some = any(rule.demand.any() for rule in charged)
    assert held_by_class(problem, state).any() == some
    count("some" if some else "none")


@cases(8, at_least={"better": 3}, problem=problems_with_room(), seed=st.integers(0, 99))
def test_annealing_with_held_room_stays_legal(problem: Problem, seed: int) -> None:
    evaluator = Evaluator(problem)
    found = evaluator.evaluate(anneal(evaluator, problem.start, Deadline(0.2, deterministic=True), seed))
    before = evaluator.evaluate(problem.start).values
    assert found.legal
    assert found.values <= before
    count("better", found.values < before)
