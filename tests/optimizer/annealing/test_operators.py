"""Each move operator by itself: legal, never worse, and good for its purpose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from stowplan.models.problem import (
    AtMost,
    Capacity,
    Curves,
    NodeCurve,
    Origin,
    Placement,
    Prefer,
    Problem,
    Tier,
    Topology,
    Weighted,
)
from stowplan.optimizer.annealing import anneal as annealing
from stowplan.optimizer.annealing.anneal import anneal
from stowplan.optimizer.annealing.kernel.chain import Penalties
from stowplan.optimizer.annealing.kernel.metropolis import EJECTION, OPERATORS, RELATED, SHIFT, SWAP, TRADE, run_chain
from stowplan.optimizer.annealing.parameters import AnnealingParameters
from stowplan.optimizer.annealing.state_builder import build_state
from stowplan.optimizer.compiled.random import start_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.support.cases import cases
from tests.support.choices import Choices, drawn
from tests.support.problems import ints, random_affinity, random_problem

WHERE = Origin("test")


def only(operator: int) -> AnnealingParameters:
    """Return parameters with which nothing but one move operator is tried."""
    weights = [0.0] * OPERATORS
    weights[operator] = 1.0
    one, two, three, four, five, six, seven, eight, nine, ten = weights
    return AnnealingParameters(operator_weights=(one, two, three, four, five, six, seven, eight, nine, ten))


def any_problem(choices: Choices) -> Problem:
    return random_affinity(choices) if choices.chance(0.5) else random_problem(choices, broken=None)


@pytest.mark.parametrize("kind", range(OPERATORS))
@cases(6, problem=drawn(any_problem), seed=st.integers(0, 99))
def test_any_operator_alone_is_legal_and_no_worse(problem: Problem, seed: int, kind: int) -> None:
    evaluator = Evaluator(problem)
    found = evaluator.evaluate(
        anneal(evaluator, problem.start, Deadline(0.1, deterministic=True), seed, parameters=only(kind))
    )
    assert found.legal
    assert found.values <= evaluator.evaluate(problem.start).values


def _three_apart() -> Problem:
    """Build a problem of five full nodes, where three pods that may not meet should change places in a ring."""
    nodes, demand = 5, ints([1, 1, 1, 1, 1])
    names = tuple("abcde")
    apart = AtMost(WHERE, ints([0, 1, 2]), Topology("hostname", np.arange(nodes), names), 1, ints([0] * nodes))
    table = np.array([[(n - c - 1) % 3 if n < 3 else 9 for n in range(nodes)] for c in range(3)] + [[0] * nodes] * 2)
    prefer = Prefer(WHERE, np.arange(5), table.astype(np.int64))
    room = Capacity(WHERE, demand, np.ones(nodes, dtype=np.int64), np.ones(nodes, dtype=np.int64))
    start = Placement.of([(c, c, 1) for c in range(5)])
    ones = np.ones(5, dtype=np.int64)
    tiers = (Tier("prefer", (Weighted(1, prefer),)),)
    return Problem(names, names, ones, 0 * ones, start, (room, apart), tiers)


def test_related_pods_change_places() -> None:
    problem = _three_apart()
    evaluator = Evaluator(problem)
    assert evaluator.evaluate(problem.start).values == (6,)
    found = anneal(evaluator, problem.start, Deadline(0.1, deterministic=True), parameters=only(RELATED))
    assert evaluator.evaluate(found).values == (0,)
    assert {(3, 3, 1), (4, 4, 1)} <= set(found.entries())  # pods that are not related are never exchanged


def test_related_pods_are_drawn_where_there_are_any() -> None:
    problem = _three_apart()
    room, apart = problem.rules
    assert isinstance(apart, AtMost)
    for rules, some in (
        ((room, apart), True),
        ((room,), False),
        ((room, replace(apart, group=ints([1]))), False),
    ):
        changed = replace(problem, rules=rules)
        state = build_state(Evaluator(changed), changed.start)
        share = np.diff(annealing._mix(changed.tiers[0], state, AnnealingParameters()), prepend=0)
        assert bool(share[RELATED]) == some


def _one_for_two() -> Problem:
    """Build a problem where a pod of two units should change places with two of one, and nothing less gains anything.

    Both nodes have room for three units, so on the way one holds too much.
    """
    demand = ints([2, 1])
    curves = Curves(np.array([[0, 2]]), np.array([[-9, 9]]), np.array([[18, 0]]))
    balance = NodeCurve(WHERE, demand, ints([0, 0]), ints([0, 0]), curves)
    prefer = Prefer(WHERE, np.arange(2), np.array([[1, 0], [0, 1]]))
    room = Capacity(WHERE, demand, ints([3, 3]), ints([1, 1]))
    start = Placement.of([(0, 0, 1), (1, 1, 2)])
    tiers = (Tier("balance", (Weighted(1, balance), Weighted(1, prefer))),)
    return Problem(("big", "small"), ("a", "b"), ints([1, 2]), ints([0, 0]), start, (room,), tiers)


@pytest.mark.parametrize(("kind", "end"), [(SHIFT, 3), (SWAP, 3), (EJECTION, 3), (TRADE, 0)])
def test_a_pod_is_exchanged_for_several(kind: int, end: int) -> None:
    problem = _one_for_two()
    state = build_state(Evaluator(problem), problem.start)
    mix = annealing._mix(problem.tiers[0], state, only(kind))
    run_chain(state, annealing._chain(state, start_of(1), mix, 100), 1000, 0, 0.0, 0.0, Penalties(0.0, 0.0, 0))
    assert state.value[0] == end


def test_no_exchange_for_several_where_no_loads_count() -> None:
    for problem, some in ((_three_apart(), False), (_one_for_two(), True)):
        state = build_state(Evaluator(problem), problem.start)
        share = np.diff(annealing._mix(problem.tiers[0], state, AnnealingParameters()), prepend=0)
        assert bool(share[TRADE]) == some
