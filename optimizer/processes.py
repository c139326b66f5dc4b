"""Worker processes: begun when needed, told to stop, replaced when they die, and gone when their parent is.

Workers are spawned and not forked, since the parent has threads. Every worker is looked after by a thread of its own in
the parent, which hands it one job after the other: a worker that dies takes its own job along and no other.

- A worker does not run the caller's script again. A spawned process imports the main module of its parent, for
  functions defined there. Jobs are defined in modules, and a script without a guard would run once more.
- SIGINT and SIGTERM are blocked in workers. A terminal, ``timeout`` or a service manager sends them to all processes of
  a group; they are meant for the parent, which tells its workers to stop and still wants their answers.
- A worker ends at once when its parent is gone, however that went.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context, resource_tracker, util
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from stowplan.models.stop import Stop

P = ParamSpec("P")
T = TypeVar("T")

GRACE = 0.5
"""Seconds that workers have to end after they were told to stop; then they are killed."""


def allowed_processors() -> int:
    """Return on how many processors of this machine this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerDiedError(Exception):
    """The process that worked on a job died."""


class WorkerNotBegunError(WorkerDiedError):
    """No process could be begun for a job."""


class Workers:
    """Processes that each work on one job at a time.

    Parameters
    ----------
    count
        How many processes there are at most. They begin with the jobs they are needed for.
    """

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="worker")
        self._own = threading.local()
        self._begun: set[_Worker] = set()
        self._lock = threading.Lock()
        self._stopped = self._closed = False
        # Runs before multiprocessing waits, at exit, for processes that are still there.
        self._finalizer = util.Finalize(self, _kill, (self._begun,), exitpriority=10)

    def submit(self, function: Callable[Concatenate[Stop, P], T], /, *args: P.args, **keywords: P.kwargs) -> Future[T]:
        """Have a worker call ``function(stop, *args, **keywords)``.

        Parameters
        ----------
        function
            Defined at the top of a module other than the main one. ``stop`` is set by `tell_to_stop`.

        Returns
        -------
        Future
            Has the result, what the function raised, or `WorkerDiedError` or `WorkerNotBegunError`.
        """
        return self.submit_telling(_ignore, partial(_silent, function), *args, **keywords)

    def submit_telling(
        self,
        told: Callable[[Any], object],
        function: Callable[Concatenate[Stop, Callable[[Any], object], P], T],
        /,
        *args: P.args,
        **keywords: P.kwargs,
    ) -> Future[T]:
        """Have a worker call ``function(stop, tell, *args, **keywords)``, and ``told`` here with all that it tells.

        Parameters
        ----------
        told
            Called in a thread of this process, in order, and for the last time before the future is done.
        function
            As `submit` has it. ``tell`` takes anything that can be sent.
        """
        return cast("Future[T]", self._threads.submit(self._call, pickle.dumps((function, args, keywords)), told))

    def tell_to_stop(self) -> None:
        """Tell all workers to come to an end with what they are working on."""
        with self._lock:
            self._stopped = True
            for worker in self._begun:
                worker.tell_to_stop()

    def close(self) -> None:
        """Tell all workers to stop, wait `GRACE` seconds, and end them."""
        self.tell_to_stop()
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + GRACE
        for worker in list(self._begun):
            worker.end(deadline)
            self._begun.discard(worker)

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that have begun and were not seen to die."""
        with self._lock:
            return [worker.pid for worker in self._begun]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, job: bytes, told: Callable[[Any], object]) -> object:
        """Have this thread's worker do a job."""
        worker = self._worker()
        try:
            succeeded, result = worker.call(job, told)
        except (EOFError, OSError):
            self._drop(worker)
            raise WorkerDiedError("a worker process died") from None
        if not succeeded:
            raise cast(BaseException, result)
        return result

    def _worker(self) -> _Worker:
        """Return this thread's worker; one that died idle is replaced."""
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is not None and not worker.alive:
            self._drop(worker)
            worker = None
        if worker is None:
            with self._lock:
                if self._closed:
                    raise WorkerNotBegunError("the workers were closed")
                try:
                    worker = self._own.worker = _Worker()
                except OSError as error:
                    raise WorkerNotBegunError(f"a worker process could not be begun: {error.strerror}") from None
                self._begun.add(worker)
                if self._stopped:
                    worker.tell_to_stop()
        return worker

    def _drop(self, worker: _Worker) -> None:
        with self._lock:
            self._begun.discard(worker)
        self._own.worker = None
        worker.end(0.0)


class _Worker:
    """One process, as its parent sees it."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._jobs, jobs = context.Pipe()
        told, self._tell = context.Pipe(duplex=False)
        # Not a daemon, which could have no workers of its own.
        self._process = context.Process(target=_work, args=(jobs, told))
        self._busy = threading.Lock()
        self._ending = threading.Lock()
        try:
            with jobs, told, _unattended():
                self._process.start()
        except BaseException:
            self._jobs.close()
            self._tell.close()
            raise

    @property
    def pid(self) -> int:
        return cast(int, self._process.pid)

    @property
    def alive(self) -> bool:
        return not wait([self._process.sentinel], 0)  # also right where another has reaped it

    def call(self, job: bytes, told: Callable[[Any], object]) -> tuple[bool, object]:
        """Do a pickled job; return whether it succeeded, with its result or what it raised.

        Parameters
        ----------
        told
            Called with what the job tells before it is done.

        Raises
        ------
        EOFError, OSError
            If the process dies.
        """
        with self._busy:
            self._jobs.send_bytes(job)
            while True:
                succeeded, result = pickle.loads(self._jobs.recv_bytes())
                if succeeded is not None:
                    return succeeded, result
                told(result)

    def tell_to_stop(self) -> None:
        with contextlib.suppress(OSError):  # it has died
            self._tell.send_bytes(b"stop")

    def end(self, deadline: float) -> None:
        """End the process: in order if it is idle by the deadline, a time of `time.monotonic`, else by force."""
        idle = self._busy.acquire(timeout=max(0.0, deadline - time.monotonic()))
        with self._ending:
            if idle:
                self._jobs.close()
                self._process.join(max(0.0, deadline - time.monotonic()))
            self._kill()
            self._tell.close()
        if idle:
            self._busy.release()

    def kill(self) -> None:
        with self._ending:
            self._kill()

    def _kill(self) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join()


def _silent(function: Callable[..., T], stop: Stop, _: object, *args: object, **keywords: object) -> T:
    """Call a function that tells nothing before it is done."""
    return function(stop, *args, **keywords)


def _ignore(_: object) -> None:
    """Hear nothing: most jobs tell nothing before they are done."""


def _kill(workers: set[_Worker]) -> None:
    for worker in workers:
        worker.kill()


# -- how a worker begins --------------------------------------------------------------------------------------

_starting = threading.Lock()


@contextlib.contextmanager
def _unattended() -> Iterator[None]:
    """Begin processes that neither run the caller's script again nor take signals that are meant for their parent.

    What the thread blocks when a process begins stays blocked in it.
    """
    with _starting:
        blocked = None
        if hasattr(signal, "pthread_sigmask"):
            # Begins with the first process, and unblocks both signals when it does.
            resource_tracker.ensure_running()
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            if blocked is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


# -- in the worker --------------------------------------------------------------------------------------------


def _work(jobs: Connection, told: Connection) -> None:
    """Do jobs until there are no more."""
    stop = Stop()
    threading.Thread(target=_listen, args=(told, stop), daemon=True).start()
    while True:
        try:
            job = jobs.recv_bytes()
        except EOFError:
            return
        jobs.send_bytes(_do(job, stop, lambda word: jobs.send_bytes(pickle.dumps((None, word)))))


def _do(job: bytes, stop: Stop, tell: Callable[[Any], object]) -> bytes:
    try:
        function, args, keywords = pickle.loads(job)
        return pickle.dumps((True, function(stop, tell, *args, **keywords)))
    except Exception as error:
        error.add_note("".join(traceback.format_exception(error)))
        try:
            pickle.loads(done := pickle.dumps((False, error)))
        except Exception:  # an error that cannot travel
            return pickle.dumps((False, RuntimeError("".join(traceback.format_exception(error)))))
        return done


def _listen(told: Connection, stop: Stop) -> None:
    """Pass the word to stop on, and end with the parent, whose end of the pipe is closed when it is gone."""
    try:
        told.recv_bytes()
        stop.set()
        told.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
