"""Worker processes: what their jobs see, and what happens to them when something dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from pathlib import Path

import psutil
import pytest

from stowplan.models.errors import InputError
from stowplan.models.stop import Stop
from stowplan.optimizer.processes import WorkerDiedError, Workers
from tests.support.processes import ended, workers_of

ROOT = Path(__file__).parent.parent.parent


def pid(stop: Stop) -> int:
    return os.getpid()


def blocked(stop: Stop) -> set[int]:
    return set(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ())))


def until_told(stop: Stop) -> str:
    return "told" if stop.wait(60) else "never told"


def sleep(stop: Stop, seconds: float) -> None:
    time.sleep(seconds)


def die(stop: Stop) -> None:
    os._exit(9)


def leave(stop: Stop) -> None:
    sys.exit(3)


def refuse(stop: Stop, *, field: str) -> None:
    raise InputError("is wrong", field=field)


class StubbornError(Exception):
    """Cannot be unpickled."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(one + other)


def fail_stubbornly(stop: Stop) -> None:
    raise StubbornError("can", "not")


def count_up(stop: Stop, tell: Callable[[int], object], number: int) -> str:
    for i in range(number):
        tell(i)
    return "done"


def tell_and_die(stop: Stop, tell: Callable[[int], object]) -> None:
    tell(3)
    os.kill(os.getpid(), signal.SIGKILL)


def nest(stop: Stop) -> list[int]:
    """Begin a worker of a worker, and leave it working."""
    global _nested
    _nested = Workers(1)
    inner = _nested.submit(pid).result()
    _nested.submit(sleep, 600)
    return [os.getpid(), inner]


_nested: Workers | None = None


def test_jobs_run_side_by_side_in_processes_that_stay() -> None:
    with Workers(2) as workers:
        first, second = workers.submit(sleep, 0.2), workers.submit(pid)
        wait([first, second])
        assert {workers.submit(pid).result() for _ in range(6)} <= set(workers.pids)
        assert len(workers.pids) == 2
        assert os.getpid() not in workers.pids


def test_what_a_job_tells_is_heard_in_order_before_its_result() -> None:
    heard: list[int] = []
    with Workers(1) as workers:
        assert workers.submit_telling(heard.append, count_up, 3).result() == "done"
        assert heard == [0, 1, 2]
        with pytest.raises(WorkerDiedError):
            workers.submit_telling(heard.append, tell_and_die).result()
        assert heard == [0, 1, 2, 3]
        assert workers.submit(pid).result() in workers.pids


def test_errors_come_back_as_they_are_and_those_that_cannot_travel_as_text() -> None:
    with Workers(1) as workers:
        with pytest.raises(InputError, match="is wrong") as raised:
            workers.submit(refuse, field="spec.x").result()
        assert str(raised.value) == "spec.x: is wrong"
        assert "in refuse" in raised.value.__notes__[0]
        with pytest.raises(RuntimeError, match="StubbornError: cannot"):
            workers.submit(fail_stubbornly).result()


@pytest.mark.parametrize("deadly", [die, leave])
def test_a_worker_that_dies_takes_its_own_job_along_and_no_other(deadly: object) -> None:
    with Workers(2) as workers:
        other = workers.submit(until_told)
        with pytest.raises(WorkerDiedError):
            workers.submit(deadly).result()  # type: ignore[arg-type]
        assert workers.submit(pid).result() in workers.pids
        workers.tell_to_stop()
        assert other.result(10) == "told"


def test_a_worker_that_died_idle_is_replaced_and_costs_no_job() -> None:
    with Workers(1) as workers:
        first = workers.submit(pid).result()
        os.kill(first, signal.SIGKILL)
        psutil.Process(first).wait()
        assert workers.submit(pid).result() != first


def test_signals_for_the_group_are_left_to_the_parent() -> None:
    """The very first process, with which multiprocessing begins one that unblocks signals, is no exception."""
    code = (
        "from stowplan.optimizer.processes import Workers\n"
        "from tests.optimizer.test_processes import blocked\n"
        "with Workers(2) as workers:\n"
        "    print(sorted(workers.submit(blocked).result()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == str(sorted([int(signal.SIGINT), int(signal.SIGTERM)]))
    assert not done.stderr


def test_who_hears_a_stop_answers_and_who_does_not_is_killed() -> None:
    began = time.monotonic()
    with Workers(2) as workers:
        hearing, deaf = workers.submit(until_told), workers.submit(sleep, 600)
        while len(workers.pids) < 2:
            time.sleep(0.05)
        processes = [psutil.Process(pid) for pid in workers.pids]
        workers.tell_to_stop()
        assert hearing.result(30) == "told"
    assert ended(processes, 0.0)
    with pytest.raises(WorkerDiedError):
        deaf.result(5)
    assert time.monotonic() - began < 30


def test_a_worker_begun_after_the_word_to_stop_hears_it_too() -> None:
    with Workers(1) as workers:
        workers.tell_to_stop()
        assert workers.submit(until_told).result(30) == "told"


def test_workers_of_workers_end_with_the_process_that_began_them_all() -> None:
    code = (
        "import time\n"
        "from stowplan.optimizer.processes import Workers\n"
        "from tests.optimizer.test_processes import nest\n"
        "workers = Workers(1)\n"
        "print(*workers.submit(nest).result(), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout is not None
        processes = [psutil.Process(int(word)) for word in parent.stdout.readline().split()]
        assert len(processes) == 2
        parent.kill()
    assert ended(processes)


def test_a_process_that_forgets_to_close_its_workers_ends_nevertheless() -> None:
    code = (
        "from stowplan.optimizer.processes import Workers\n"
        "from tests.optimizer.test_processes import pid\n"
        "workers = Workers(1)\n"
        "print(workers.submit(pid).result())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60
    )
    worker = int(done.stdout)
    assert not psutil.pid_exists(worker) or psutil.Process(worker).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("as_file", [True, False])
def test_a_script_without_a_guard_runs_once(tmp_path: Path, as_file: bool) -> None:
    code = (
        "print('ran')\n"
        "from stowplan.optimizer.processes import Workers\n"
        "from tests.optimizer.test_processes import pid\n"
        "with Workers(2) as workers:\n"
        "    print(len({workers.submit(pid).result() for _ in range(3)}) <= 2)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script) if as_file else "-"],
        input=None if as_file else code,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.splitlines() == ["ran", "True"]


def test_the_main_module_is_back_when_processes_have_begun() -> None:
    before = sys.modules["__main__"]
    with Workers(3) as workers:
        jobs = [workers.submit(sleep, 0.1) for _ in range(3)]
        threading.Event().wait(0.2)
        assert not wait(jobs, 30).not_done
        assert len(workers_of()) >= 1
    assert sys.modules["__main__"] is before
