"""Bounds are below what is best, and never above; tight where the relaxation is exact."""

from __future__ import annotations

import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import PRESETS
from stowplan.models.problem import Problem
from stowplan.models.result import Status
from stowplan.optimizer.bounds import linear
from stowplan.optimizer.bounds.linear import linear_bound
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options, solve
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.brute_force import best
from tests.support.clusters import node, pod, random_cluster, snapshot
from tests.support.problems import random_problem

NAMES = list(PRESETS)
ENOUGH = 60.0


def problem_of(seed: int) -> Problem:
    cluster = random_cluster(seed, broken=seed % 2 == 1)
    return compile_problem(cluster, default_profile(K36), PRESETS[NAMES[seed % len(NAMES)]]).problem


@pytest.mark.parametrize("surrogate", [False, True], ids=["node by node", "nodes pooled"])
@pytest.mark.parametrize("seed", range(60))
def test_the_relaxation_is_never_above_the_optimum(seed: int, surrogate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if surrogate:
        monkeypatch.setattr(linear, "FINE", 0)
    never_above(problem_of(seed))


@pytest.mark.parametrize("surrogate", [False, True], ids=["node by node", "nodes pooled"])
@pytest.mark.parametrize("seed", range(120))
def test_nor_is_it_where_no_cluster_compiles_to(seed: int, surrogate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if surrogate:
        monkeypatch.setattr(linear, "FINE", 0)
    never_above(random_problem(seed, broken=seed % 2 == 1))


def never_above(problem: Problem) -> None:
    evaluator, upper, values = Evaluator(problem), upper_bounds(problem), best(problem)
    for tier, value in enumerate(values):
        bound = linear_bound(evaluator, upper, tier, values[:tier], ENOUGH)
        assert bound is not None
        assert bound <= value, problem.tiers[tier].name


def test_pooled_and_single_nodes_bound_alike_where_nodes_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jensen's inequality loses nothing where the best load is the mean."""
    cluster = snapshot(nodes=[node(f"n{i}") for i in range(4)], pods=[pod(f"p{i}", "n0") for i in range(3)])
    problem = compile_problem(cluster, default_profile(K36), PRESETS["balance"]).problem
    evaluator, upper = Evaluator(problem), upper_bounds(problem)
    single = linear_bound(evaluator, upper, len(problem.tiers) - 1, [0] * (len(problem.tiers) - 1), ENOUGH)
    monkeypatch.setattr(linear, "FINE", 0)
    surrogate = linear_bound(evaluator, upper, len(problem.tiers) - 1, [0] * (len(problem.tiers) - 1), ENOUGH)
    assert single is not None
    assert surrogate is not None
    assert 0 < surrogate <= single


def test_a_problem_too_large_for_the_exact_model_is_answered_with_a_bound() -> None:
    compiled = compile_problem(synthetic_snapshot(30, 200), default_profile(K36), PRESETS["balance"])
    start = Evaluator(compiled.problem).evaluate(compiled.problem.start)
    outcome = solve(compiled.problem, Options(time_limit=6, largest_model=0))
    assert any("too large for the exact model" in note for note in outcome.notes)
    last = outcome.tiers[-1]
    assert 0 < last.bound <= last.value < start.values[-1]
    assert last.bound_by == "Lagrangian relaxation"
    assert last.status is Status.FEASIBLE
    assert Evaluator(compiled.problem).evaluate(outcome.placement).legal
