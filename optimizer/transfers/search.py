"""The search of one program of transfers: what solvers say of it, made into bounds and placements."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from queue import SimpleQueue

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.options import Options
from stowplan.models.result import bound_holds
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.task import SolverLimits
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.node_changes.generation import patterns_of
from stowplan.optimizer.node_changes.realization import realize
from stowplan.optimizer.node_changes.sub_problem import changed, freed, rearranged
from stowplan.optimizer.processes import Workers
from stowplan.optimizer.run import Run
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.transfers.program import TransferProgram
from stowplan.optimizer.transfers.solver import IntegerProgram, solve, solve_beside

NAME = "program of transfers"
"""What results call it."""

POLL = 0.05
"""Seconds between looks at what solvers have said, and at whether to end."""


class TransferSearch:
    """Solvers of the program of a tier, and what becomes of their solutions.

    Parameters
    ----------
    run
        Whose values of the tiers before are those that the program was made for.
    """

    def __init__(self, run: Run, program: TransferProgram, tier: int, options: Options, cpsat: CpSatParameters) -> None:
        self._run, self._program, self._tier = run, program, tier
        self._options, self._cpsat = options, cpsat
        self._given = run.values[:tier]
        self._told: SimpleQueue[tuple[int | None, float | Floats]] = SimpleQueue()
        self._refused: Sequence[tuple[int, Ints]] = ()

    def search_here(self, deadline: Deadline) -> None:
        """Let a solver work in this process, which listens soon enough where the program is small."""

        def hear(word: float | Floats) -> None:
            self._hear(None, word)
            self._take()

        until = time.monotonic() + deadline.remaining
        solve(self._program.whole, until, lambda: deadline.over or not self._matters, hear)
        self._end(deadline)

    def search_beside(self, deadline: Deadline, processors: int) -> None:
        """Let solvers work in processes until one has ended, or time is up; place what they find.

        Parameters
        ----------
        processors
            With two of them, one solver only looks for better values, while another one bounds without such a row:
            which one is quicker differs from one problem to the next.
        """
        until = time.monotonic() + deadline.remaining
        with Workers(2) as workers:
            pending: set[Future[bool]] = {
                workers.submit_telling(partial(self._hear, below), solve_beside, program, until)
                for below, program in self._programs(processors)
            }
            ended = False
            while pending and not ended and self._matters and not deadline.over:
                done, pending = wait(pending, POLL, FIRST_COMPLETED)
                self._take()
                ended = any(self._left_nothing(answer) for answer in done)
        self._take()  # what was said while they came to their end
        self._end(deadline)

    def _end(self, deadline: Deadline) -> None:
        if self._refused and self._matters and not self._run.over:
            self._arrange(self._refused, deadline)

    def _programs(self, processors: int) -> Sequence[tuple[int | None, IntegerProgram]]:
        """Return what to solve, with the value that it is limited to values below."""
        value = self._run.values[self._tier]
        better = self._program.below(value) if processors > 1 else None
        return [(None, self._program.whole), *([(value, better)] if better is not None else [])]

    @property
    def _matters(self) -> bool:
        """Whether the tier is open, and what is proven holds for the incumbent."""
        run, tier = self._run, self._tier
        return run.is_open(tier) and bound_holds(run.values[:tier], self._given)

    def _left_nothing(self, answer: Future[bool]) -> bool:
        """Whether a solver that came to its end by itself says that nothing better is left."""
        error = answer.exception()
        if error is not None:
            self._run.note(f"a solver of the {NAME} failed in its process: {error}")
        return error is None and answer.result()

    def _hear(self, below: int | None, word: float | Floats) -> None:
        self._told.put((below, word))

    def _take(self) -> None:
        """Take the bounds that solvers have told, and place the best solution among what they have."""
        run, tier, program = self._run, self._tier, self._program
        found: Floats | None = None
        while not self._told.empty():
            below, word = self._told.get()
            if isinstance(word, float):
                run.raise_bound(tier, program.bound(word, below), NAME, self._given)
            elif found is None or program.worth(word) < program.worth(found):
                found = word
        if found is not None and program.worth(found) < run.values[tier]:
            changes = self._changes(found)
            placement = realize(run.evaluator, program.programs, changes)
            self._refused = () if run.offer(placement, NAME, trusted=False) else changes

    def _changes(self, found: Floats) -> Sequence[tuple[int, Ints]]:
        """Return the nodes where a solution has other pods than the start, and the change ``[k]`` of each."""
        wanted = self._program.pods(found)
        before = patterns_of(self._program.programs, len(wanted), self._run.evaluator.problem.start)
        return [(n, wanted[n] - before[n]) for n in np.flatnonzero((wanted != before).any(axis=1)).tolist()]

    def _arrange(self, changes: Sequence[tuple[int, Ints]], deadline: Deadline) -> None:
        """Let CP-SAT choose pods for a solution that broke rules between nodes, on the nodes that it changes.

        Nodes that the incumbent changes may change too, so that its moves can be taken back.
        """
        run, problem, kind = self._run, self._run.evaluator.problem, self._program.programs.kind
        moved = changed(problem, run.best)
        nodes = {n for n, _ in changes} | set(moved.node.tolist())
        kinds = {k for _, change in changes for k in np.flatnonzero(change).tolist()} | set(kind[moved.cls].tolist())
        free = freed(problem, run.best, nodes, kinds, kind)
        limits = SolverLimits(max(0.1, deadline.remaining), workers=self._options.workers, seed=self._options.seed)
        index = Index(run.evaluator)
        placement, _ = rearranged(index, self._tier, run.best, free, limits, self._cpsat, deadline.stop.is_set)
        if placement is not None:
            run.offer(placement, NAME)
