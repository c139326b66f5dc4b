"""Regions solved on the workers of a Ray cluster, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import replace

from stowplan.models.options import LEAST_TIME, Options
from stowplan.models.problem import Placement, Problem
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import RayBackend
from stowplan.optimizer.compiled import kernel_cache
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.distributed.cluster import Group
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import constant
from stowplan.optimizer.parts.elsewhere import SolveAlone
from stowplan.optimizer.processes import WorkerDiedError, WorkerNotBegunError
from stowplan.optimizer.rearrangement.model_builder import suits
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.rearrangement.walking import walk
from stowplan.optimizer.regions.region import Division, Region
from stowplan.optimizer.run import KnownBound

LATE, LEAST_LATE = 0.1, 1.0
"""Share of its time, and least seconds, that answers of a round may take after its end."""

POLL = 0.05
"""Seconds between looks at the stop signal."""

SEEDS = 2**31
"""How many seeds there are."""

WHOLE = "the whole"
"""What has proven a tier of a region that regions cannot improve."""


class RegionsElsewhere:
    """The workers of a backend, which get the problem from the object store.

    Parameters
    ----------
    problem
        Put into the object store here.
    walking
        How regions walk, where only their last tier is open and a walk knows all that it consists of.
    solve
        Solves a region otherwise.
    """

    def __init__(
        self,
        backend: RayBackend,
        problem: Problem,
        options: Options,
        walking: RearrangementParameters,
        solve: SolveAlone,
    ) -> None:
        self._backend, self._walking, self._solve = backend, walking, solve
        self._options = options.alone
        self._problem = backend.put(problem)

    @property
    def notes(self) -> list[str]:
        """What went wrong on the way and was made up for."""
        return self._backend.notes

    def drop(self) -> None:
        """Count an answer that did not go together with the others."""
        self._backend.counts.dropped += 1

    def begin(
        self, now: Placement, division: Division, tier: int, deadline: Deadline, turn: int, temperature: float
    ) -> Round:
        """Hand the regions out; all shall be done at the deadline.

        Parameters
        ----------
        tier
            The first one that regions can improve.
        turn
            The number of the round, from 0.
        temperature
            Where walks begin, in shares of the temperature of one that begins anew.
        """
        group = Group(self._backend.cluster)
        options = replace(self._options, seed=(self._options.seed + turn + 1) % SEEDS)
        seconds = deadline.remaining / -(-division.regions // self._backend.workers)
        walking = self._walking if temperature == 1 else self._walking.cooled(temperature)
        jobs = {
            group.submit(
                _solve_region, self._solve, options, walking, self._problem, now, division, number, tier, seconds
            ): number
            for number in range(division.regions)
        }
        return Round(self._backend, group, jobs)


class Round:
    """Regions under way; those that are still so at the end are told to stop, and not waited for."""

    def __init__(self, backend: RayBackend, group: Group, jobs: dict[Future[Placement], int]) -> None:
        self._backend, self._group, self._jobs = backend, group, jobs

    def answers(self, deadline: Deadline, enough: Callable[[], bool]) -> Iterator[tuple[int, Placement]]:
        """Yield the number of each region and its pods, as entries of the whole; none of those that were lost."""
        late = Deadline(deadline.remaining + max(LEAST_LATE, LATE * deadline.seconds))
        waiting = set(self._jobs)
        while waiting and not (late.over or deadline.stop.is_set() or enough()):
            waiting = wait(waiting, POLL).not_done
        self._group.tell_to_stop()
        wait(waiting, LEAST_LATE)
        counts = self._backend.counts
        for job, number in self._jobs.items():
            if job.cancelled() or not job.done():
                continue
            try:
                answer = job.result()
            except (WorkerDiedError, WorkerNotBegunError):
                counts.lost += 1
            except Exception as error:  # whatever goes wrong there, a region may stay as it is
                self._backend.notes.append(f"a region was not solved: {error}")
            else:
                counts.done += 1
                yield number, answer

    def close(self) -> None:
        """End what is under way."""
        self._group.close()

    def __enter__(self) -> Round:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _solve_region(
    stop: Stop,
    solve: SolveAlone,
    options: Options,
    walking: RearrangementParameters,
    problem: Problem,
    now: Placement,
    division: Division,
    number: int,
    tier: int,
    seconds: float,
) -> Placement:
    """Solve a region, on another machine; without kernels, where they are not compiled."""
    began = time.monotonic()
    region = Region(problem, now, division, number)
    evaluator, tiers = Evaluator(region.problem), region.problem.tiers
    left = max(LEAST_TIME, seconds - (time.monotonic() - began))
    kernels = options.kernels and kernel_cache.all_kept()
    last = len(tiers) - 1
    if kernels and tier == last and suits(region.problem, last, walking.largest_table):
        deadline = Deadline(left, stop=stop)
        found = walk(evaluator, region.now, last, deadline, options.seed, threads=1, parameters=walking)
        return region.outside(found)
    values = evaluator.evaluate(region.now).values
    known = [KnownBound(t, values[:t], values[t], WHOLE) for t in range(tier) if not constant(tiers[t])]
    options = replace(options, time_limit=left, kernels=kernels)
    outcome = solve(region.problem, options, candidates=[region.now], known=known, stop=stop, bounded=False)
    return region.outside(outcome.placement)
