"""Constructive heuristics: legal, never worse in the tiers they improve, and exact in what they say a move changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import PRESETS
from stowplan.models.options import Options
from stowplan.models.problem import (
    NOWHERE,
    Attract,
    Curves,
    Held,
    MoveBudget,
    NodeCurve,
    Placement,
    Problem,
    Tier,
    Topology,
    Weighted,
)
from stowplan.models.settings import Settings
from stowplan.models.stop import Stop
from stowplan.optimizer.constructive import warm_start
from stowplan.optimizer.constructive.descent import Descent, _Terms
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import solve
from stowplan.settings.problem import make_problem
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.choices import Choices, Seeded, drawn
from tests.support.problems import WHERE, random_affinity, random_problem
from tests.support.random_clusters import Setup, random_cluster

FOREVER = Deadline(1e6)


def any_problem(choices: Choices) -> Problem:
    """Return a tiny problem: a cluster with any of the presets, or one that is made of arrays."""
    match choices.integer(0, 2):
        case 0:
            return random_problem(choices, broken=True)
        case 1:
            return random_affinity(choices, broken=None)
        case _:
            cluster = random_cluster(choices, broken=None)
            return Setup(choices.one(tuple(PRESETS))).compile(cluster).problem.steered


ANY = drawn(any_problem)


def suited(problem: Problem) -> list[int]:
    """Return the tiers in which descent is of use."""
    return [t for t in range(len(problem.tiers)) if Descent.suits(problem, t)]


def found_by(problem: Problem, **more: object) -> list[Placement]:
    found: list[Placement] = []
    warm_start(Evaluator(problem), problem.start, FOREVER, found.append, **more)  # type: ignore[arg-type]
    return found


@cases(15, at_least={"placements": 6}, problem=ANY)
def test_what_is_found_is_legal_and_no_better_than_the_optimum(problem: Problem) -> None:
    evaluator, optimum = Evaluator(problem), best(problem)
    for placement in found_by(problem):
        evaluation = evaluator.evaluate(placement)
        assert evaluation.legal, evaluation.violations
        assert evaluation.values >= optimum
        count("placements")


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
@cases(10, problem=ANY)
def test_no_more_pods_move_than_may(problem: Problem, limit: int) -> None:
    limited = replace(problem, rules=(*problem.rules, MoveBudget(WHERE, limit)))
    evaluator = Evaluator(limited)
    for placement in found_by(limited):
        evaluation = evaluator.evaluate(placement)
        assert evaluation.legal, evaluation.violations
        assert evaluation.moves <= limit


@cases(15, at_least={"moves": 1}, problem=ANY)
def test_descent_improves_its_tier_and_none_before_it_gets_worse(problem: Problem) -> None:
    evaluator = Evaluator(problem)
    for tier in suited(problem):
        state = State(evaluator, problem.start)
        made = Descent(state, tier).run(FOREVER)
        before, after = (evaluator.evaluate(p).values[: tier + 1] for p in (problem.start, state.placement))
        assert after < before if made else after == before
        count("moves", made > 0)


@cases(300, at_least={"changes": 4}, problem=ANY)
def test_the_change_of_each_move_is_what_the_evaluator_says(problem: Problem) -> None:
    """For all moves of one pod, except for terms that no table holds: violations and the greatest number of leavers."""
    evaluator, nodes = Evaluator(problem), len(problem.nodes)
    before = evaluator.evaluate(problem.start).values
    for tier in range(1, len(problem.tiers)):
        kinds = {type(weighted.term).__name__ for weighted in problem.tiers[tier].terms}
        if kinds & {"Violation", "MovePeak"}:
            continue
        terms = _Terms(State(evaluator, problem.start), (tier,))
        for c, source, _ in problem.start.entries():
            for target in set(range(nodes)) - {source}:
                after = problem.start.with_pod_moved(c, source, target)
                change = evaluator.evaluate(after).values[tier] - before[tier]
                assert terms.changes(c, source, target) == [change], (kinds, c, source, target)
                count("changes", change != 0)


@cases(15, at_least={"moves": 1}, problem=ANY)
def test_tables_that_are_updated_equal_tables_that_are_made_anew(problem: Problem) -> None:
    for tier in suited(problem):
        state = State(Evaluator(problem), problem.start)
        descent = Descent(state, tier)
        count("moves", descent.run(FOREVER) > 0)
        fresh = Descent(State(state.evaluator, state.placement), tier)
        assert np.array_equal(descent._own.costs, fresh._own.costs)
        assert np.array_equal(descent._own.saved, fresh._own.saved)
        assert np.array_equal(descent._earlier.costs, fresh._earlier.costs)
        assert np.array_equal(descent._fits, fresh._fits)


@cases(15, at_least={"legal changes": 9}, problem=ANY)
def test_the_evaluator_agrees_on_which_changes_are_legal(problem: Problem) -> None:
    """A change that passes the tables and the rules that name its class is legal."""
    evaluator, nodes = Evaluator(problem), len(problem.nodes)
    state = State(evaluator, problem.start)
    missing = problem.size - problem.start.placed(len(problem.classes))
    pods = [(c, source) for c, source, _ in problem.start.entries()]
    pods += [(c, NOWHERE) for c in np.flatnonzero(missing).tolist()]
    for c, source in pods:
        fits = state.fits(np.array([c]), np.arange(nodes))[0]
        for target in np.flatnonzero(fits).tolist():
            if target != source and state.legal(c, source, target):
                after = problem.start.with_pod_moved(c, source, target)
                assert evaluator.evaluate(after).legal
                count("legal changes")


@cases(40, at_least={"forbidden": 20, "several": 3}, problem=ANY)
def test_nodes_that_are_forbidden_for_the_same_reason_are_forbidden(problem: Problem) -> None:
    state = State(Evaluator(problem), problem.start)
    for c, source, _ in problem.start.entries():
        for target in set(range(len(problem.nodes))) - {source}:
            if state._broken(c, source, target) is not None:
                alike = set(state.forbidden(c, source, target).tolist())
                assert target in alike
                assert not any(state.legal(c, source, n) for n in alike - {source})
                count("forbidden")
                count("several", len(alike - {source}) > 1)


def test_descent_goes_on_where_affinity_forbids_what_gains_most() -> None:
    """The large pod may be nowhere but near another one, in a domain of two nodes; the small ones may go anywhere."""
    nodes = 40
    one, none = np.ones(3, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    near = Topology("zone", (np.arange(nodes) > 1).astype(np.int64), ("a", "b"))
    nobody = Held(none, none, none)
    stays = Attract(WHERE, np.array([0]), np.array([1]), (near,), nobody)
    slopes = 2 * np.arange(20)[None, :] + 1
    square = Curves(np.arange(20)[None, :], slopes, np.arange(20)[None, :] ** 2)
    load = NodeCurve(WHERE, np.array([5, 9, 1]), none, none, square)
    start = Placement.of([(0, 0, 1), (1, 1, 1), (2, 0, 2)])
    tiers = (Tier("evenness", (Weighted(1, load),)),)
    names = tuple(f"n{n}" for n in range(nodes))
    problem = Problem(names, ("large", "other", "small"), np.array([1, 1, 2]), 0 * one, start, (stays,), tiers)
    state = State(Evaluator(problem), start)
    assert Descent(state, 0, ConstructiveParameters(attempts=6)).run(FOREVER) == 2
    assert state.placement.counts()[0, 0] == 1


def test_a_stop_ends_it_and_a_large_placement_is_left_alone() -> None:
    problem = Setup("balance").compile(random_cluster(Seeded(3))).problem
    stop = Stop()
    stop.set()
    found: list[Placement] = []
    warm_start(Evaluator(problem), problem.start, Deadline(1e6, stop=stop), found.append)
    assert not found
    assert not found_by(problem, parameters=ConstructiveParameters(largest=1))


@pytest.fixture(scope="module")
def half_full() -> dict[str, Problem]:
    snapshot = synthetic_snapshot(100, 900, 102, fill=0.45)
    return {name: make_problem(snapshot, Settings(objective=name)).problem for name in ("pack", "balance")}


@pytest.mark.parametrize(
    ("objective", "limit", "reached"),
    [("pack", 5, 93), ("pack", 20, 85), ("pack", 50, 77), ("balance", 20, 106_429), ("balance", 50, 61_943)],
)
def test_a_hundred_nodes_get_as_far_as_the_simplest_methods(
    half_full: dict[str, Problem], objective: str, limit: int, reached: int
) -> None:
    """What emptying the smallest nodes and steepest descent reach without anything else, for so many moves."""
    problem = half_full[objective]
    limited = replace(problem, rules=(*problem.rules, MoveBudget(WHERE, limit)))
    evaluator = Evaluator(limited)
    best_found = min(evaluator.evaluate(placement).values for placement in found_by(limited))
    assert round(limited.tiers[1].shown(best_found[1])) <= reached


@pytest.mark.parametrize("limit", [5, 20, 50])
def test_few_moves_spread_pods_no_less_than_descent_does(limit: int) -> None:
    settings = Settings(objective="spread", max_moves=limit)
    problem = make_problem(synthetic_snapshot(40, 400, 7104, fill=0.92), settings).problem
    evaluator, state = Evaluator(problem), State(Evaluator(problem), problem.start)
    for tier in range(len(problem.tiers)):
        if Descent.suits(problem, tier):
            Descent(state, tier).run(FOREVER)
    reached = evaluator.evaluate(state.placement).values
    assert min(evaluator.evaluate(placement).values for placement in found_by(problem)) <= reached
    assert reached < evaluator.evaluate(problem.start).values


def test_a_solve_starts_from_them(half_full: dict[str, Problem]) -> None:
    problem = half_full["pack"]
    limited = replace(problem, rules=(*problem.rules, MoveBudget(WHERE, 20)))
    outcome = solve(limited, Options(time_limit=0.1, deterministic=True, workers=1, processes=1))
    assert outcome.tiers[1].value <= 85
    assert "constructive heuristics" in dict(outcome.stages)
