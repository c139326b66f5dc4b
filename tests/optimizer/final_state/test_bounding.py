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
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.final_state import bounding, stages
from stowplan.optimizer.final_state.bounding import BoundBeside, Found, NotSentError, Question, lower_bounds, works
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.portfolio import solve
from stowplan.optimizer.processes import WorkerDiedError
from stowplan.settings.problem import make_problem
from tests.support.final_states import asked_today

SECONDS = 60.0


def question(nodes: int, objective: str = "kube", max_moves: int | None = None) -> Question:
    settings = Settings(objective=objective, max_moves=max_moves)
    return asked_today(make_problem(synthetic_snapshot(nodes, 10 * nodes, 3), settings).problem)


def awaited(beside: BoundBeside) -> list[Found]:
    """Return all that comes of a process that is given the time it takes."""
    deadline = Deadline(4 * SECONDS)
    while not beside.done and not deadline.over:
        time.sleep(0.05)
    assert beside.done
    return beside.new()


STEPS = FinalStateParameters(most_steps=40, largest_program=0, pairs_a_second=0.0, branched_nodes=0)
"""Ends by itself, however slow the machine is."""

AT_ONCE = Parameters(final_state=replace(STEPS, beside_seconds=0.0))
"""A process of its own however little time there is."""


@pytest.mark.parametrize("objective", ["kube", "global"])
def test_a_process_finds_what_is_found_here(objective: str) -> None:
    asked = question(8, objective)
    with BoundBeside(asked, SECONDS, STEPS) as beside:
        found = awaited(beside)
        assert beside.new() == []
    here = list(lower_bounds(asked, Deadline(SECONDS), STEPS))
    assert len(found) == len(here) == (2 if objective == "global" else 1)
    assert found[-1] == here[-1]
    assert all(0 < one.bound <= asked.value for one in found)


def test_few_moves_are_bounded_by_loads_and_score_each_by_itself() -> None:
    chosen = FinalStateParameters()

    def split_share(asked: Question, deadline: Deadline) -> float:
        return works(asked, deadline, chosen)[0][1]

    assert split_share(question(20, "global", max_moves=5), Deadline(SECONDS)) == chosen.split_share
    more = question(20, "global")
    assert split_share(more, Deadline(SECONDS)) == chosen.short_split_share
    assert split_share(more, Deadline(SECONDS, deterministic=True)) == chosen.split_share


def test_a_process_that_is_told_to_stop_says_what_it_has() -> None:
    endless = FinalStateParameters(most_steps=10**9, largest_program=0, pairs_a_second=0.0, branched_nodes=0)
    with BoundBeside(question(8), 100 * SECONDS, endless) as beside:
        began(beside)
        beside.end(SECONDS)
        (found,) = beside.new()
    assert found.bound > 0


def began(beside: BoundBeside) -> None:
    deadline = Deadline(SECONDS)
    while not beside.pids and not deadline.over:
        time.sleep(0.05)
    assert beside.pids


def test_no_bound_comes_of_a_process_that_died() -> None:
    with BoundBeside(question(60, "global"), SECONDS, FinalStateParameters()) as beside:
        began(beside)
        while not beside.failure:
            for pid in beside.pids:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
    assert isinstance(beside.failure, WorkerDiedError)
    assert beside.new() == []


def test_a_search_takes_the_bound_from_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[int] = []

    class Watched(BoundBeside):
        def new(self) -> list[Found]:
            come = super().new()
            bounds.extend(found.bound for found in come)
            if come:
                stop.set()  # sooner or later, by how fast the machine begins a process
            return come

    stop = Stop()
    monkeypatch.setattr(stages, "BoundBeside", Watched)
    options = Options(time_limit=40, processes=2, parameters=AT_ONCE)
    outcome = solve(question(12).problem, options, stop=stop)
    tier = outcome.tiers[-1]
    assert tier.bound_by == "final-state bound"
    assert [tier.bound] == bounds
    assert 0 < tier.bound <= tier.value


def test_what_cannot_be_sent_is_bounded_here(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, refused = question(12), []

    def unsent(_: Question, seconds: float, parameters: FinalStateParameters) -> BoundBeside:
        def unreadable() -> None:
            """Is defined inside a function, so that it cannot be sent."""

        reached: Any = (unreadable,)
        try:
            return BoundBeside(replace(asked, reached=reached), seconds, parameters)
        except NotSentError as error:
            refused.append(str(error))
            raise

    monkeypatch.setattr(stages, "BoundBeside", unsent)
    outcome = solve(asked.problem, Options(time_limit=6, processes=2, parameters=AT_ONCE))
    assert refused
    assert any("no process of its own" in note for note in outcome.notes)
    assert 0 < outcome.tiers[-1].bound <= outcome.tiers[-1].value


def test_what_fails_in_the_process_is_bounded_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "BoundBeside", lambda asked, *rest: BoundBeside(replace(asked, tier=99), *rest))
    monkeypatch.setattr(bounding, "splits", lambda problem, tier: False)
    outcome = solve(question(12).problem, Options(time_limit=12, processes=2, parameters=AT_ONCE))
    assert any("failed in its process" in note for note in outcome.notes)
    assert 0 < outcome.tiers[-1].bound <= outcome.tiers[-1].value


def test_a_small_problem_is_divided_while_it_is_searched() -> None:
    """The process begins before the search on surrogates, and what it finds is taken."""
    problem = make_problem(synthetic_snapshot(3, 12, 5), Settings(objective="kube")).problem
    chosen = Parameters(final_state=FinalStateParameters(beside_seconds=0.0, enumerated=0))
    outcome = solve(problem, Options(time_limit=20, processes=2, parameters=chosen))
    assert outcome.tiers[-1].bound_by == "final-state bound"
    assert outcome.tiers[-1].bound == outcome.tiers[-1].value > 0
