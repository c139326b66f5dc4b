"""Regions solved on the workers of a Ray cluster, side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import Protocol, cast

from stowplan.models.options import LEAST_TIME, Options
from stowplan.models.problem import Placement, Problem
from stowplan.models.result import Outcome
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import RayBackend
from stowplan.optimizer.compiled import kernel_cache
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.distributed.cluster import Group
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.processes import WorkerDiedError, WorkerNotBegunError
from stowplan.optimizer.rearrangement.model_builder import suits
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.rearrangement.walking import walk
from stowplan.optimizer.regions.region import Division, Region
from stowplan.optimizer.run import KnownBound

LATE = 0.1
"""Share of a round's time that answers may take after its end, and at least so many seconds: ten times as many."""

REHEAT = 0.02
"""Where a walk begins after the first round, in shares of the temperature at which that began."""

POLL = 0.05
"""Seconds between looks at the stop signal."""

WHOLE = "the whole"
"""What has proven a tier of a region that is proven of all nodes."""


class SolveRegion(Protocol):
    """Solves a problem in one process; defined at the top of a module, so that workers find it."""

    def __call__(
        self,
        problem: Problem,
        options: Options,
        *,
        candidates: Sequence[Placement],
        known: Sequence[KnownBound],
        stop: Stop,
        bounded: bool,
    ) -> Outcome:
        """Return the outcome."""


class RegionsElsewhere:
    """The workers of a backend, which get the problem from the object store.

    Parameters
    ----------
    problem
        Put into the object store here.
    walking
        How regions walk, where only their last tier is open and a walk knows all that it consists of.
    """

    def __init__(
        self,
        backend: RayBackend,
        problem: Problem,
        options: Options,
        walking: RearrangementParameters,
        solve: SolveRegion,
    ) -> None:
        self._backend, self._walking, self._solve = backend, walking, solve
        self._options = options.alone
        self._group = Group(backend.cluster)
        self._jobs: dict[Future[Placement], int] = {}
        self._problem = cast(Problem, backend.cluster.put(problem))  # which jobs get in its place

    def drop(self, answers: int = 1) -> None:
        """Count answers that did not go together with the others."""
        self._backend.counts.dropped += answers

    def begin(self, now: Placement, division: Division, proven: int, deadline: Deadline, seed: int, turn: int) -> None:
        """Hand the regions out; all shall be done at the deadline.

        Parameters
        ----------
        proven
            How many tiers, the first ones, cannot be improved.
        turn
            The number of the round, from 0.
        """
        options = replace(self._options, seed=seed)
        seconds = deadline.remaining / -(-division.regions // self._backend.workers)
        self._group = Group(self._backend.cluster)
        for number in range(division.regions):
            job = self._group.submit(
                _solve_region,
                self._solve,
                options,
                self._walking,
                self._problem,
                now,
                division,
                number,
                proven,
                turn,
                seconds,
            )
            self._jobs[job] = number

    def end(self, deadline: Deadline) -> Iterator[tuple[int, Placement]]:
        """Yield the number of each region and its pods, as entries of the whole; none of those that were lost."""
        jobs, self._jobs = self._jobs, {}
        late = Deadline(deadline.remaining + max(10 * LATE, LATE * deadline.seconds))
        waiting = set(jobs)
        while waiting and not late.over and not deadline.stop.is_set():
            waiting = wait(waiting, POLL).not_done
        self._group.tell_to_stop()
        wait(waiting, 10 * LATE)
        counts = self._backend.counts
        for job, number in jobs.items():
            if job.cancelled() or not job.done():
                continue
            try:
                answer = job.result()
            except (WorkerDiedError, WorkerNotBegunError):
                counts.lost += 1
            else:
                counts.done += 1
                yield number, answer
        self._group.close()


def _solve_region(
    stop: Stop,
    solve: SolveRegion,
    options: Options,
    walking: RearrangementParameters,
    problem: Problem,
    now: Placement,
    division: Division,
    number: int,
    proven: int,
    turn: int,
    seconds: float,
) -> Placement:
    """Solve a region, on another machine; without kernels, where they are not compiled."""
    began = time.monotonic()
    region = Region(problem, now, division, number)
    evaluator = Evaluator(region.problem)
    left = max(LEAST_TIME, seconds - (time.monotonic() - began))
    kernels = options.kernels and kernel_cache.all_kept()
    last = len(region.problem.tiers) - 1
    if kernels and proven == last and suits(region.problem, last, walking.largest_table):
        chosen = walking.reheated(REHEAT) if turn else walking
        found = walk(evaluator, region.now, last, Deadline(left, stop=stop), options.seed, threads=1, parameters=chosen)
        return region.outside(found)
    values = evaluator.evaluate(region.now).values
    known = [KnownBound(t, values[:t], values[t], WHOLE) for t in range(proven)]
    options = replace(options, time_limit=left, kernels=kernels)
    outcome = solve(region.problem, options, candidates=[region.now], known=known, stop=stop, bounded=False)
    return region.outside(outcome.placement)
