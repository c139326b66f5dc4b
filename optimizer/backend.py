"""Where sub-problems are worked on: here, in other processes, in a Ray cluster, or wherever plain data can travel to.

A `Task` and its `TaskResult` are arrays and numbers. A `Backend` decides where they are computed; what comes back
does not depend on it, as long as the task's limits are of work and not of time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

from stowplan.models.errors import InternalError
from stowplan.models.options import LOCAL, Options
from stowplan.models.stop import Stop
from stowplan.models.words import plural
from stowplan.optimizer.cpsat.task import POLL, Task, TaskResult, solve_task
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.distributed.cluster import Cluster, Group, joined
from stowplan.optimizer.processes import GRACE, WorkerDiedError, WorkerNotBegunError, Workers

T = TypeVar("T")

RESTARTS = 4
"""How many deaths of processes are made up for, for each process there is, before the rest is done here."""

RETRIES = 2
"""How often a task is worked on again whose process died."""

AHEAD = 1
"""Tasks that wait beside those worked on, so that no worker idles while the next one is built."""

NOTHING = TaskResult(None, None, False, 0.0)
"""What comes of a task that was not worked on."""


@dataclass(slots=True)
class JobCounts:
    """What became of jobs.

    Parameters
    ----------
    done
        Jobs that were answered.
    lost
        Workers that died with a job; the job was done again, or left out.
    dropped
        Answers that did not go together with what had been accepted meanwhile.
    seconds
        While jobs were handed out, from the first one to the last answer.
    waited
        Of these, seconds in which nothing was left to do for jobs but wait for answers.
    """

    done: int = 0
    lost: int = 0
    dropped: int = 0
    seconds: float = 0.0
    waited: float = 0.0

    @property
    def coordination(self) -> float:
        """Share of the time in which the coordinator was at work: building tasks, merging answers."""
        return max(0.0, 1 - self.waited / self.seconds) if self.seconds else 0.0


class Backend(Protocol):
    """Works on tasks.

    Attributes
    ----------
    notes
        What went wrong on the way and was made up for.
    counts
        What became of the tasks.
    """

    notes: list[str]
    counts: JobCounts

    def stream(
        self, tasks: Iterable[Task], deadline: Deadline | None = None, *, ordered: bool = True
    ) -> Iterator[tuple[int, TaskResult]]:
        """Yield the number of each task, from 0, and its answer.

        Tasks are taken from the iterable when there is room for them, so it may make the next one out of answers
        that have come. A task that fails, or that the stop signal cuts off, is answered without values.

        Parameters
        ----------
        deadline
            When to wait no longer; what is then under way is answered without values.
        ordered
            Whether answers come in the order of the tasks, or each as soon as it is there.
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
        self.counts = JobCounts()

    def stream(
        self, tasks: Iterable[Task], deadline: Deadline | None = None, *, ordered: bool = True
    ) -> Iterator[tuple[int, TaskResult]]:
        """Yield the number and the answer of each task."""
        for number, task in enumerate(tasks):
            yield number, NOTHING if deadline is not None and deadline.over else self.work(task)
            self.counts.done += 1

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


class Pool(Protocol):
    """Workers that each do one job at a time; `stowplan.optimizer.processes.Workers` says more."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Future[Any]:
        """Have a worker call ``function(stop, *args, **keywords)``."""

    def tell_to_stop(self) -> None:
        """Tell workers to come to an end with what they are working on."""

    def close(self) -> None:
        """End what is under way."""


class _PoolBackend:
    """Hands tasks to a pool of workers, which begins with the first tasks.

    The task of a worker that is lost is worked on again. One that has cost more than `RETRIES` workers is left out:
    done here, it might cost this process too. When workers are lost too often or cannot be begun, the rest is done in
    this process.
    """

    lost: ClassVar[str]
    left_out: ClassVar[str]
    given_up: ClassVar[str]
    not_begun: ClassVar[str]

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self.notes: list[str] = []
        self.counts = JobCounts()
        self._here = SerialBackend(stop)
        self._here.notes = self.notes
        self._pool: Pool | None = None
        self._deaths = 0
        self._given_up = False
        self._ending: float | None = None

    @property
    def workers(self) -> int:
        """How many tasks can be worked on at once."""
        raise NotImplementedError

    def _begin(self) -> Pool:
        """Begin the workers."""
        raise NotImplementedError

    def stream(
        self, tasks: Iterable[Task], deadline: Deadline | None = None, *, ordered: bool = True
    ) -> Iterator[tuple[int, TaskResult]]:
        """Yield the number and the answer of each task."""
        source = enumerate(tasks)
        pending: dict[int, _Sent] = {}
        before = time.monotonic()
        while True:
            while len(pending) < self.workers + AHEAD and (numbered := next(source, None)) is not None:
                number, task = numbered
                pending[number] = self._send(task)
            if not pending:
                return
            asked = time.monotonic()
            number = self._next(pending, deadline, ordered)
            sent = pending[number]
            try:
                found = self._here.work(sent.task) if sent.future is None else self._await(sent.future, deadline)
            except WorkerNotBegunError as error:
                if not self._given_up:
                    self.notes.append(f"{self.not_begun}: {error}")
                self._given_up = True
                pending[number] = self._send(sent.task, sent.deaths)
                continue
            except WorkerDiedError:
                self._count_death()
                if sent.deaths < RETRIES and not self._given_up:
                    pending[number] = self._send(sent.task, sent.deaths + 1)
                    continue
                self.notes.append(self.left_out)
                found = NOTHING
            except InternalError as error:
                self.notes.append(f"a sub-problem was left out: {error}")
                found = NOTHING
            finally:
                now = time.monotonic()
                self.counts.waited += now - asked
                self.counts.seconds += now - before
                before = now
            del pending[number]
            self.counts.done += 1
            yield number, found

    def close(self) -> None:
        """End what is under way."""
        if self._pool is not None:
            self._pool.close()
            self._pool = self._ending = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, task: Task, deaths: int = 0) -> _Sent:
        """Hand a task to the workers, or keep it to be done here."""
        if self.stop.is_set() or self._given_up:
            return _Sent(task, None, deaths)
        if self._pool is None:
            self._pool = self._begin()
        return _Sent(task, self._pool.submit(_work, task), deaths)

    def _count_death(self) -> None:
        self._deaths += 1
        self.counts.lost += 1
        self._given_up = self._deaths > RESTARTS * self.workers
        self.notes.append(self.given_up if self._given_up else self.lost)

    def _next(self, pending: dict[int, _Sent], deadline: Deadline | None, ordered: bool) -> int:
        """Return the number of the task whose answer comes next."""
        first = min(pending)
        if ordered:
            return first
        numbers = {sent.future: number for number, sent in pending.items() if sent.future is not None}
        while len(numbers) == len(pending) and not self.stop.is_set() and not (deadline and deadline.over):
            if done := wait(numbers, POLL, FIRST_COMPLETED).done:
                return min(numbers[future] for future in done)
        return next((number for number, sent in pending.items() if sent.future is None), first)

    def _await(self, future: Future[TaskResult], deadline: Deadline | None) -> TaskResult:
        """Wait for an answer, and hand the stop signal on."""
        while not wait([future], POLL).done:
            if self.stop.is_set():
                if self._ending is None:
                    self._ending = time.monotonic() + GRACE
                    if self._pool is not None:
                        self._pool.tell_to_stop()
                elif time.monotonic() > self._ending:
                    return NOTHING
            elif deadline is not None and deadline.over:
                future.cancel()  # if it is being worked on, it ends at its own limit
                return NOTHING
        return NOTHING if future.cancelled() else future.result()


class ProcessBackend(_PoolBackend):
    """Works on tasks in processes of its own; a process that dies is replaced.

    Parameters
    ----------
    stop
        Stop signal.
    workers
        How many processes.
    """

    lost = "a process for sub-problems died and was replaced"
    left_out = "a sub-problem was left out: the processes that worked on it died"
    given_up = "processes for sub-problems died repeatedly; the rest was done without them"
    not_begun = "sub-problems were worked on without processes of their own"

    def __init__(self, workers: int, stop: Stop) -> None:
        super().__init__(stop)
        self._count = workers

    @property
    def workers(self) -> int:
        """How many processes."""
        return self._count

    def _begin(self) -> Pool:
        return Workers(self._count)


class RayBackend(_PoolBackend):
    """Works on tasks in a Ray cluster, whose workers stay until this process ends.

    Parameters
    ----------
    address
        ``HOST:PORT`` of the cluster; if not given, that of ``RAY_ADDRESS``, or one that is begun on this machine.
    stop
        Stop signal.
    workers
        How many workers at most; by default one for each processor of the cluster.

    Raises
    ------
    InputError
        If Ray is not installed, no cluster answers, or its nodes have other versions of Python or stowplan.
    """

    lost = "a worker in the Ray cluster was lost; its job was done again"
    left_out = "a sub-problem was left out: the workers in the Ray cluster that had it were lost"
    given_up = "workers in the Ray cluster were lost repeatedly; the rest was done without them"
    not_begun = "sub-problems were worked on without the Ray cluster"

    def __init__(self, address: str | None = None, stop: Stop | None = None, workers: int | None = None) -> None:
        super().__init__(stop or Stop())
        self.cluster = joined(address, workers, processors(workers))
        self._kept: tuple[object, object] | None = None

    def put(self, value: T) -> T:
        """Put a value into the object store, unless it was the last one, and return what jobs get in its place."""
        if self._kept is None or self._kept[0] is not value:
            self._kept = value, self.cluster.put(value)
        return cast("T", self._kept[1])

    @property
    def workers(self) -> int:
        """How many workers have begun by now."""
        return max(1, self.cluster.workers)

    def _begin(self) -> Pool:
        return Group(self.cluster)

    def told(self) -> str:
        """Return in words what the workers have done by now."""
        counts = self.counts
        found = f"Ray at {self.cluster.address}: {plural(self.cluster.workers, 'worker')}, "
        found += f"{plural(counts.done, 'job')} done, {counts.lost} lost, {counts.dropped} dropped"
        return found + (f"; coordinator at work {counts.coordination:.0%} of the time" if counts.seconds else "")


def processors(asked: int | None) -> int:
    """Return how many workers there are on this machine: as many as asked for, or one for each core, at least 2."""
    return asked or max(2, os.cpu_count() or 2)


def named_backend(options: Options, stop: Stop) -> RayBackend | None:
    """Return the backend that options name; ``None`` if work stays on this machine.

    Raises
    ------
    InputError
        If it cannot be used.
    """
    return None if options.backend == LOCAL else RayBackend(_address(options), stop, options.processes)


def cluster_of(options: Options) -> Cluster:
    """Return the Ray cluster that options name.

    Raises
    ------
    InputError
        If it cannot be used.
    """
    return joined(_address(options), options.processes, processors(options.processes))


def _address(options: Options) -> str | None:
    """Return the address that options name, if they name one."""
    return options.backend.partition(":")[2] or None


def _work(stop: Stop, task: Task) -> TaskResult:
    """Answer a task, in another process."""
    return NOTHING if stop.is_set() else solve_task(task, stop.is_set)
