"""Where sub-problems are worked on: here, in other processes, or wherever else plain data can travel to.

A `Task` and its `Answer` are arrays and numbers. Whoever implements `Backend` decides who computes; what comes back
does not depend on it, as long as the task's limits are of work and not of time.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for_end
from multiprocessing.synchronize import Event
from types import ModuleType
from typing import Protocol, Self

from stowplan.models.errors import InternalError
from stowplan.models.stop import Stop
from stowplan.optimizer.cpsat.task import POLL, Answer, Task, answer
from stowplan.optimizer.deadline import Deadline

GRACE = 0.5
"""Seconds that tasks have to end after the stop signal; what takes longer is left to itself."""

RESTARTS = 2
"""How often processes that died are replaced before the rest is done here."""

AHEAD = 1
"""Tasks that wait beside those worked on, so that no process idles while the next one is built."""

NOTHING = Answer(None, None, False, 0.0)
"""What comes of a task that was not worked on."""


class Backend(Protocol):
    """Works on tasks.

    Attributes
    ----------
    notes
        What went wrong on the way and was made up for.
    """

    notes: list[str]

    def stream(self, tasks: Iterable[Task], deadline: Deadline | None = None) -> Iterator[Answer]:
        """Yield the answer to each task, in their order.

        Tasks are taken from the iterable when there is room for them, so it may make the next one out of answers
        that have come. A task that fails, or that the stop signal cuts off, is answered without values.

        Parameters
        ----------
        deadline
            When to wait no longer; what is then under way is answered without values.
        """

    def close(self) -> None:
        """End what is under way."""


class SerialBackend:
    """Works on one task after the other, here."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self.notes: list[str] = []

    def stream(self, tasks: Iterable[Task], deadline: Deadline | None = None) -> Iterator[Answer]:
        """Yield the answer to each task."""
        for task in tasks:
            yield NOTHING if deadline is not None and deadline.over else self.work(task)

    def work(self, task: Task) -> Answer:
        """Answer one task."""
        if self.stop.is_set():
            return NOTHING
        try:
            return answer(task, self.stop.is_set)
        except InternalError as error:
            self.notes.append(f"a sub-problem was left out: {error}")
            return NOTHING

    def close(self) -> None:
        """Nothing is under way."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class _Sent:
    """A task under way; ``future`` is ``None`` if it will be done here."""

    task: Task
    future: Future[Answer] | None
    deaths: int

    @property
    def answered(self) -> bool:
        future = self.future
        return future is not None and future.done() and not future.cancelled() and future.exception() is None


class ProcessBackend:
    """Works on tasks in processes of its own, which begin with the first task.

    A process that dies is replaced, and the tasks it had are worked on again. If that happens more often than
    `RESTARTS` times, the rest is done in this process.

    Parameters
    ----------
    workers
        How many processes.
    """

    def __init__(self, workers: int, stop: Stop) -> None:
        self.workers = workers
        self.stop = stop
        self.notes: list[str] = []
        self._here = SerialBackend(stop)
        self._here.notes = self.notes
        self._context = multiprocessing.get_context("spawn")
        self._pool: ProcessPoolExecutor | None = None
        self._told: Event | None = None
        self._deaths = 0

    def stream(self, tasks: Iterable[Task], deadline: Deadline | None = None) -> Iterator[Answer]:
        """Yield the answer to each task."""
        source = iter(tasks)
        pending: deque[_Sent] = deque()
        while True:
            while len(pending) < self.workers + AHEAD and (task := next(source, None)) is not None:
                pending.append(self._send(task))
            if not pending:
                return
            sent = pending[0]
            try:
                found = self._here.work(sent.task) if sent.future is None else self._await(sent.future, deadline)
            except BrokenExecutor:
                self._replace(sent.deaths)
                pending = deque(other if other.answered else self._send(other.task) for other in pending)
                continue
            except InternalError as error:
                self.notes.append(f"a sub-problem was left out: {error}")
                found = NOTHING
            pending.popleft()
            yield found

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            if self._told is not None:
                self._told.set()
            processes = list((self._pool._processes or {}).values())
            self._pool.shutdown(wait=False, cancel_futures=True)
            ending = time.monotonic() + GRACE
            for process in processes:
                process.join(max(0.0, ending - time.monotonic()))
                if process.is_alive():
                    process.kill()
            self._pool = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, task: Task) -> _Sent:
        """Hand a task to the processes, or keep it to be done here."""
        while self._deaths <= RESTARTS:
            deaths = self._deaths
            try:
                with unattended():
                    if self._pool is None:
                        self._told = self._context.Event()
                        self._pool = ProcessPoolExecutor(
                            self.workers, mp_context=self._context, initializer=_begin, initargs=(self._told,)
                        )
                    return _Sent(task, self._pool.submit(_work, task), deaths)
            except (BrokenExecutor, OSError):
                self._replace(deaths)
        return _Sent(task, None, self._deaths)

    def _replace(self, deaths: int) -> None:
        """Give up the processes that were there after so many deaths; all their tasks fail, so this is told often."""
        if deaths < self._deaths:
            return
        self._deaths += 1
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        if self._deaths > RESTARTS:
            self.notes.append("processes for sub-problems died repeatedly; the rest was done without them")
        else:
            self.notes.append("a process for sub-problems died and was replaced")

    def _await(self, future: Future[Answer], deadline: Deadline | None) -> Answer:
        """Wait for an answer, and hand the stop signal on."""
        ending: float | None = None
        while not wait([future], POLL).done:
            if self.stop.is_set():
                if ending is None:
                    ending = time.monotonic() + GRACE
                    if self._told is not None:
                        self._told.set()
                elif time.monotonic() > ending:
                    return NOTHING
            elif deadline is not None and deadline.over:
                future.cancel()  # if it is being worked on, it ends at its own limit
                return NOTHING
        return future.result()


# -- in the other process -------------------------------------------------------------------------------------

_told_to_stop: Event | None = None


def _begin(told: Event) -> None:
    """Prepare a new process: listen for the stop signal, and end when the process that began it is gone."""
    global _told_to_stop
    _told_to_stop = told
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for_end([sentinel])
    os._exit(1)


def _work(task: Task) -> Answer:
    told = _told_to_stop
    if told is None:
        return answer(task)
    return NOTHING if told.is_set() else answer(task, told.is_set)


@contextlib.contextmanager
def unattended() -> Iterator[None]:
    """Begin processes that neither run the caller's script again nor hear an interrupt from the terminal.

    A new process imports the main module of the one that began it, for functions that are defined there. Ours are
    not, and a script without a guard would solve its problem once more. The interrupt is for this process, which
    tells the others; a mask that is in force when a process begins stays so in it.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if masked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
