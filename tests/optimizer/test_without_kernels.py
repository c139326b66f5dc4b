"""A search without compiled kernels is as right as one with them, and runs none."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.result import Status
from stowplan.optimizer import portfolio, workplace
from stowplan.optimizer.bounds.lagrangian import LagrangianBound
from stowplan.optimizer.portfolio import Options, solve
from stowplan.optimizer.rearrangement import engine
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.brute_force import best
from tests.support.choices import Seeded
from tests.support.random_clusters import random_cluster

LEFT_OUT = "annealing, column generation and the Lagrangian bound were left out: they need compiled kernels"


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a compiled kernel was asked for")

    monkeypatch.setattr(workplace, "anneal", refuse)
    monkeypatch.setattr(engine, "walk", refuse)
    monkeypatch.setattr(portfolio, "PatternEngine", refuse)
    monkeypatch.setattr(LagrangianBound, "__call__", refuse)


@pytest.mark.usefixtures("forbidden")
@pytest.mark.parametrize("seed", range(10))
def test_small_problems_are_solved_and_proven(seed: int) -> None:
    names = list(PRESETS)
    objective = PRESETS[names[seed % len(names)]]
    cluster = random_cluster(Seeded(seed), broken=seed % 2 == 1)
    problem = compile_problem(cluster, default_profile(K36), objective).problem
    outcome = solve(problem, Options(time_limit=5, deterministic=True, kernels=False))
    assert outcome.values == best(problem)
    assert outcome.status is Status.OPTIMAL
    assert LEFT_OUT not in outcome.notes


@pytest.mark.usefixtures("forbidden")
def test_an_open_answer_says_what_was_left_out() -> None:
    cluster = random_cluster(Seeded(3), nodes=6, pods=40)
    problem = compile_problem(cluster, default_profile(K36), PRESETS["balance"]).problem
    outcome = solve(problem, Options(time_limit=0.1, deterministic=True, kernels=False, largest_model=0))
    assert outcome.status is Status.FEASIBLE
    assert LEFT_OUT in outcome.notes
