"""CP-SAT, the portfolio and brute force agree, tier by tier, on random tiny clusters that mix every kind of rule,
and on random problems of the kinds that clusters do not compile to.

``STOWPLAN_SEEDS=500`` tries at least so many of each.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from stowplan.models.problem import Problem
from stowplan.models.result import Status
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.cpsat.solve import solve_tier
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options, solve
from stowplan.plugins_compat.admission import Rejection, populated, rejections
from stowplan.plugins_compat.compiler.compile import Compiled
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.problems import problems
from tests.support.random_clusters import Setup, clusters, device_clusters, setups

SHARING = setups("pack", "balance", "repair", more=("GpuShare",))


@cases(23, at_least={"more than nothing to pay": 7}, cluster=clusters(), setup=setups())
def test_cp_sat_alone_finds_and_proves_the_optimum_of_clusters_with_every_kind_of_rule(
    cluster: Snapshot, setup: Setup
) -> None:
    """From the start as it is, without any search: every tier is proven, and worth what brute force finds."""
    prove_with_cp_sat(setup.compile(cluster).problem.steered)


@cases(12, at_least={"more than nothing to pay": 4}, cluster=device_clusters(), setup=SHARING)
def test_cp_sat_alone_finds_and_proves_the_optimum_where_pods_share_devices(cluster: Snapshot, setup: Setup) -> None:
    prove_with_cp_sat(setup.compile(cluster).problem.steered)


@cases(20, at_least={"more than nothing to pay": 9}, problem=problems())
def test_cp_sat_alone_finds_and_proves_the_optimum_of_problems_that_no_cluster_compiles_to(problem: Problem) -> None:
    prove_with_cp_sat(problem)


@cases(
    15,
    at_least={"more than nothing to pay": 7},
    problem=problems(),
    factor=st.sampled_from([10**12 + 39, 3 * 10**12 + 7, 10**13 + 37]),
)
def test_cp_sat_alone_is_exact_where_costs_have_more_digits_than_real_numbers_tell_apart(
    problem: Problem, factor: int
) -> None:
    *earlier, last = problem.tiers
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
    count("more than nothing to pay", any(reached))


@cases(10, at_least={"better than the start": 2}, cluster=clusters(), setup=setups())
def test_the_portfolio_proves_the_optimum_of_clusters_and_the_filters_admit_it(cluster: Snapshot, setup: Setup) -> None:
    portfolio_proves(setup.compile(cluster))


@cases(10, at_least={"better than the start": 2}, cluster=device_clusters(), setup=SHARING)
def test_the_portfolio_proves_the_optimum_where_pods_share_devices_and_the_filters_admit_it(
    cluster: Snapshot, setup: Setup
) -> None:
    portfolio_proves(setup.compile(cluster))


def portfolio_proves(found: Compiled) -> None:
    outcome = solve(found.problem, Options(time_limit=20, deterministic=True))
    assert outcome.status is Status.OPTIMAL
    assert outcome.values == best(found.problem)
    assert not outcome.notes
    start = {pod.key: pod.node_name for pod in found.snapshot.pods if pod.node_name}
    before = {(r.pod.key, r.node) for r in refused(found, start)}
    after = {(r.pod.key, r.node) for r in refused(found, found.assign(outcome.placement))}
    assert after <= before
    count("better than the start", outcome.values < Evaluator(found.problem).evaluate(found.problem.start).values)


@cases(10, at_least={"better than the start": 4}, problem=problems())
def test_the_portfolio_proves_the_optimum_of_problems_that_no_cluster_compiles_to(problem: Problem) -> None:
    outcome = solve(problem, Options(time_limit=20, deterministic=True))
    assert outcome.status is Status.OPTIMAL
    assert outcome.values == best(problem)
    assert not outcome.notes
    count("better than the start", outcome.values < Evaluator(problem).evaluate(problem.start).values)


def refused(found: Compiled, where: dict[str, str]) -> list[Rejection]:
    return rejections(populated(found.snapshot, found.profile, where, found.signatures), where)
