"""Tiers with the exact score: tiny clusters are proven whatever the limit on moves; others are never behind others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import strategies as st

from stowplan.answers.solve import fixed, solve_snapshot
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.result import Status
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.portfolio import solve
from stowplan.plugins_compat.simulate import simulate
from stowplan.settings.problem import make_problem
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.random_clusters import Setup, clusters, setups

QUICK = Options(time_limit=3, deterministic=True, kernels=False)


@cases(
    15,
    at_least={"better": 2},
    cluster=clusters(),
    setup=setups("kube", "global"),
    limit=st.sampled_from([1, 2, 3, None]),
)
def test_tiny_clusters_are_proven(cluster: Snapshot, setup: Setup, limit: int | None) -> None:
    problem = replace(setup, max_moves=limit).compile(cluster).problem
    outcome = solve(problem, QUICK)
    assert outcome.status is Status.OPTIMAL
    assert outcome.values == best(problem)
    assert outcome.values == Evaluator(problem).evaluate(outcome.placement).values
    count("better", outcome.values < Evaluator(problem).evaluate(problem.start).values)


@pytest.mark.parametrize("limit", [5, None])
@pytest.mark.parametrize(("objective", "share"), [("kube", 0.1), ("global", 0.1)])
def test_where_the_tables_of_plugins_take_too_long_a_bound_comes_from_where_pods_are(
    objective: str, share: float, limit: int | None
) -> None:
    problem = make_problem(synthetic_snapshot(10, 70, 1), Settings(objective=objective, max_moves=limit)).problem
    bounds = []
    for chosen in (FinalStateParameters(prepared=1, prepared_from_start=1), FinalStateParameters(prepared=1)):
        options = replace(QUICK, time_limit=1.0, kernels=True, parameters=Parameters(final_state=chosen))
        tier = solve(problem, options).tiers[-1]
        bounds.append(tier.bound)
    assert bounds[0] < bounds[1]
    assert share * tier.value < bounds[1] < tier.value


@pytest.mark.parametrize("seed", range(3))
def test_no_answer_is_behind_today_or_kube_scheduler(seed: int) -> None:
    snapshot = synthetic_snapshot(8, 50, seed, fill=0.5)
    compiled = make_problem(snapshot, Settings(objective="kube"))
    evaluator = Evaluator(compiled.problem)
    answer = solve_snapshot(compiled, QUICK)
    anew = simulate(snapshot, compiled.profile, compiled.pods, fixed(compiled), preempts=False)
    theirs = evaluator.evaluate(compiled.placement(anew.assignment))
    assert answer.evaluation.values < evaluator.evaluate(compiled.problem.start).values
    assert not theirs.legal or answer.evaluation.values <= theirs.values
    tier = answer.outcome.tiers[-1]
    assert 0 < tier.bound <= tier.value == answer.evaluation.values[-1]
