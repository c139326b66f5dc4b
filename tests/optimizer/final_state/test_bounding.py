"""The bound in a process of its own: the same as here, there when the process is told to stop, and none if it dies."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from typing import Any

import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state import stages
from stowplan.optimizer.final_state.bounding import BoundBeside, NotSentError, Question, lower_bound
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.portfolio import solve
from stowplan.settings.problem import make_problem

SECONDS = 60.0


def question(nodes: int, objective: str = "kube") -> Question:
    problem = make_problem(synthetic_snapshot(nodes, 10 * nodes, 3), Settings(objective=objective)).problem
    tier = next(t for t, one in enumerate(problem.tiers) if one.final is not None)
    values = Evaluator(problem).evaluate(problem.start).values
    return Question(problem, upper_bounds(problem), tier, values[:tier], problem.start, values[tier], kernels=False)


def awaited(beside: BoundBeside) -> int | None:
    deadline = Deadline(SECONDS)
    while beside.found is None and not deadline.over:
        time.sleep(0.05)
    return beside.found


@pytest.mark.parametrize("objective", ["kube", "global"])
def test_a_process_finds_what_is_found_here(objective: str) -> None:
    asked, parameters = question(8, objective), FinalStateParameters()
    with BoundBeside(asked, SECONDS, parameters) as beside:
        found = awaited(beside)
    assert found is not None
    here = lower_bound(asked, Deadline(SECONDS), parameters)
    assert 0 < found <= asked.value
    assert found == pytest.approx(here, rel=1e-3)


def test_a_process_that_is_told_to_stop_says_what_it_has() -> None:
    asked, found = question(60, "global"), None
    for seconds in (4.0, 16.0):  # in which a process begins, and has first multipliers; a busy machine needs longer
        with BoundBeside(asked, SECONDS, FinalStateParameters()) as beside:
            time.sleep(seconds)
            began = time.monotonic()
            found = beside.end()
        assert time.monotonic() - began < 4
        if found:
            break
    assert found


def test_no_bound_comes_of_a_process_that_died() -> None:
    with BoundBeside(question(60, "global"), SECONDS, FinalStateParameters()) as beside:
        deadline = Deadline(SECONDS)
        while not beside.pids and not deadline.over:
            time.sleep(0.05)
        os.kill(beside.pids[0], signal.SIGKILL)
        assert beside.end() is None
        assert beside.failed


def test_what_cannot_be_sent_is_bounded_here(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question(12)

    def unsent(_: Question, seconds: float, parameters: FinalStateParameters) -> BoundBeside:
        mixed: Any = (asked.problem, lambda: None)
        return BoundBeside(replace(asked, problem=mixed), seconds, parameters)

    with pytest.raises(NotSentError, match="pickle"):
        unsent(asked, SECONDS, FinalStateParameters())
    monkeypatch.setattr(stages, "BoundBeside", unsent)
    tier = solve(asked.problem, Options(time_limit=6, processes=2)).tiers[-1]
    assert 0 < tier.bound <= tier.value


def test_a_search_has_a_bound_from_beside_it() -> None:
    problem = question(12).problem
    outcome = solve(problem, Options(time_limit=8, processes=2))
    tier = outcome.tiers[-1]
    assert tier.bound_by in {"final-state bound", "enumeration"}
    assert 0 < tier.bound <= tier.value
