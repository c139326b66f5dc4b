"""Sub-problems are answered alike wherever they are worked on, and whatever happens to the processes."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import SpawnProcess
from pathlib import Path

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import PRESETS
from stowplan.models.problem import Problem
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import RESTARTS, RETRIES, Backend, ProcessBackend, SerialBackend
from stowplan.optimizer.cpsat.builder import Builder, Linear, Model
from stowplan.optimizer.cpsat.task import SolverLimits, Task, TaskResult
from stowplan.optimizer.deadline import Deadline
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.processes import workers_of


def knapsack(seed: int, items: int) -> Model:
    """Build a multi-dimensional knapsack; large ones take CP-SAT longer than any test may."""
    rng = np.random.default_rng(seed)
    builder = Builder()
    chosen = [builder.flag(False) for _ in range(items)]
    for _ in range(5):
        weights = rng.integers(10, 1000, items).tolist()
        builder.at_most(Linear(chosen, weights), sum(weights) // 3)
    return builder.minimize(Linear(chosen, (-rng.integers(10, 1000, items)).tolist()))


Answer = tuple[list[int], int | None, bool]
"""Values, bound, and whether it is optimal."""


def uneven() -> Problem:
    """Return the problem of a cluster with an uneven history."""
    return compile_problem(synthetic_snapshot(12, 90, seed=1), default_profile(K36), PRESETS["balance"]).problem


def tasks(number: int, items: int = 12, limits: SolverLimits | None = None) -> list[Task]:
    return [Task(knapsack(seed, items), limits or SolverLimits(work=5.0)) for seed in range(number)]


def stream(backend: Backend, given: Iterable[Task], deadline: Deadline | None = None) -> Iterator[TaskResult]:
    return (result for _, result in backend.stream(given, deadline))


def found(answers: Iterator[TaskResult]) -> list[Answer]:
    return [(a.values.tolist() if a.values is not None else [], a.bound, a.optimal) for a in answers]


@pytest.fixture(scope="module")
def expected() -> list[Answer]:
    answers = found(stream(SerialBackend(Stop()), tasks(6)))
    assert all(optimal for _, _, optimal in answers)
    assert len({str(values) for values, _, _ in answers}) > 1
    return answers


def test_a_pool_answers_as_one_process_does_in_the_order_of_the_tasks(expected: list[object]) -> None:
    with ProcessBackend(2, Stop()) as pool:
        assert found(stream(pool, tasks(6))) == expected
        assert found(stream(pool, tasks(2))) == expected[:2]
        assert not pool.notes


def test_a_killed_process_is_replaced_and_no_answer_is_lost(expected: list[object]) -> None:
    (slow,) = tasks(1, 400, SolverLimits(seconds=2))  # under way when the first answer comes
    quick = tasks(6)
    with ProcessBackend(2, Stop()) as pool:
        answers = []
        for answer in stream(pool, [quick[0], slow, *quick[1:]]):
            if not answers:
                kill_workers()
            answers.append(answer)
        assert answers.pop(1).values is not None
        assert found(iter(answers)) == expected
        assert set(pool.notes) == {REPLACED}


def test_a_task_that_costs_process_after_process_is_left_out(expected: list[object]) -> None:
    """Were it done here in the end, it would cost this process too."""
    with ProcessBackend(1, Stop()) as pool:
        answers = list(stream(pool, [deadly(), *tasks(2)]))
        assert answers[0].values is None
        assert found(iter(answers[1:])) == expected[:2]
        assert pool.notes == [*[REPLACED] * (RETRIES + 1), LEFT_OUT]


def test_processes_that_die_again_and_again_are_done_without(expected: list[object]) -> None:
    with ProcessBackend(1, Stop()) as pool:
        answers = list(stream(pool, [deadly(), deadly(), *tasks(2)]))
        assert [answer.values for answer in answers[:2]] == [None, None]
        assert found(iter(answers[2:])) == expected[:2]
        assert not workers_of()
        assert pool.notes.count(REPLACED) == RESTARTS
        assert pool.notes.count(LEFT_OUT) == 2
        assert "processes for sub-problems died repeatedly; the rest was done without them" in pool.notes


def test_where_no_process_can_be_begun_all_is_done_here(
    expected: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(process: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(SpawnProcess, "start", refuse)
    with ProcessBackend(2, Stop()) as pool:
        assert found(stream(pool, tasks(4))) == expected[:4]
        (note,) = pool.notes
        assert note.endswith("a worker process could not be begun: Resource temporarily unavailable")


REPLACED = "a process for sub-problems died and was replaced"
LEFT_OUT = "a sub-problem was left out: the processes that worked on it died"


def deadly() -> Task:
    """Return a task that ends the process which reads it."""
    return Task(object.__new__(DeadlyModel), SolverLimits(work=5.0))


class DeadlyModel(Model):
    """A model that ends the process which reads it."""

    def __reduce__(self) -> tuple[Callable[[int], object], tuple[int]]:
        return os._exit, (9,)


def deadly_once(task: Task, mark: Path) -> Task:
    """Return a task that kills the process which reads it first, and can be done by the next one."""
    model = object.__new__(MortalModel)
    object.__setattr__(model, "really", (task.model, mark))  # a model is frozen
    return Task(model, task.limits)


class MortalModel(Model):
    """A model that kills the process which reads it, unless a file says that one was killed."""

    really: tuple[Model, Path]

    def __reduce__(self) -> tuple[Callable[[Model, Path], Model], tuple[Model, Path]]:
        return killed_first, self.really


def killed_first(model: Model, mark: Path) -> Model:
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return model


def kill_workers() -> None:
    for worker in workers_of():
        worker.kill()
        worker.wait()


@pytest.mark.parametrize("kind", [SerialBackend, ProcessBackend])
def test_the_stop_signal_ends_what_is_under_way_within_a_second(kind: type) -> None:
    stop = Stop()
    endless = tasks(50, 400, SolverLimits(seconds=300))
    with SerialBackend(stop) if kind is SerialBackend else ProcessBackend(1, stop) as backend:
        list(stream(backend, tasks(1)))  # so that a process has begun
        told_at: list[float] = []
        threading.Timer(1.0, lambda: (told_at.append(time.monotonic()), stop.set())).start()
        answers = list(stream(backend, endless))
        assert stop.is_set()
        assert len(answers) == len(endless)
        assert time.monotonic() < told_at[0] + 1.0


def test_a_pool_waits_no_longer_than_the_deadline() -> None:
    with ProcessBackend(1, Stop()) as pool:
        list(stream(pool, tasks(1)))
        began = time.monotonic()
        answers = list(stream(pool, tasks(3, 400, SolverLimits(seconds=300)), Deadline(1.0)))
        assert len(answers) == 3
        assert time.monotonic() - began < 2.0


def test_a_model_that_cannot_be_solved_is_left_out_with_a_note() -> None:
    builder = Builder()
    builder.at_least(Linear.of(builder.flag(True)), 2)
    impossible = Task(builder.minimize(Linear()), SolverLimits(work=1.0))
    for backend in (SerialBackend(Stop()), ProcessBackend(1, Stop())):
        with backend:
            answers = list(stream(backend, [impossible, *tasks(1)]))
            assert answers[0].values is None
            assert answers[1].optimal
            assert "infeasible" in backend.notes[0]
