"""Closing of nodes: what it leaves is legal and in no more nodes, and it closes more than emptying one by one does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.problem import (
    Capacity,
    Move,
    MoveBudget,
    Open,
    Placement,
    Prefer,
    Problem,
    Tier,
    Unplaced,
    Weighted,
)
from stowplan.models.settings import Settings
from stowplan.optimizer.closing.engine import ClosingEngine
from stowplan.optimizer.closing.naming import Naming
from stowplan.optimizer.closing.parameters import ClosingParameters
from stowplan.optimizer.constructive.emptying import empty_nodes
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.portfolio import solve
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.planning.drain import draining
from stowplan.settings.problem import make_problem
from tests.optimizer.rearrangement.test_walk import problem_to_walk
from tests.support.cases import cases, count
from tests.support.choices import Choices, Seeded, drawn
from tests.support.problems import WHERE

REARRANGEMENT = RearrangementParameters()


def moves(problem: Problem) -> Tier:
    return Tier("moves", (Weighted(1, Move(WHERE, np.ones(len(problem.classes), dtype=np.int64))),))


def counts(problem: Problem, cost: np.ndarray, held: np.ndarray) -> Problem:
    """Return a problem that counts unscheduled pods, nodes in use, and moves."""
    waiting = Unplaced(WHERE, np.ones(len(problem.classes), dtype=np.int64))
    tiers = (Tier("pending", (Weighted(1, waiting),)), Tier("nodes", (Weighted(1, Open(WHERE, cost, held)),)))
    return replace(problem, tiers=(*tiers, moves(problem)))


def problem_to_close(choices: Choices) -> Problem:
    """Return a random problem that counts nodes in use, some of which cost nothing, or stay in use."""
    problem = problem_to_walk(choices)
    nodes = len(problem.nodes)
    return counts(problem, choices.array(nodes, 0, 3), choices.array(nodes, -2, 1).clip(0))


@cases(100, at_least={"closed": 10, "moves spared": 1}, problem=drawn(problem_to_close))
def test_what_is_left_is_legal_and_in_no_more_nodes(problem: Problem) -> None:
    evaluator = Evaluator(problem)
    assert ClosingEngine.suits(problem, 1, REARRANGEMENT)
    start = evaluator.evaluate(problem.start)
    engine = ClosingEngine(evaluator, 1, ClosingParameters(), REARRANGEMENT)
    told: list[Placement] = []
    best = engine.close(problem.start, Deadline(0.02, deterministic=True), 1, 0, told.append)
    closed = evaluator.evaluate(best)
    assert closed.legal or not start.legal
    assert closed.values[:2] <= start.values[:2]
    assert [evaluator.evaluate(one).values[:2] for one in told] == sorted(
        {evaluator.evaluate(one).values[:2] for one in told}, reverse=True
    )
    count("closed", closed.values[1] < start.values[1])
    spared: list[Placement] = []
    engine.settle(best, Deadline(0.02, deterministic=True), 1, spared.append)
    for placement in spared:
        settled = evaluator.evaluate(placement)
        assert settled.values[:2] <= closed.values[:2]
        count("moves spared", settled.values[2] < closed.values[2])


def scattered(nodes: int, used: int, seed: int) -> Problem:
    """Return pods that fill so many nodes, but for a twentieth, and lie on all nodes."""
    rng = np.random.default_rng(seed)
    pods: list[int] = []
    for _ in range(used):
        left = 95
        while left > 0:
            size = min(left, int(rng.integers(25, 60)))
            pods.append(size)
            left -= size
    rng.shuffle(pods)
    free = np.full(nodes, 100)
    at = []
    for size in pods:
        at.append(int(rng.choice(np.flatnonzero(free >= size))))
        free[at[-1]] -= size
    ones = np.ones(len(pods), dtype=np.int64)
    capacity = Capacity(WHERE, np.array(pods), np.full(nodes, 100), np.full(nodes, 1))
    problem = Problem(
        tuple(f"n{n}" for n in range(nodes)),
        tuple(f"c{c}" for c in range(len(pods))),
        ones,
        0 * ones,
        Placement.of((c, n, 1) for c, n in enumerate(at)),
        (capacity,),
        (),
    )
    return counts(problem, np.ones(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64))


@pytest.mark.parametrize("limit", [12, 20])
@pytest.mark.parametrize("seed", range(3))
def test_so_many_moves_close_more_than_emptying_one_node_after_another(seed: int, limit: int) -> None:
    problem = scattered(30, 18, seed)
    problem = replace(problem, rules=(*problem.rules, MoveBudget(WHERE, limit)))
    evaluator = Evaluator(problem)
    state = State(evaluator, problem.start)
    empty_nodes(state, 1, Deadline(60.0), ConstructiveParameters())
    emptied = evaluator.evaluate(state.placement)
    engine = ClosingEngine(evaluator, 1, ClosingParameters(), REARRANGEMENT)
    assert engine.has_moves(problem.start)
    closed = evaluator.evaluate(
        engine.close(state.placement, Deadline(2.0, deterministic=True), seed, 18, lambda placement: None)
    )
    assert closed.legal
    assert closed.values[1] < emptied.values[1]
    assert closed.values[2] <= limit


def test_where_moves_have_run_out_no_more_node_can_be_closed_with_them() -> None:
    problem = scattered(30, 18, 0)
    least = int(problem.start.per_node(30)[problem.start.per_node(30) > 0].min())
    for limit, enough in ((least - 1, False), (least, True)):
        limited = replace(problem, rules=(*problem.rules, MoveBudget(WHERE, limit)))
        engine = ClosingEngine(Evaluator(limited), 1, ClosingParameters(), REARRANGEMENT)
        assert engine.has_moves(limited.start) == enough


@pytest.mark.parametrize("seed", range(3))
def test_it_closes_more_than_emptying_one_node_after_another(seed: int) -> None:
    problem = scattered(30, 18, seed)
    evaluator = Evaluator(problem)
    state = State(evaluator, problem.start)
    empty_nodes(state, 1, Deadline(60.0), ConstructiveParameters())
    assert evaluator.evaluate(state.placement).values[1] > 18
    engine = ClosingEngine(evaluator, 1, ClosingParameters(), REARRANGEMENT)
    best = engine.close(state.placement, Deadline(2.0, deterministic=True), seed, 18, lambda placement: None)
    assert evaluator.evaluate(best).values[1] == 18


def test_nodes_that_cost_most_for_what_they_hold_are_closed() -> None:
    """Six pods need three of six nodes: those stay that cost 1, although all pods are on the others."""
    ones = np.ones(6, dtype=np.int64)
    start = Placement.of((c, 3 + c // 2, 1) for c in range(6))
    capacity = Capacity(WHERE, ones, 2 * ones, ones)
    names = tuple("abcdef")
    problem = counts(
        Problem(names, names, ones, 0 * ones, start, (capacity,), ()), np.array([1, 1, 1, 5, 5, 5]), 0 * ones
    )
    evaluator = Evaluator(problem)
    engine = ClosingEngine(evaluator, 1, ClosingParameters(), REARRANGEMENT)
    best = engine.close(start, Deadline(1.0, deterministic=True), 0, 0, lambda placement: None)
    assert evaluator.evaluate(best).values == (0, 3, 6)
    assert solve(problem, Options(2.0)).values == (0, 3, 6)


def test_what_it_does_not_know_does_not_suit() -> None:
    problem = scattered(6, 4, 0)
    assert not ClosingEngine.suits(problem, 0, REARRANGEMENT)
    assert not ClosingEngine.suits(problem, 2, REARRANGEMENT)


def test_a_trial_takes_as_long_as_its_pods_need_and_not_longer_than_there_is_time() -> None:
    problem = problem_to_close(Seeded(1))
    parameters = ClosingParameters(shortest=0.0, shortest_of_pod=2.0, trial=0.01, longest=1e6)
    engine = ClosingEngine(Evaluator(problem), 1, parameters, REARRANGEMENT)
    assert engine._trial(Deadline(1e5), 1e5).seconds == pytest.approx(max(2.0 * problem.pods, 1e3), rel=1e-3)
    assert engine._trial(Deadline(1.0), 1.0).seconds == pytest.approx(1.0, rel=1e-2)


def test_as_many_nodes_are_closed_together_whatever_a_node_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(synthetic_snapshot(12, 60, 3, fill=0.4), Settings(objective="pack")).problem
    nodes, together = len(problem.nodes), []
    stays = np.zeros(nodes, dtype=np.int64)
    for cost in (1, 1000):
        priced = counts(problem, np.full(nodes, cost), stays)
        engine, tried = ClosingEngine(Evaluator(priced), 1, ClosingParameters(bold=0.3), REARRANGEMENT), []
        monkeypatch.setattr(engine, "_without", lambda named, start, *_, tried=tried: tried.append(len(named)) or start)
        engine.close(priced.start, Deadline(5.0, deterministic=True), 1, 0, lambda placement: None)
        together.append(tried)
    assert together[0] == together[1]
    assert 0 < together[0][0] < nodes


def test_nodes_that_stay_in_use_are_tried_again_after_all_others() -> None:
    ones = np.ones(6, dtype=np.int64)
    start = Placement.of((n, n, 1) for n in range(6))
    capacity = Capacity(WHERE, ones, np.array([2, 3, 4, 5, 6, 7]), ones)
    names = tuple("abcdef")
    problem = counts(Problem(names, names, ones, 0 * ones, start, (capacity,), ()), ones, 0 * ones)
    naming, in_use = Naming(problem, ones, ClosingParameters()), np.ones(6, dtype=np.bool_)
    named = naming.next(in_use, 4)
    assert named is not None
    assert named.tolist() == [0, 1, 2, 3]
    naming.learn(named, np.array([1]))
    named = naming.next(in_use, 4)
    assert named is not None
    assert named.tolist() == [0, 2, 3]
    naming.learn(named, named[:0])
    named = naming.next(in_use, 4)
    assert named is not None
    assert named.tolist() == [0, 2, 3, 4]


@pytest.mark.parametrize(("limit", "first"), [(1, [2]), (4, [0, 1]), (5, [0, 1, 2])])
def test_as_few_moves_as_there_may_be_name_the_nodes_with_fewest_pods(limit: int, first: list[int]) -> None:
    """Nodes hold 2, 2, 1, and 9 pods, and the first two have least room."""
    pods, ones = np.array([2, 2, 1, 9]), np.ones(4, dtype=np.int64)
    start = Placement.of((n, n, int(k)) for n, k in enumerate(pods))
    capacity = Capacity(WHERE, ones, np.array([3, 3, 40, 50]), ones)
    names = tuple("abcd")
    problem = counts(Problem(names, names, pods, 0 * ones, start, (capacity,), ()), ones, 0 * ones)
    limited = replace(problem, rules=(*problem.rules, MoveBudget(WHERE, limit)))
    named = Naming(limited, ones, ClosingParameters()).next(np.ones(4, dtype=np.bool_), 4)
    assert named is not None
    assert sorted(named.tolist()) == first


def charges(problem: Problem, charged: np.ndarray) -> Problem:
    """Return a problem that counts pods on some nodes, and moves."""
    table = np.where(charged, 1, 0)[None, :]
    stays = Prefer(WHERE, np.zeros(len(problem.classes), dtype=np.int64), table)
    return replace(problem, tiers=(Tier("left", (Weighted(1, stays),)), moves(problem)))


@cases(
    60,
    at_least={"left": 8, "moves spared": 1},
    problem=drawn(problem_to_walk),
    charged=drawn(lambda choices: choices.array(12, 0, 3) == 0),
)
def test_pods_leave_the_nodes_that_charge_them_legally(problem: Problem, charged: np.ndarray) -> None:
    nodes = len(problem.nodes)
    problem = charges(problem, np.resize(charged, nodes))
    evaluator = Evaluator(problem)
    if not ClosingEngine.names_nodes(problem, 0, REARRANGEMENT):
        assert not 0 < 2 * np.resize(charged, nodes).sum() <= nodes
        return
    engine = ClosingEngine(evaluator, 0, ClosingParameters(), REARRANGEMENT)
    found = [problem.start]
    engine.leave(problem.start, Deadline(0.02, deterministic=True), 1, found.append)
    before, after = (evaluator.evaluate(placement) for placement in (problem.start, found[-1]))
    assert after.legal
    assert after.values[0] < before.values[0] or len(found) == 1
    count("left", after.values[0] < before.values[0])
    spared = [found[-1]]
    engine.settle(found[-1], Deadline(0.02, deterministic=True), 1, spared.append)
    last = evaluator.evaluate(spared[-1])
    assert last.legal
    assert last.values <= after.values
    count("moves spared", last.values < after.values)


def test_a_nearly_full_cluster_is_drained_where_others_have_to_make_room() -> None:
    snapshot = synthetic_snapshot(50, 500, 1, fill=0.9)
    settings = draining(Settings(objective="repair"), [node.name for node in snapshot.nodes[:4]])
    problem = make_problem(snapshot, settings).problem
    without = Parameters(rearrangement=RearrangementParameters(largest_table=0, largest_unlimited_table=0))
    options = Options(time_limit=0.5, deterministic=True)
    values = [
        tuple(tier.value for tier in solve(problem, replace(options, parameters=chosen)).tiers[:2])
        for chosen in (without, Parameters())
    ]
    assert values[1] < values[0]
