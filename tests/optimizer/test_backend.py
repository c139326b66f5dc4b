"""Sub-problems are answered alike wherever they are worked on, and whatever happens to the processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from stowplan.models.stop import Stop
from stowplan.optimizer.backend import RESTARTS, ProcessBackend, SerialBackend
from stowplan.optimizer.cpsat.builder import Builder, Linear, Model
from stowplan.optimizer.cpsat.task import Answer, Limits, Task
from stowplan.optimizer.deadline import Deadline

ROOT = Path(__file__).parent.parent.parent


def knapsack(seed: int, items: int) -> Model:
    """Build a multi-dimensional knapsack; large ones take CP-SAT longer than any test may."""
    rng = np.random.default_rng(seed)
    builder = Builder()
    chosen = [builder.flag(False) for _ in range(items)]
    for _ in range(5):
        weights = rng.integers(10, 1000, items).tolist()
        builder.at_most(Linear(chosen, weights), sum(weights) // 3)
    return builder.minimize(Linear(chosen, (-rng.integers(10, 1000, items)).tolist()))


def tasks(number: int, items: int = 12, limits: Limits | None = None) -> list[Task]:
    return [Task(knapsack(seed, items), limits or Limits(work=5.0)) for seed in range(number)]


def found(answers: Iterator[Answer]) -> list[tuple[list[int], int | None, bool]]:
    return [(a.values.tolist() if a.values is not None else [], a.bound, a.optimal) for a in answers]


@pytest.fixture(scope="module")
def expected() -> list[tuple[list[int], int | None, bool]]:
    answers = found(SerialBackend(Stop()).stream(tasks(6)))
    assert all(optimal for _, _, optimal in answers)
    assert len({str(values) for values, _, _ in answers}) > 1
    return answers


def test_a_pool_answers_as_one_process_does_in_the_order_of_the_tasks(expected: list[object]) -> None:
    with ProcessBackend(2, Stop()) as pool:
        assert found(pool.stream(tasks(6))) == expected
        assert found(pool.stream(tasks(2))) == expected[:2]
        assert not pool.notes


def test_a_killed_process_is_replaced_and_no_answer_is_lost(expected: list[object]) -> None:
    with ProcessBackend(2, Stop()) as pool:
        answers = []
        for answer in pool.stream(tasks(6)):
            if not answers:
                kill_workers(pool)
            answers.append(answer)
        assert found(iter(answers)) == expected
        assert pool.notes == ["a process for sub-problems died and was replaced"]


def test_processes_that_die_again_and_again_are_done_without(expected: list[object]) -> None:
    with ProcessBackend(1, Stop()) as pool:

        def deadly() -> Iterator[Task]:
            for task in tasks(6):
                yield task
                kill_workers(pool)

        assert found(pool.stream(deadly())) == expected
        assert len(pool.notes) == RESTARTS + 1
        assert "repeatedly" in pool.notes[-1]


def kill_workers(pool: ProcessBackend) -> None:
    processes = {} if pool._pool is None else pool._pool._processes
    for process in list(processes.values()):
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()


@pytest.mark.parametrize("kind", [SerialBackend, ProcessBackend])
def test_the_stop_signal_ends_what_is_under_way_within_a_second(kind: type) -> None:
    stop = Stop()
    endless = tasks(50, 400, Limits(seconds=300))
    with SerialBackend(stop) if kind is SerialBackend else ProcessBackend(1, stop) as backend:
        list(backend.stream(tasks(1)))  # so that a process has begun
        told_at: list[float] = []
        threading.Timer(1.0, lambda: (told_at.append(time.monotonic()), stop.set())).start()
        answers = list(backend.stream(endless))
        assert stop.is_set()
        assert len(answers) == len(endless)
        assert time.monotonic() < told_at[0] + 1.0


def test_a_pool_waits_no_longer_than_the_deadline() -> None:
    with ProcessBackend(1, Stop()) as pool:
        list(pool.stream(tasks(1)))
        began = time.monotonic()
        answers = list(pool.stream(tasks(3, 400, Limits(seconds=300)), Deadline(1.0)))
        assert len(answers) == 3
        assert time.monotonic() - began < 2.0


def test_a_model_that_cannot_be_solved_is_left_out_with_a_note() -> None:
    builder = Builder()
    builder.at_least(Linear.of(builder.flag(True)), 2)
    impossible = Task(builder.minimize(Linear()), Limits(work=1.0))
    for backend in (SerialBackend(Stop()), ProcessBackend(1, Stop())):
        with backend:
            answers = list(backend.stream([impossible, *tasks(1)]))
            assert answers[0].values is None
            assert answers[1].optimal
            assert "infeasible" in backend.notes[0]


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    """New processes must not run the caller's script again."""
    script = tmp_path / "script.py"
    script.write_text(
        "print('ran')\n"
        "from optimizer.control import Stop\n"
        "from optimizer.executor import PoolExecutor\n"
        "from tests.optimizer.test_backend import tasks\n"
        "with PoolExecutor(1, Stop()) as pool:\n"
        "    print(sum(a.optimal for a in pool.stream(tasks(2))), pool.notes)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.splitlines() == ["ran", "2 []"]


def test_processes_end_with_the_one_that_began_them() -> None:
    code = (
        "import time\n"
        "from optimizer.control import Stop\n"
        "from optimizer.executor import PoolExecutor\n"
        "from tests.optimizer.test_backend import tasks\n"
        "pool = PoolExecutor(1, Stop())\n"
        "list(pool.stream(tasks(1)))\n"
        "print(*pool._pool._processes, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    gone = time.monotonic() + 10
    while running(worker) and time.monotonic() < gone:
        time.sleep(0.05)
    assert not running(worker)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
