"""Instances one after the other, or several at once in processes of their own or in a Ray cluster."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from pathlib import Path

from stowplan.bench.answer import answer, failed
from stowplan.bench.row import Row
from stowplan.instances.suites.suite import Instance
from stowplan.models.options import LEAST_MEMORY, LOCAL, Options
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import cluster_of
from stowplan.optimizer.distributed.cluster import Group
from stowplan.optimizer.memory import SHARE, available
from stowplan.optimizer.processes import WorkerDiedError, WorkerNotBegunError, Workers

LISTENING = 0.2
"""Seconds between two looks at whether to stop."""


def answers(instances: Sequence[Instance], options: Options, folder: Path, jobs: int, stop: Stop) -> Iterator[Row]:
    """Yield a row for each instance when it is done; after a stop, for those that were begun."""
    if options.backend != LOCAL:
        yield from _elsewhere(instances, options.alone, folder, Places(options, jobs), stop)
        return
    if jobs > 1 and len(instances) > 1:
        yield from _elsewhere(instances, options, folder, Places(options, jobs), stop)
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


class Places:
    """Where instances are solved at once: processes of this machine, or the workers of a Ray cluster.

    Parameters
    ----------
    options
        Their backend says which of the two.
    jobs
        How many processes; a cluster solves as many instances at once as it has workers.
    """

    def __init__(self, options: Options, jobs: int) -> None:
        self._cluster = None if options.backend == LOCAL else cluster_of(options)
        self._jobs = jobs

    @property
    def number(self) -> int:
        """How many there are by now."""
        return self._jobs if self._cluster is None else max(1, self._cluster.workers)

    def begun(self, most: int) -> Workers | Group:
        """Return workers, at most so many if they are processes."""
        return Workers(min(most, self._jobs)) if self._cluster is None else Group(self._cluster)


def _elsewhere(
    instances: Sequence[Instance], options: Options, folder: Path, places: Places, stop: Stop
) -> Iterator[Row]:
    lost: list[Instance] = []
    yield from _rows(instances, options, folder, places, stop, lost)
    # A process may have died for what the others held: those instances are begun again, one at a time.
    for instance in lost:
        lost_alone: list[Instance] = []
        yield from _rows([instance], options, folder, places, stop, lost_alone)
        if lost_alone:
            yield failed(instance, "its process died, perhaps for want of memory")


def _rows(
    instances: Sequence[Instance], options: Options, folder: Path, places: Places, stop: Stop, lost: list[Instance]
) -> Iterator[Row]:
    """Yield rows as they come, and add the instances whose processes died to ``lost``."""
    waiting = deque(instances)
    running: dict[Future[Row], Instance] = {}
    with places.begun(len(instances)) as workers:
        while True:
            while waiting and len(running) < places.number and not stop.is_set():
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
                except WorkerNotBegunError as error:
                    yield failed(instance, str(error))
                except WorkerDiedError:
                    lost.append(instance)


def _answer(stop: Stop, instance: Instance, options: Options, folder: Path) -> Row:
    """Answer an instance, in another process; where the folder is not there, its solution is checked and not kept."""
    if folder.is_dir():
        return answer(instance, options, folder, stop)
    with tempfile.TemporaryDirectory(prefix="stowplan-") as own:
        return answer(instance, options, Path(own), stop)
