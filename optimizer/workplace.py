"""Where the work of a solve is done: in this process, in others beside it, and in a cluster if there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from stowplan.models.options import Options
from stowplan.models.problem import Placement
from stowplan.optimizer.annealing.anneal import anneal
from stowplan.optimizer.annealing.schedule import Calibration
from stowplan.optimizer.annealing_elsewhere import AnnealingElsewhere
from stowplan.optimizer.backend import Backend, ProcessBackend, RayBackend, SerialBackend, processors
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.run import Run


class Workplace:
    """Has sub-problems solved and placements annealed for one solve.

    Parameters
    ----------
    backend
        Where sub-problems are solved; if not given, in processes that are begun when they are worth it.
    """

    def __init__(self, run: Run, options: Options, backend: Backend | None, parameters: Parameters) -> None:
        self._run, self._options, self._backend, self._parameters = run, options, backend, parameters
        self._calibrations: dict[int, Calibration] = {}

    @property
    def processes(self) -> int:
        """How many processes may work on this machine."""
        return processors(self._options.processes)

    @cached_property
    def _elsewhere(self) -> AnnealingElsewhere | None:
        if not isinstance(self._backend, RayBackend):
            return None
        return AnnealingElsewhere(self._backend, self._run.evaluator.problem, self._parameters.annealing)

    def anneal(self, start: Placement, deadline: Deadline, seed: int, tiers: int | None) -> None:
        """Anneal here and in the cluster, and offer what is found.

        Parameters
        ----------
        tiers
            How many tiers are improved, the most urgent ones; all if not given.
        """
        run = self._run
        if self._elsewhere is not None:
            self._elsewhere.begin(start, deadline, seed, run.enough, tiers)
        # The incumbent of every round is offered as it is found, that of the last one too.
        anneal(
            run.evaluator,
            start,
            deadline,
            seed,
            floor=run.enough,
            tiers=tiers,
            calibrations=self._calibrations,
            found=lambda placement: run.offer(placement, "annealing"),
            admits=run.memory.admits,
            parameters=self._parameters.annealing,
        )
        if self._elsewhere is not None:
            for placement in self._elsewhere.end(deadline):
                run.offer(placement, "annealing in the cluster")

    @contextmanager
    def sub_problems(self) -> Iterator[Backend]:
        """Yield where sub-problems are solved; what is begun for them ends with them."""
        chosen, run = self._parameters.portfolio, self._run
        if self._backend is not None:
            yield self._backend
        elif self.processes == 1 or run.left < chosen.pool_worth:
            yield SerialBackend(run.stop)
        elif not run.memory.admits(self.processes * chosen.bytes_per_process):
            run.note("one process ran large neighborhood search: more would not fit into memory")
            yield SerialBackend(run.stop)
        else:
            with ProcessBackend(self.processes, run.stop) as processes:
                yield processes
