"""Local search never breaks a rule, never makes anything worse, and finds what brute force finds."""

from __future__ import annotations

import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.problem import Problem
from stowplan.models.stop import Stop
from stowplan.optimizer.annealing.anneal import _ChainResult, _Incumbent, _Replica, anneal
from stowplan.optimizer.annealing.parameters import AnnealingParameters
from stowplan.optimizer.annealing.schedule import Calibration, Schedule
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36
from tests.support.brute_force import best
from tests.support.clusters import random_cluster
from tests.support.problems import random_problem

NAMES = list(PRESETS)


def problem_of(seed: int) -> Problem:
    if seed % 4 == 3:
        return random_problem(seed, broken=seed % 8 == 3)
    snapshot = random_cluster(seed, broken=seed % 2 == 1)
    profile = default_profile(K24 if seed % 3 == 0 else K36)
    return compile_problem(snapshot, profile, PRESETS[NAMES[seed % 5]], max_moves=3 if seed % 11 == 0 else None).problem


@pytest.mark.parametrize("seed", range(40))
def test_annealing_is_legal_and_no_worse(seed: int) -> None:
    problem = problem_of(seed)
    evaluator = Evaluator(problem)
    found = evaluator.evaluate(anneal(evaluator, problem.start, Deadline(1, deterministic=True)))
    assert found.legal
    assert found.values <= evaluator.evaluate(problem.start).values


@pytest.mark.parametrize("tiers", range(5))
def test_only_the_first_tiers_are_improved_if_that_is_asked_for(tiers: int) -> None:
    problem = problem_of(0)  # five tiers, of which the second to the last are open
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
    problems = [problem_of(seed) for seed in range(15)]
    found = [
        Evaluator(problem).evaluate(anneal(Evaluator(problem), problem.start, Deadline(1, deterministic=True))).values
        for problem in problems
    ]
    hits = sum(values == best(problem) for values, problem in zip(found, problems, strict=True))
    assert hits >= 0.8 * len(problems), f"{hits} of {len(problems)}"


@pytest.mark.parametrize("seed", range(0, 40, 7))
def test_equal_seeds_find_equal_placements(seed: int) -> None:
    problem = problem_of(seed)
    once, again = (anneal(Evaluator(problem), problem.start, Deadline(1, deterministic=True), seed) for _ in range(2))
    assert once.same_as(again)


def test_a_stop_signal_ends_the_search_at_once() -> None:
    problem = problem_of(4)
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
    for seed in range(12):
        problem = problem_of(seed)
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
