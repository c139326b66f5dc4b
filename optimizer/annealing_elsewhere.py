"""Annealing in a Ray cluster, beside this process's own: each worker runs a chain from the same incumbent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait

from stowplan.models.problem import Placement, Problem
from stowplan.models.stop import Stop
from stowplan.optimizer.annealing.anneal import anneal
from stowplan.optimizer.annealing.parameters import AnnealingParameters
from stowplan.optimizer.backend import RayBackend
from stowplan.optimizer.compiled import kernel_cache
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.distributed.cluster import Group
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.memory import Memory
from stowplan.optimizer.processes import WorkerDiedError, WorkerNotBegunError

WORTH = 1.0
"""Seconds of annealing below which no other worker is asked: a job should be much longer than its way there."""

LATE = 0.5
"""Seconds after the deadline that an answer may take."""

SEEDS_APART = 7919
"""Between the seed of this process's chains and those of each worker."""


class ElsewhereError(Exception):
    """A worker cannot anneal; the message says why."""


class AnnealingElsewhere:
    """Chains on the workers of a backend, which get the problem from the object store, once each.

    Parameters
    ----------
    problem
        Put into the object store here.
    """

    def __init__(self, backend: RayBackend, problem: Problem, parameters: AnnealingParameters) -> None:
        self._backend = backend
        self._problem = backend.put(problem)
        self._parameters = parameters
        self._group: Group | None = None
        self._chains: list[Future[Placement]] = []

    def begin(self, start: Placement, deadline: Deadline, seed: int, floor: Sequence[int], tiers: int | None) -> None:
        """Have every worker anneal until the deadline, each with a seed of its own."""
        if deadline.deterministic or deadline.remaining < WORTH:
            return
        self._group = Group(self._backend.cluster)
        self._chains += [
            self._group.submit(
                _anneal,
                self._problem,
                start,
                deadline.remaining,
                seed + SEEDS_APART * number,
                tuple(floor),
                tiers,
                self._parameters,
            )
            for number in range(1, self._backend.workers + 1)
        ]

    def end(self, deadline: Deadline) -> Iterator[Placement]:
        """Yield what the workers have found.

        Those that are late are told to stop, and not waited for; what they have found comes with the next answers.
        """
        if self._group is None:
            return
        end = Deadline(deadline.remaining + LATE)
        waiting: set[Future[Placement]] = set(self._chains)
        while waiting and not end.over and not deadline.stop.is_set():
            waiting = wait(waiting, LATE / 10).not_done
        self._group.tell_to_stop()
        if deadline.stop.is_set():
            wait(waiting, LATE)
        counts = self._backend.counts
        for chain in [chain for chain in self._chains if chain.done()]:
            self._chains.remove(chain)
            if chain.cancelled():
                continue
            try:
                found = chain.result()
            except (WorkerDiedError, WorkerNotBegunError):
                counts.lost += 1
            except ElsewhereError as error:
                if str(error) not in self._backend.notes:
                    self._backend.notes.append(str(error))
            else:
                counts.done += 1
                yield found


def _anneal(
    stop: Stop,
    problem: Problem,
    start: Placement,
    seconds: float,
    seed: int,
    floor: Sequence[int],
    tiers: int | None,
    parameters: AnnealingParameters,
) -> Placement:
    """Run a chain, on another machine."""
    if not kernel_cache.all_kept():
        raise ElsewhereError(
            "workers in the Ray cluster did not anneal: their kernels are not compiled "
            "(python -m stowplan.optimizer.warm compiles them)"
        )
    with Memory.granted(None).watched(stop) as watched:
        deadline = Deadline(seconds, stop=watched)
        return anneal(
            Evaluator(problem), start, deadline, seed, floor=floor, tiers=tiers, chains=1, parameters=parameters
        )
