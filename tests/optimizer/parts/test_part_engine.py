"""Solving in exact parts: the optimum of the whole, with a proof, and what becomes of incumbents, stops and bounds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.parts import WHOLE, side_by_side
from stowplan.models.problem import Problem
from stowplan.models.result import Status, TierOutcome
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.checkpoint import Checkpoint
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.parts.engine import NAME
from stowplan.optimizer.parts.partition import exact_parts
from stowplan.optimizer.portfolio import Options, solve
from stowplan.optimizer.run import Step
from stowplan.settings.problem import make_problem
from tests.optimizer.parts.test_partition import EVERY
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.random_clusters import Setup, clusters, setups

PARTS = Parameters(parts=EVERY)


@pytest.fixture(scope="module")
def pools() -> Problem:
    """Three pools of 12, 6, and 3 nodes with a history of their own."""
    return make_problem(side_by_side(3, 12, 1), Settings(objective="balance")).problem


@cases(
    80,
    at_least={"several parts": 6, "better than the start": 3},
    cluster=clusters(nodes=4, pods=6, pools=2),
    setup=setups(),
)
def test_the_optimum_of_the_whole_is_found_and_proven(cluster: Snapshot, setup: Setup) -> None:
    problem = setup.compile(cluster).problem.steered
    if not exact_parts(problem, upper_bounds(problem), EVERY):
        return
    outcome = solve(problem, Options(time_limit=20, deterministic=True, parameters=PARTS))
    count("several parts", NAME in dict(outcome.stages))
    assert outcome.status is Status.OPTIMAL
    assert outcome.values == best(problem)
    assert not outcome.notes
    count("better than the start", outcome.values < Evaluator(problem).evaluate(problem.start).values)


def test_incumbents_of_a_part_are_told_and_kept_as_those_of_the_whole(pools: Problem, tmp_path: Path) -> None:
    told: list[Step] = []
    file = str(tmp_path / "best.json")
    options = Options(time_limit=4, parameters=PARTS, checkpoint=file)
    outcome = solve(pools, options, progress=told.append)
    assert {step.source for step in told} & {"annealing", "rearranging walk", "CP-SAT", "large neighborhood search"}
    assert all(later.values <= earlier.values for earlier, later in pairwise(told))
    recalled = Checkpoint(file, pools).recall()
    assert recalled is not None
    assert recalled.same_as(outcome.placement)


def test_bounds_of_parts_hold_for_the_whole_and_are_no_worse(pools: Problem) -> None:
    in_parts = solve(pools, Options(time_limit=3, deterministic=True, parameters=PARTS))
    as_one = solve(pools, Options(time_limit=3, deterministic=True, parameters=WHOLE))
    assert NAME in dict(in_parts.stages)
    assert NAME not in dict(as_one.stages)
    last: tuple[TierOutcome, TierOutcome] = in_parts.tiers[-1], as_one.tiers[-1]
    assert in_parts.values[:-1] == as_one.values[:-1]
    assert max(tier.bound for tier in last) <= min(tier.value for tier in last)
    assert last[0].bound >= last[1].bound
    assert last[0].value <= last[1].value * 1.001
    assert last[0].bound_by.endswith("part by part")


def test_a_stop_between_parts_leaves_the_best_so_far_and_no_bound_of_parts(pools: Problem) -> None:
    stop = Stop()

    def heard(step: Step) -> None:
        if step.source not in ("start", "candidate", "constructive heuristics"):
            stop.set()

    outcome = solve(pools, Options(time_limit=30, parameters=PARTS), stop=stop, progress=heard)
    assert outcome.interrupted
    assert outcome.seconds < 15
    evaluation = Evaluator(pools).evaluate(outcome.placement)
    assert evaluation.legal
    assert evaluation.values == outcome.values
    assert not any(tier.bound_by.endswith("part by part") for tier in outcome.tiers)


@pytest.mark.parametrize(("objective", "in_parts"), [("pack", True), ("balance", False)])
def test_parts_too_large_for_proofs_are_split_only_where_nodes_are_counted(objective: str, in_parts: bool) -> None:
    problem = make_problem(side_by_side(2, 8, 2), Settings(objective=objective)).problem
    parameters = Parameters(parts=replace(EVERY, provable=1))
    outcome = solve(problem, Options(time_limit=1, deterministic=True, parameters=parameters))
    assert (NAME in dict(outcome.stages)) == in_parts
    assert all(tier.bound <= tier.value for tier in outcome.tiers)
