"""Local search never breaks a rule, never makes anything worse, and finds what brute force finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from stowplan.models.problem import (
    Capacity,
    GroupMoveBudget,
    Origin,
    Placement,
    Problem,
    Tier,
    Unplaced,
    Weighted,
)
from stowplan.models.stop import Stop
from stowplan.optimizer.annealing.anneal import _ChainResult, _Incumbent, _Replica, anneal
from stowplan.optimizer.annealing.parameters import AnnealingParameters
from stowplan.optimizer.annealing.schedule import Calibration, Schedule
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.optimizer.annealing.test_kernel import compiled_problem
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.choices import Seeded, drawn
from tests.support.random_clusters import Setup, random_cluster


@cases(13, at_least={"better": 4}, problem=drawn(compiled_problem))
def test_annealing_is_legal_and_no_worse(problem: Problem) -> None:
    evaluator = Evaluator(problem)
    found = evaluator.evaluate(anneal(evaluator, problem.start, Deadline(1, deterministic=True)))
    before = evaluator.evaluate(problem.start).values
    assert found.legal
    assert found.values <= before
    count("better", found.values < before)


def test_a_budget_of_a_group_keeps_its_pods_on_their_nodes() -> None:
    """Preemption would let the pod of the first class go, for two that are worth more: that is a move as well."""
    where, one = Origin("test"), np.ones(1, dtype=np.int64)
    problem = Problem(
        nodes=("n0",),
        classes=("low", "high"),
        size=np.array([1, 2]),
        optional=np.array([1, 2]),
        start=Placement.of([(0, 0, 1)]),
        rules=(Capacity(where, np.array([2, 1]), np.array([3]), one), GroupMoveBudget(where, np.array([0]), 0)),
        tiers=(Tier("pending", (Weighted(1, Unplaced(where, np.array([0, 1]))),)),),
    )
    evaluator = Evaluator(problem)
    found = anneal(evaluator, problem.start, Deadline(1, deterministic=True))
    assert evaluator.evaluate(found).legal
    assert found.placed(2).tolist() == [1, 1]


def full_problem(seed: int = 4, pods: int = 9) -> Problem:
    """Return a problem with pods that wait; the first one has five tiers, of which the second to the last are open."""
    return Setup("balance").compile(random_cluster(Seeded(seed), nodes=4, pods=pods)).problem


@pytest.mark.parametrize("tiers", range(5))
def test_only_the_first_tiers_are_improved_if_that_is_asked_for(tiers: int) -> None:
    problem = full_problem(pods=7)
    evaluator, start = Evaluator(problem), problem.start
    calibrations: dict[int, Calibration] = {}
    found = evaluator.evaluate(
        anneal(evaluator, start, Deadline(1, deterministic=True), calibrations=calibrations, tiers=tiers)
    )
    assert found.legal
    assert found.values <= evaluator.evaluate(start).values
    assert set(calibrations) <= set(range(1, tiers))
    assert (1 in calibrations) == (tiers > 1)


def test_annealing_mostly_finds_the_optimum_of_tiny_problems() -> None:
    """Brute force says what there is to find; a search that only goes downhill misses more of it."""
    problems = [compiled_problem(Seeded(seed)) for seed in range(15)]
    found = [
        Evaluator(problem).evaluate(anneal(Evaluator(problem), problem.start, Deadline(0.5, deterministic=True))).values
        for problem in problems
    ]
    hits = sum(values == best(problem) for values, problem in zip(found, problems, strict=True))
    assert hits >= 0.8 * len(problems), f"{hits} of {len(problems)}"


@cases(6, problem=drawn(compiled_problem), seed=st.integers(0, 99))
def test_equal_seeds_find_equal_placements(problem: Problem, seed: int) -> None:
    deadline = Deadline(0.5, deterministic=True)
    once, again = (anneal(Evaluator(problem), problem.start, deadline, seed) for _ in range(2))
    assert once.same_as(again)


def test_where_memory_admits_no_second_state_there_is_one_chain() -> None:
    problem, deadline = full_problem(pods=7), Deadline(0.5, deterministic=True)
    asked: list[int] = []
    refused = anneal(
        Evaluator(problem), problem.start, deadline, chains=3, admits=lambda more: asked.append(more) is not None
    )
    alone = anneal(Evaluator(problem), problem.start, deadline, chains=1)
    (bytes_of_two,) = asked
    assert bytes_of_two > 0
    assert refused.same_as(alone)


def test_a_stop_signal_ends_the_search_at_once() -> None:
    problem = full_problem(pods=7)
    stop = Stop()
    stop.set()
    assert anneal(Evaluator(problem), problem.start, Deadline(60, stop=stop)).same_as(problem.start)


def test_the_first_calibration_of_the_temperature_begins_where_the_tier_did(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[int, bool, tuple[int, ...], tuple[int, ...]]] = []
    calibrations: dict[int, Calibration] = {}
    run_chain = _Replica.run

    def noted(
        self: _Replica, incumbent: _Incumbent, start: Schedule, tier: int, floor: int, deadline: Deadline
    ) -> _ChainResult:
        result = run_chain(self, incumbent, start, tier, floor, deadline)
        begun.append((tier, calibrations[tier].afresh, incumbent.values, result.best.values))
        return result

    monkeypatch.setattr(_Replica, "run", noted)
    tight = AnnealingParameters(tight=0.0)  # so that overload is calibrated before that
    told_apart = False
    for seed in range(8):
        problem = full_problem(seed)
        begun.clear()
        calibrations.clear()
        anneal(
            Evaluator(problem),
            problem.start,
            Deadline(1, deterministic=True),
            calibrations=calibrations,
            chains=1,
            parameters=tight,
        )
        for tier in calibrations:
            chains = [run_chain for run_chain in begun if run_chain[0] == tier]
            first = best = chains[0][2]
            for _, afresh, start, end in chains:
                assert start == (first if afresh else best)
                told_apart = told_apart or (afresh and first != best)
                best = min(best, end)
    assert told_apart
