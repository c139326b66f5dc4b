"""Instances one after the other, or several at once in processes of their own."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from pathlib import Path

from stowplan.bench.answer import answer, failed
from stowplan.bench.row import Row
from stowplan.instances.suites.suite import Instance
from stowplan.models.options import LEAST_MEMORY, Options
from stowplan.models.stop import Stop
from stowplan.optimizer.memory import SHARE, available
from stowplan.optimizer.processes import WorkerDiedError, Workers

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
    lost: list[Instance] = []
    yield from _rows(instances, options, folder, jobs, stop, lost)
    # A process may have died for what the others held: those instances are begun again, one at a time.
    for instance in lost:
        lost_alone: list[Instance] = []
        yield from _rows([instance], options, folder, 1, stop, lost_alone)
        if lost_alone:
            yield failed(instance, "its process died, perhaps for want of memory")


def _rows(
    instances: Sequence[Instance], options: Options, folder: Path, jobs: int, stop: Stop, lost: list[Instance]
) -> Iterator[Row]:
    """Yield rows as they come, and add the instances whose processes died to ``lost``."""
    waiting = deque(instances)
    running: dict[Future[Row], Instance] = {}
    with Workers(jobs) as workers:
        while True:
            while waiting and len(running) < jobs and not stop.is_set():
                instance = waiting.popleft()
                running[workers.submit(_answer, instance, options, folder)] = instance
            if not running:
                return
            done, _ = wait(running, LISTENING, FIRST_COMPLETED)
            if stop.is_set():
                workers.tell_to_stop()
            for future in done:
                instance = running.pop(future)
                try:
                    yield future.result()
                except WorkerDiedError:
                    lost.append(instance)


def _answer(stop: Stop, instance: Instance, options: Options, folder: Path) -> Row:
    """Answer an instance, in another process."""
    return answer(instance, options, folder, stop)
