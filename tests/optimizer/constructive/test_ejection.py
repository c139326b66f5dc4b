"""Ejection: the fewest pods of one node leave for a pod that finds no room, or none do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stowplan.models.problem import MoveBudget, Problem
from stowplan.optimizer.constructive.ejection import make_room
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.settings.problem import make_problem
from tests.plans.test_replay import owned
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import node, snapshot
from tests.support.problems import WHERE


def crowded(*, room: str = "1", limit: int | None = None) -> Problem:
    """Return a problem in which a pending pod finds room on n1 if the larger of two pods leaves it for n2."""
    pods = [owned("a-x", "n1", cpu="900m"), owned("b-x", "n1", cpu="200m"), owned("c-x", "", cpu="2500m")]
    problem = make_problem(snapshot(nodes=[node("n1", cpu="3"), node("n2", cpu=room)], pods=pods)).problem
    return problem if limit is None else replace(problem, rules=(*problem.rules, MoveBudget(WHERE, limit)))


def ejected(problem: Problem) -> State:
    state = State(Evaluator(problem), problem.start)
    make_room(state, Deadline(1e6), ConstructiveParameters())
    return state


@pytest.mark.parametrize(
    ("problem", "moves", "placed"),
    [
        (crowded(), 1, 3),  # the large pod is enough
        (crowded(limit=0), 0, 2),  # nothing may move
        (crowded(room="800m"), 0, 2),  # it would find no other node
    ],
)
def test_as_few_pods_leave_as_needed(problem: Problem, moves: int, placed: int) -> None:
    state = ejected(problem)
    assert (state.moved, int(state.placement.count.sum())) == (moves, placed)
    assert Evaluator(problem).evaluate(state.placement).legal


def random_crowd(choices: Choices) -> Problem:
    """Return a problem of full nodes, pods of many sizes, and two larger ones without a node."""
    pods = [owned(f"p{n}{i}-x", f"n{n}", cpu=f"{choices.integer(2, 9)}00m") for n in range(4) for i in range(2 + n % 2)]
    waiting = [owned(f"w{i}-x", "", cpu=f"{choices.integer(12, 24)}00m") for i in range(2)]
    nodes = [node(f"n{n}", cpu="3") for n in range(4)]
    return make_problem(snapshot(nodes=nodes, pods=[*pods, *waiting])).problem


@cases(20, at_least={"placed": 5}, problem=drawn(random_crowd))
def test_what_becomes_of_a_legal_placement_is_legal(problem: Problem) -> None:
    state, evaluator = ejected(problem), Evaluator(problem)
    evaluation = evaluator.evaluate(state.placement)
    assert evaluation.legal
    assert evaluation.moves == state.moved
    before = int(problem.start.count.sum())
    assert int(state.placement.count.sum()) >= before
    count("placed", int(state.placement.count.sum()) > before)
