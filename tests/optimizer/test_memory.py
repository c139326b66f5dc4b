"""A solve that may hold little memory still answers, and says what it did without."""

from __future__ import annotations

import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.stop import Stop
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.memory import Memory, available, used
from stowplan.optimizer.portfolio import Options, solve
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.clusters import random_cluster

pytestmark = pytest.mark.skipif(not used(), reason="this system does not tell how much memory a process holds")


def test_a_limit_that_is_passed_ends_every_stage_with_an_answer() -> None:
    problem = compile_problem(random_cluster(4), default_profile(K36), PRESETS["balance"]).problem
    outcome = solve(problem, Options(time_limit=20, memory=used() // 2))
    assert Evaluator(problem).evaluate(outcome.placement).legal
    assert not outcome.interrupted
    assert any("memory" in note for note in outcome.notes)


def test_the_signal_is_set_when_the_limit_is_passed_or_the_other_one_is_set() -> None:
    outer = Stop()
    with Memory(1).watched(outer) as inner:
        assert inner.wait(5)
        assert not outer.is_set()
    with Memory(None).watched(outer) as inner:
        assert not inner.is_set()
        outer.set()
        assert inner.is_set()


def test_what_is_free_is_more_than_nothing() -> None:
    assert (available() or 0) > 0
    assert Memory.granted(None).admits(1)
    assert not Memory(used() // 2).admits(1)
