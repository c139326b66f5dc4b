"""Where sub-problems are worked on: here, in other processes, or wherever else plain data can travel to.

A `Task` and its `TaskResult` are arrays and numbers. A `Backend` decides where they are computed; what comes back
does not depend on it, as long as the task's limits are of work and not of time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Protocol, Self

from stowplan.models.errors import InternalError
from stowplan.models.stop import Stop
from stowplan.optimizer.cpsat.task import POLL, Task, TaskResult, solve_task
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.processes import GRACE, WorkerDiedError, WorkerNotBegunError, Workers

RESTARTS = 4
"""How many deaths of processes are made up for, for each process there is, before the rest is done here."""

RETRIES = 2
"""How often a task is worked on again whose process died."""

AHEAD = 1
"""Tasks that wait beside those worked on, so that no process idles while the next one is built."""

NOTHING = TaskResult(None, None, False, 0.0)
"""What comes of a task that was not worked on."""


class Backend(Protocol):
    """Works on tasks.

    Attributes
    ----------
    notes
        What went wrong on the way and was made up for.
    """

    notes: list[str]

    def stream(self, tasks: Iterable[Task], deadline: Deadline | None = None) -> Iterator[TaskResult]:
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
    """Works on one task after the other, here.

    Parameters
    ----------
    stop
        Stop signal.
    """

    def __init__(self, stop: Stop | None = None) -> None:
        self.stop = stop or Stop()
        self.notes: list[str] = []

    def stream(self, tasks: Iterable[Task], deadline: Deadline | None = None) -> Iterator[TaskResult]:
        """Yield the answer to each task."""
        for task in tasks:
            yield NOTHING if deadline is not None and deadline.over else self.work(task)

    def work(self, task: Task) -> TaskResult:
        """Answer one task."""
        if self.stop.is_set():
            return NOTHING
        try:
            return solve_task(task, self.stop.is_set)
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
    """A task under way; ``future`` is ``None`` if it will be done here.

    ``deaths`` counts the workers that died over it.
    """

    task: Task
    future: Future[TaskResult] | None
    deaths: int = 0


class ProcessBackend:
    """Works on tasks in processes of its own, which begin with the first tasks.

    A process that dies is replaced, and the task it had is worked on again. A task that has cost more than `RETRIES`
    processes is left out: done here, it might cost this process too. When processes die too often or cannot be begun,
    the rest is done in this process.

    Parameters
    ----------
    stop
        Stop signal.
    workers
        How many processes.
    """

    def __init__(self, workers: int, stop: Stop) -> None:
        self.workers = workers
        self.stop = stop
        self.notes: list[str] = []
        self._here = SerialBackend(stop)
        self._here.notes = self.notes
        self._processes: Workers | None = None
        self._deaths = 0
        self._given_up = False

    def stream(self, tasks: Iterable[Task], deadline: Deadline | None = None) -> Iterator[TaskResult]:
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
            except WorkerNotBegunError as error:
                if not self._given_up:
                    self.notes.append(f"sub-problems were worked on without processes of their own: {error}")
                self._given_up = True
                pending[0] = self._send(sent.task, sent.deaths)
                continue
            except WorkerDiedError:
                self._count_death()
                if sent.deaths < RETRIES and not self._given_up:
                    pending[0] = self._send(sent.task, sent.deaths + 1)
                    continue
                self.notes.append("a sub-problem was left out: the processes that worked on it died")
                found = NOTHING
            except InternalError as error:
                self.notes.append(f"a sub-problem was left out: {error}")
                found = NOTHING
            pending.popleft()
            yield found

    def close(self) -> None:
        """End the processes."""
        if self._processes is not None:
            self._processes.close()
            self._processes = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, task: Task, deaths: int = 0) -> _Sent:
        """Hand a task to the processes, or keep it to be done here."""
        if self.stop.is_set() or self._given_up:
            return _Sent(task, None, deaths)
        if self._processes is None:
            self._processes = Workers(self.workers)
        return _Sent(task, self._processes.submit(_work, task), deaths)

    def _count_death(self) -> None:
        self._deaths += 1
        self._given_up = self._deaths > RESTARTS * self.workers
        if self._given_up:
            self.notes.append("processes for sub-problems died repeatedly; the rest was done without them")
        else:
            self.notes.append("a process for sub-problems died and was replaced")

    def _await(self, future: Future[TaskResult], deadline: Deadline | None) -> TaskResult:
        """Wait for an answer, and hand the stop signal on."""
        ending: float | None = None
        while not wait([future], POLL).done:
            if self.stop.is_set():
                if ending is None:
                    ending = time.monotonic() + GRACE
                    if self._processes is not None:
                        self._processes.tell_to_stop()
                elif time.monotonic() > ending:
                    return NOTHING
            elif deadline is not None and deadline.over:
                future.cancel()  # if it is being worked on, it ends at its own limit
                return NOTHING
        return future.result()


def _work(stop: Stop, task: Task) -> TaskResult:
    """Answer a task, in another process."""
    return NOTHING if stop.is_set() else solve_task(task, stop.is_set)
