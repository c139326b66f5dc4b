"""The workers of a Ray cluster: jobs go to them, results come back in the order in which they are finished.

Each worker is an actor that holds one processor and does one job at a time. No more jobs are in the cluster than there
are workers, so the object store holds no more than their arguments. A worker that is lost takes its own job along and
no other, and is replaced as soon as the cluster has room for another one.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from stowplan.models.stop import Stop
from stowplan.optimizer.distributed.connection import SETTLED_WITHIN, connect
from stowplan.optimizer.distributed.worker import Worker
from stowplan.optimizer.processes import GRACE, WorkerDiedError, WorkerNotBegunError

P = ParamSpec("P")
T = TypeVar("T")

POLL = 0.05
"""Seconds between looks at what else is to be done while results are awaited."""

FAILED_STARTS = 8
"""Workers, for each that there should be, which may fail to begin before no more are begun."""


@dataclass(frozen=True, slots=True)
class _Job:
    group: str
    function: Callable[..., object]
    args: tuple[object, ...]
    keywords: dict[str, object]
    future: Future[object] = field(default_factory=Future)


class Cluster:
    """A Ray cluster, and workers in it that stay from one solve to the next.

    Parameters
    ----------
    address
        As `stowplan.optimizer.distributed.connection.connect` takes it.
    most
        How many workers there are at most; as many as the cluster has processors if not given.
    processors
        Of a cluster that is begun on this machine.

    Raises
    ------
    InputError
        If the cluster cannot be used.

    Attributes
    ----------
    worked
        Processor seconds of all jobs that were answered.
    """

    def __init__(self, address: str | None, most: int | None, processors: int) -> None:
        self._ray: Any = connect(address, processors)
        # Registered after what Ray has registered, and so done before: no thread may ask a library that has ended.
        atexit.unregister(leave)
        atexit.register(leave)
        self.address: str = self._ray.get_runtime_context().gcs_address
        self._most = most
        self._lock = threading.RLock()
        self._waiting: deque[_Job] = deque()
        self._running: dict[Any, tuple[_Job, Any]] = {}
        self._beginning: dict[Any, Any] = {}
        self._idle: list[Any] = []
        self._failed_starts = 0
        self._seen = time.monotonic()
        self._closed = False
        self.worked = 0.0
        self._wanted = self._processors()
        self._actor = self._ray.remote(num_cpus=1, max_concurrency=2)(Worker)
        self._hire()
        self._thread = threading.Thread(target=self._dispatch, name="ray-jobs", daemon=True)
        self._thread.start()

    @property
    def workers(self) -> int:
        """How many workers have begun."""
        with self._lock:
            return len(self._idle) + len(self._running)

    @property
    def alive(self) -> bool:
        """Whether jobs can be handed in."""
        return not self._closed

    def put(self, value: object) -> object:
        """Put a value into the object store once, for any number of jobs, and return what they name it by."""
        return self._ray.put(value)

    def submit(self, job: _Job) -> None:
        """Have a worker do a job when one is free."""
        with self._lock:
            if self._closed:
                job.future.set_exception(WorkerNotBegunError("the connection with Ray was closed"))
                return
            if not self._waiting and not self._running:
                self._seen = time.monotonic()
            self._waiting.append(job)
            self._assign()

    def tell_to_stop(self, group: str) -> None:
        """Tell a group's jobs to come to an end; those that were not begun are canceled."""
        with self._lock:
            for job in [job for job in self._waiting if job.group == group]:
                self._waiting.remove(job)
                if job.future.cancel():
                    job.future.set_running_or_notify_cancel()  # only then do those who wait for it hear of it
            for job, actor in self._running.values():
                if job.group == group:
                    actor.tell_to_stop.remote(group)

    def end(self, group: str) -> None:
        """Tell a group to stop, wait `GRACE` seconds for it, and end the workers that still work on its jobs."""
        self.tell_to_stop(group)
        until = time.monotonic() + GRACE
        while self._of(group) and time.monotonic() < until:
            time.sleep(POLL / 5)
        with self._lock:
            for actor in self._of(group):
                self._ray.kill(actor)

    def close(self) -> None:
        """End all workers, and the connection; a cluster that was begun for it ends too."""
        with self._lock:
            self._closed = True
        self._thread.join()
        self._ray.shutdown()
        self._fail("the connection with Ray was closed")

    def _of(self, group: str) -> list[Any]:
        """Return the workers that do jobs of a group."""
        with self._lock:
            return [actor for job, actor in self._running.values() if job.group == group]

    def _processors(self) -> int:
        there = int(self._ray.cluster_resources().get("CPU", 0))
        return max(1, there if self._most is None else min(there, self._most))

    def _dispatch(self) -> None:
        """Take results as they come, and hand out what waits, until the connection is closed or breaks."""
        try:
            while not self._closed:
                self._turn()
        except Exception as error:
            with self._lock:
                self._closed = True
                self._fail(f"the connection with Ray broke: {error}")

    def _turn(self) -> None:
        with self._lock:
            awaited = [*self._running, *self._beginning]
        ready: list[Any] = []
        if awaited:
            ready, _ = self._ray.wait(awaited, num_returns=1, timeout=POLL)
        else:
            time.sleep(POLL)
        with self._lock:
            for reference in ready:
                self._settle(reference)
            self._hire()
            self._assign()
            self._give_up()

    def _fail(self, why: str) -> None:
        """Let all jobs fail."""
        for job in [*self._waiting, *(job for job, _ in self._running.values())]:
            if not job.future.done():
                job.future.set_exception(WorkerNotBegunError(why))
        self._waiting.clear()
        self._running.clear()

    def _settle(self, reference: Any) -> None:
        """Take what a job or a beginning has come to."""
        errors = self._ray.exceptions
        if reference in self._beginning:
            actor = self._beginning.pop(reference)
            try:
                self._ray.get(reference)
            except errors.RayError:
                self._failed_starts += 1
            else:
                self._idle.append(actor)
                self._failed_starts = 0
            return
        job, actor = self._running.pop(reference)
        self._seen = time.monotonic()
        try:
            found, worked = self._ray.get(reference)
        except errors.RayTaskError as error:
            self._idle.append(actor)
            job.future.set_exception(error.cause if isinstance(error.cause, Exception) else error)
        except errors.RayError:
            with contextlib.suppress(errors.RayError):
                self._ray.kill(actor)  # it may be cut off alone, and must not work on unseen
            job.future.set_exception(WorkerDiedError("a worker in the Ray cluster was lost"))
        else:
            self._idle.append(actor)
            self.worked += worked
            job.future.set_result(found)

    def _hire(self) -> None:
        """Begin workers until there are as many as the cluster has room for; Ray lets them wait for room."""
        there = len(self._idle) + len(self._running) + len(self._beginning)
        if self._failed_starts >= FAILED_STARTS * self._wanted:
            return
        for _ in range(self._wanted - there):
            actor = self._actor.remote()
            self._beginning[actor.hello.remote()] = actor

    def _assign(self) -> None:
        """Give waiting jobs to idle workers."""
        while self._waiting and self._idle:
            job = self._waiting.popleft()
            if not job.future.set_running_or_notify_cancel():
                continue
            actor = self._idle.pop()
            reference = actor.do.remote(job.group, job.function, *job.args, **job.keywords)
            self._running[reference] = (job, actor)

    def _give_up(self) -> None:
        """Let waiting jobs fail where no worker has come for long."""
        if self.workers:
            self._seen = time.monotonic()
        elif self._waiting and time.monotonic() > self._seen + SETTLED_WITHIN:
            while self._waiting:
                job = self._waiting.popleft()
                job.future.set_exception(
                    WorkerNotBegunError(f"no worker of the Ray cluster was there for {SETTLED_WITHIN:.0f} s")
                )


class Group:
    """Jobs that stop together, as those of `stowplan.optimizer.processes.Workers` do."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._name = uuid.uuid4().hex

    def submit(self, function: Callable[Concatenate[Stop, P], T], /, *args: P.args, **keywords: P.kwargs) -> Future[T]:
        """Have a worker call ``function(stop, *args, **keywords)``.

        Parameters
        ----------
        function
            Defined at the top of a module that workers can import. Where an argument is what `Cluster.put` has
            returned, it gets the value.

        Returns
        -------
        Future
            Has the result, what the function raised, or `WorkerDiedError` or `WorkerNotBegunError`.
        """
        job = _Job(self._name, function, args, dict(keywords))
        self.cluster.submit(job)
        return cast("Future[T]", job.future)

    def tell_to_stop(self) -> None:
        """Tell workers to come to an end with what they are working on."""
        self.cluster.tell_to_stop(self._name)

    def close(self) -> None:
        """End what is under way; the workers stay for other groups."""
        self.cluster.end(self._name)

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_joined: dict[str, Cluster] = {}
"""The cluster of this process, by its address: a process is in one at a time, and joins it once."""


def joined(address: str | None, most: int | None, processors: int) -> Cluster:
    """Return the cluster at an address; the connection is kept until this process ends.

    Raises
    ------
    InputError
        If the cluster cannot be used.
    """
    name = address or ""
    known = _joined.get(name)
    if known is not None and known.alive:
        return known
    leave()
    _joined[name] = Cluster(address, most, processors)
    return _joined[name]


def leave() -> None:
    """End the connection, if there is one; workers and a cluster that was begun for this process end with it."""
    while _joined:
        _joined.popitem()[1].close()
