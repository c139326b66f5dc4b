"""Instances one after the other, or several at once in processes of their own."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from stowplan.bench.answer import answer, failed
from stowplan.bench.row import Row
from stowplan.instances.suites.suite import Instance
from stowplan.models.stop import Stop
from stowplan.optimizer.memory import SHARE, available
from stowplan.optimizer.portfolio import Options
from stowplan.settings.settings import LEAST_MEMORY

LISTENING = 0.2
"""Seconds between two looks at whether to stop."""


def answers(instances: Sequence[Instance], options: Options, folder: Path, jobs: int, stop: Stop) -> Iterator[Row]:
    """Yield a row for each instance when it is done; after a stop, for those that were begun."""
    if jobs > 1 and len(instances) > 1:
        yield from _in_processes(instances, options, folder, jobs, stop)
        return
    for instance in instances:
        if stop.is_set():
            return
        yield answer(instance, options, folder, stop)


def shared(options: Options, jobs: int, workers: int | None = None) -> Options:
    """Return the options of each of several instances that are solved at once: a share of processors and memory.

    Parameters
    ----------
    workers
        Threads that were asked for, which are not shared.
    """
    if jobs == 1:
        return options
    processors = max(1, (os.cpu_count() or 1) // jobs)
    free = available() if options.memory is None else options.memory / SHARE
    memory = None if free is None else max(LEAST_MEMORY, int(SHARE * free / jobs))
    return replace(options, workers=workers or processors, processes=processors, memory=memory)


def _in_processes(
    instances: Sequence[Instance], options: Options, folder: Path, jobs: int, stop: Stop
) -> Iterator[Row]:
    queue = deque(range(len(instances)))
    while queue and not stop.is_set():
        pool = _Pool(instances, options, folder, jobs, stop)
        yield from pool.rows(queue)
        # A process that dies takes its pool along. What was under way is begun again, each by itself, to see whose
        # fault it was.
        for i in sorted(pool.lost):
            alone = _Pool(instances, options, folder, 1, stop)
            yield from alone.rows(deque([i]))
            if alone.lost:
                yield failed(instances[i], "its process died, perhaps for want of memory")


class _Pool:
    """Processes that live until one of them dies.

    Attributes
    ----------
    lost
        What was under way when one died.
    """

    def __init__(self, instances: Sequence[Instance], options: Options, folder: Path, jobs: int, stop: Stop) -> None:
        self.instances, self.options, self.folder, self.jobs, self.stop = instances, options, folder, jobs, stop
        self.lost: list[int] = []

    def rows(self, queue: deque[int]) -> Iterator[Row]:
        """Take instances off the queue and yield their rows, as long as all processes live."""
        context = get_context("spawn")
        # The word to stop is the end of a pipe: unlike an event, it needs no answer from processes that have died.
        listening, word = context.Pipe(duplex=False)
        with listening, ProcessPoolExecutor(self.jobs, context, _prepare, (listening,)) as pool, word:
            # Leaving, in whatever way, closes the pipe before the pool is waited for.
            yield from self._rows(pool, queue, word)

    def _rows(self, pool: ProcessPoolExecutor, queue: deque[int], word: Connection) -> Iterator[Row]:
        running: dict[Future[Row], int] = {}
        while not self.lost:
            while queue and len(running) < self.jobs and not self.stop.is_set():
                i = queue.popleft()
                with _deaf_children():
                    running[pool.submit(_work, self.instances[i], self.options, self.folder)] = i
            if not running:
                return
            done, _ = wait(running, LISTENING, FIRST_COMPLETED)
            if self.stop.is_set():
                word.close()
            for future in done:
                i = running.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    self.lost += [i, *running.values()]
                    break


_stop = Stop()
"""In a process of the pool: whether to come to an end."""


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Have processes that begin inside the block leave interrupts to their parent, which passes the word on.

    A child inherits what its parent blocks from its first moment; the parent gets what came meanwhile at the end.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare(listening: Connection) -> None:
    """Come to an end when the parent closes its side, or is gone."""

    def listen() -> None:
        listening.poll(None)
        _stop.set()

    threading.Thread(target=listen, daemon=True).start()


def _work(instance: Instance, options: Options, folder: Path) -> Row:
    return answer(instance, options, folder, _stop)
