"""Regions solved on the workers of a Ray cluster, side by side."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import replace

from stowplan.models.options import LEAST_TIME, Options
from stowplan.models.problem import Placement, Problem
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import RETRIES, RayBackend
from stowplan.optimizer.compiled import kernel_cache
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.distributed.cluster import Group
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import constant
from stowplan.optimizer.memory import Memory
from stowplan.optimizer.parts.elsewhere import SolveAlone
from stowplan.optimizer.processes import WorkerDiedError
from stowplan.optimizer.rearrangement.model_builder import suits
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.rearrangement.walking import walk
from stowplan.optimizer.regions.drawing import Division
from stowplan.optimizer.regions.region import Region
from stowplan.optimizer.run import KnownBound

LATE, LEAST_LATE = 0.1, 1.0
"""Share of its time, and least seconds, that answers of a round may take after its end."""

POLL = 0.05
"""Seconds between looks at the stop signal."""

WORTH = 2.0
"""Seconds that must be left for a region to be handed out again."""

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

    def spent(self, seconds: float, waited: float) -> None:
        """Count how long a round took, and for how much of it nothing was to be done with regions."""
        self._backend.counts.seconds += seconds
        self._backend.counts.waited += waited

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
        walking = self._walking if temperature == 1 else self._walking.cooled(temperature)

        def solve(number: int, seconds: float) -> Future[Placement]:
            return group.submit(
                _solve_region, self._solve, options, walking, self._problem, now, division, number, tier, seconds
            )

        side_by_side = -(-division.regions // self._backend.workers)
        return Round(self._backend, group, solve, division.regions, deadline.remaining / side_by_side)


class Round:
    """Regions under way; those that are still so at the end are told to stop, and not waited for.

    Parameters
    ----------
    solve
        Hands a region out, given its number and how many seconds it has.
    """

    def __init__(
        self,
        backend: RayBackend,
        group: Group,
        solve: Callable[[int, float], Future[Placement]],
        regions: int,
        seconds: float,
    ) -> None:
        self._backend, self._group, self._solve = backend, group, solve
        self._jobs = {solve(number, seconds): number for number in range(regions)}
        self._lost: Counter[int] = Counter()

    def answers(self, deadline: Deadline, enough: Callable[[], bool]) -> Iterator[tuple[int, Placement]]:
        """Yield the number of each region and its pods, as entries of the whole, in finishing order.

        A region whose worker is lost is handed out again, if there is time; none comes of those that are not solved.
        """
        late = Deadline(deadline.remaining + max(LEAST_LATE, LATE * deadline.seconds))
        while self._jobs and not (late.over or deadline.stop.is_set() or enough()):
            for job in wait(self._jobs, POLL, FIRST_COMPLETED).done:
                yield from self._settled(job, deadline)
        self._group.tell_to_stop()
        for job in wait(self._jobs, LEAST_LATE).done:
            yield from self._settled(job, Deadline(0.0))

    def _settled(self, job: Future[Placement], deadline: Deadline) -> Iterator[tuple[int, Placement]]:
        """Yield what a job has come to, or hand it out again."""
        number, counts = self._jobs.pop(job), self._backend.counts
        try:
            answer = job.result()
        except CancelledError:
            return
        except WorkerDiedError:
            counts.lost += 1
            self._lost[number] += 1
            if deadline.remaining > WORTH and self._lost[number] <= RETRIES:
                self._jobs[self._solve(number, deadline.remaining)] = number
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
    memory = Memory.granted(None)  # of this machine
    room = memory.admits(walking.bytes_per_pair * math.prod(region.problem.shape))
    if kernels and room and tier == last and suits(region.problem, last, walking.largest_table):
        with memory.watched(stop) as watched:
            deadline = Deadline(left, stop=watched)
            found = walk(evaluator, region.now, last, deadline, options.seed, threads=1, parameters=walking)
        return region.outside(found)
    values = evaluator.evaluate(region.now).values
    known = [KnownBound(t, values[:t], values[t], WHOLE) for t in range(tier) if not constant(tiers[t])]
    options = replace(options, time_limit=left, kernels=kernels, memory=None)
    outcome = solve(region.problem, options, candidates=[region.now], known=known, stop=stop, bounded=False)
    return region.outside(outcome.placement)
