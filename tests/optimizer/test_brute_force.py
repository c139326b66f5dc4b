"""CP-SAT, the portfolio and brute force agree, tier by tier, on random tiny clusters that mix every kind of rule,
and on random problems of the kinds that clusters do not compile to.

``STOWPLAN_SEEDS`` sets how many clusters are tried.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.problem import Problem
from stowplan.models.result import Status
from stowplan.optimizer.cpsat.solve import solve_tier
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options, solve
from stowplan.plugins_compat.admission import populated, rejections
from stowplan.plugins_compat.compiler.compile import Compiled, compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36
from tests.support.brute_force import best
from tests.support.clusters import random_cluster, random_devices
from tests.support.problems import random_problem

SEEDS = range(int(os.environ.get("STOWPLAN_SEEDS", "80")))
NAMES = list(PRESETS)


def compiled(seed: int) -> Compiled:
    """Compile a random cluster; the seed decides objective, release, preemption, move budget, and a broken start."""
    preemption = "by-priority" if seed % 7 == 0 else "never"
    objective = PRESETS[NAMES[seed % len(NAMES)]].model_copy(update={"preemption": preemption})
    profile = default_profile(K24 if seed % 3 == 0 else K36)
    snapshot = random_cluster(seed, broken=seed % 2 == 1)
    return compile_problem(snapshot, profile, objective, max_moves=2 if seed % 11 == 0 else None)


@pytest.mark.parametrize("seed", SEEDS)
def test_cp_sat_alone_finds_and_proves_the_optimum(seed: int) -> None:
    """From the start as it is, without any search: every tier is proven, and worth what brute force finds."""
    prove_with_cp_sat(compiled(seed).problem)


@pytest.mark.parametrize("seed", SEEDS[: len(SEEDS) // 2])
def test_cp_sat_alone_does_so_where_pods_share_devices(seed: int) -> None:
    prove_with_cp_sat(sharing(seed).problem)


@pytest.mark.parametrize("seed", SEEDS)
def test_cp_sat_alone_does_so_where_no_cluster_does(seed: int) -> None:
    prove_with_cp_sat(random_problem(seed, broken=seed % 2 == 1))


@pytest.mark.parametrize("seed", range(60_000, 60_060))
def test_cp_sat_alone_does_so_where_costs_have_more_digits_than_real_numbers_tell_apart(seed: int) -> None:
    problem = random_problem(seed, broken=seed % 2 == 1)
    *earlier, last = problem.tiers
    factor = (10**12 + 39, 3 * 10**12 + 7, 10**13 + 37)[seed % 3]
    expensive = replace(last, terms=tuple(replace(term, weight=factor * term.weight) for term in last.terms))
    prove_with_cp_sat(replace(problem, tiers=(*earlier, expensive)))


def prove_with_cp_sat(problem: Problem) -> None:
    evaluator, incumbent, reached = Evaluator(problem), problem.start, []
    for tier in range(len(problem.tiers)):
        attempt = solve_tier(evaluator, tier, reached, incumbent, Deadline(20, deterministic=True))
        assert attempt.optimal
        assert attempt.placement is not None
        evaluation = evaluator.evaluate(attempt.placement)
        assert evaluation.legal
        assert evaluation.values[tier] == attempt.bound
        assert list(evaluation.values[:tier]) == reached
        reached.append(evaluation.values[tier])
        incumbent = attempt.placement
    assert tuple(reached) == best(problem)


def sharing(seed: int) -> Compiled:
    """Compile a random cluster whose pods share devices."""
    objective = PRESETS[("pack", "balance", "repair")[seed % 3]]
    profile = default_profile(K24 if seed % 5 == 0 else K36, more=("GpuShare",))
    return compile_problem(random_devices(seed, broken=seed % 2 == 1), profile, objective)


@pytest.mark.parametrize("compiled", [compiled, sharing], ids=["every rule", "devices"])
@pytest.mark.parametrize("seed", SEEDS[: len(SEEDS) // 2])
def test_the_portfolio_proves_the_same_and_the_filters_admit_it(compiled: Callable[[int], Compiled], seed: int) -> None:
    found = compiled(seed)
    outcome = solve(found.problem, Options(time_limit=20, deterministic=True))
    assert outcome.status is Status.OPTIMAL
    assert outcome.values == best(found.problem)
    assert not outcome.notes
    start = {pod.key: pod.node_name for pod in found.snapshot.pods if pod.node_name}
    before = {(r.pod.key, r.node) for r in refused(found, start)}
    after = {(r.pod.key, r.node) for r in refused(found, found.assign(outcome.placement))}
    assert after <= before


@pytest.mark.parametrize("seed", SEEDS[: len(SEEDS) // 2])
def test_the_portfolio_proves_the_same_where_no_cluster_does(seed: int) -> None:
    problem = random_problem(seed, broken=seed % 2 == 1)
    outcome = solve(problem, Options(time_limit=20, deterministic=True))
    assert outcome.status is Status.OPTIMAL
    assert outcome.values == best(problem)
    assert not outcome.notes


def refused(found: Compiled, where: dict[str, str]) -> list:  # type: ignore[type-arg]
    return rejections(populated(found.snapshot, found.profile, where, found.signatures), where)
