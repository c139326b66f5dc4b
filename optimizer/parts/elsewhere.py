"""Parts solved on the workers of a Ray cluster, side by side, while this process solves the largest one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import Protocol

from stowplan.models.options import LEAST_TIME, Options
from stowplan.models.problem import Placement, Problem
from stowplan.models.result import Outcome
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import RayBackend
from stowplan.optimizer.compiled import kernel_cache
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.distributed.cluster import Group
from stowplan.optimizer.processes import WorkerDiedError, WorkerNotBegunError
from stowplan.optimizer.run import KnownBound

SHARE = 0.9
"""Share of the time for the jobs, so that their answers are there at its end."""

LATE = 1.0
"""Seconds after the deadline, or the stop signal, that answers may take."""


class SolveAlone(Protocol):
    """Solves a problem in one process; defined at the top of a module, so that workers find it."""

    def __call__(
        self,
        problem: Problem,
        options: Options,
        *,
        candidates: Sequence[Placement],
        known: Sequence[KnownBound],
        stop: Stop,
        bounded: bool = True,
    ) -> Outcome:
        """Return the outcome."""


class PartsElsewhere:
    """Parts under way on the workers of a backend, each a whole solve with one processor."""

    def __init__(self, backend: RayBackend, options: Options, solve: SolveAlone) -> None:
        self._backend, self._solve = backend, solve
        self._options = options.alone
        self._group = Group(backend.cluster)
        self._parts: list[tuple[Problem, Sequence[Placement], Sequence[KnownBound]]] = []
        self._jobs: dict[Future[Outcome], int] = {}

    def add(self, problem: Problem, candidates: Sequence[Placement], known: Sequence[KnownBound]) -> None:
        """Add a part; they are numbered from 0."""
        self._parts.append((problem, candidates, known))

    def begin(self, seconds: float) -> None:
        """Hand the parts out; all shall be done within the time."""
        rounds = -(-len(self._parts) // self._backend.workers)
        options = replace(self._options, time_limit=max(LEAST_TIME, SHARE * seconds / max(1, rounds)))
        for number, part in enumerate(self._parts):
            self._jobs[self._group.submit(_alone, self._solve, options, *part)] = number

    def end(self, deadline: Deadline) -> Iterator[tuple[int, Outcome]]:
        """Yield the number and the outcome of each part; none of those whose workers were lost or came too late."""
        counts = self._backend.counts
        waiting = set(self._jobs)
        while waiting and not deadline.over:
            waiting = wait(waiting, LATE / 20).not_done
        self._group.tell_to_stop()
        wait(waiting, LATE)
        for job, number in self._jobs.items():
            if job.cancelled() or not job.done():
                continue
            try:
                outcome = job.result()
            except (WorkerDiedError, WorkerNotBegunError):
                counts.lost += 1
            else:
                counts.done += 1
                yield number, outcome
        self._group.close()


def _alone(
    stop: Stop,
    solve: SolveAlone,
    options: Options,
    problem: Problem,
    candidates: Sequence[Placement],
    known: Sequence[KnownBound],
) -> Outcome:
    """Solve a part, on another machine; without kernels, where they are not compiled."""
    if not kernel_cache.all_kept():
        options = replace(options, kernels=False)
    return solve(problem, options, candidates=candidates, known=known, stop=stop)
