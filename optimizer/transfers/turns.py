"""When transfers are searched: in tiers that count pods, nodes or moves, before engines that prove less."""

from __future__ import annotations

import threading
from queue import Empty, Queue

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.options import Options
from stowplan.models.problem import Move, Open, Prefer, Unplaced
from stowplan.optimizer.bounds.node_programs import node_programs
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.task import SolverLimits
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.node_changes.generation import patterns_of
from stowplan.optimizer.node_changes.realization import realize
from stowplan.optimizer.node_changes.sub_problem import changed, freed, rearranged
from stowplan.optimizer.run import Run
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.transfers.parameters import TransferParameters
from stowplan.optimizer.transfers.program import TransferProgram, TransferSolver

NAME = "program of transfers"
"""What results call it."""

POLL = 0.05
"""Seconds between looks at whether to end."""


class TransferTurns:
    """The turns that the integer program over transfers has in a run.

    The solver's work cannot be counted, so that there are none in deterministic mode.

    Parameters
    ----------
    processors
        With two of them, one solver only looks for better values, while another one bounds without such a row: which
        one is quicker differs from one problem to the next.
    """

    def __init__(
        self, run: Run, options: Options, parameters: TransferParameters, cpsat: CpSatParameters, processors: int
    ) -> None:
        self._run, self._options, self._processors = run, options, processors
        self._parameters, self._cpsat = parameters, cpsat
        self._taken: dict[int, tuple[int, ...]] = {}

    def take_first(self, tiers: int) -> None:
        """Improve and bound the first open one of so many tiers, if it is one to `take`."""
        tier = next((tier for tier in range(tiers) if self._run.is_open(tier)), None)
        if tier is not None:
            self.take(tier)

    def take(self, tier: int, *, late: bool = False) -> None:
        """Improve and bound a tier, if moves are limited or it counts moves alone.

        Parameters
        ----------
        late
            Whether all others that could let unscheduled pods in have had their turn.
        """
        run, share = self._run, self._share(tier, late=late)
        if share is None or self._options.deterministic or run.over or not run.is_open(tier):
            return
        if run.variables > self._parameters.largest or self._taken.get(tier) == run.values[:tier]:
            return
        self._taken[tier] = run.values[:tier]
        with run.stage(NAME, share, tier) as deadline:
            program = self._program(tier, deadline)
            if program is not None:
                self._solve(program, tier, deadline)

    def _share(self, tier: int, *, late: bool) -> float | None:
        """Return the share of the time that a tier has, or ``None`` if it has no turn."""
        problem, chosen = self._run.evaluator.problem, self._parameters
        counted = problem.tiers[tier]
        if counted.counts(Move):
            return chosen.moves_share
        if problem.move_limit is None or not counted.counts(Open, Unplaced, Move, Prefer):
            return None
        if counted.counts_unscheduled:
            return chosen.room_share if late or self._run.variables <= chosen.early_variables else None
        return chosen.share if counted.counts(Open) else chosen.moves_share

    def _program(self, tier: int, deadline: Deadline) -> TransferProgram | None:
        """Return the program of a tier, or ``None`` if there is none or it is too large."""
        run, chosen = self._run, self._parameters
        most = 2 * chosen.largest
        programs = node_programs(run.evaluator, run.upper, tier, run.values[:tier], most, most)
        if programs is None or not TransferProgram.suits(programs):
            return None
        program = TransferProgram(programs)
        if program.variables > min(chosen.largest, chosen.variables_per_second * deadline.remaining):
            return None
        return program if run.memory.admits(program.variables * chosen.bytes_per_variable) else None

    def _solve(self, program: TransferProgram, tier: int, deadline: Deadline) -> None:
        """Let solvers work in threads; take their bounds and solutions until one has ended, or time is up."""
        run = self._run
        told: Queue[int | Floats] = Queue()
        chosen = (run.values[tier], None)[: max(1, self._processors)]
        solvers = [program.solver(deadline.remaining, below) for below in chosen]
        ended = threading.Event()

        def work(solver: TransferSolver) -> None:
            if solver.run(lambda: ended.is_set() or deadline.over, told.put, told.put):
                ended.set()

        threads = [threading.Thread(target=work, args=(solver,), daemon=True) for solver in solvers]
        for thread in threads:
            thread.start()
        refused: list[tuple[int, Ints]] = []
        while any(thread.is_alive() for thread in threads) or not told.empty():
            try:
                found = told.get(timeout=POLL)
            except Empty:
                continue
            if isinstance(found, int):
                run.raise_bound(tier, found, NAME)
            elif program.worth(found) < run.values[tier]:
                changes = self._changes(program, found)
                placement = realize(run.evaluator, program.programs, changes)
                refused = [] if run.offer(placement, NAME, trusted=False) else changes
            if not run.is_open(tier):
                ended.set()
        if refused and run.is_open(tier) and not run.over:
            self._arrange(program, tier, refused, deadline)

    def _changes(self, program: TransferProgram, found: Floats) -> list[tuple[int, Ints]]:
        """Return the nodes where a solution has other pods than the start, and the change ``[k]`` of each."""
        wanted = program.pods(found)
        before = patterns_of(program.programs, len(wanted), self._run.evaluator.problem.start)
        return [(n, wanted[n] - before[n]) for n in np.flatnonzero((wanted != before).any(axis=1)).tolist()]

    def _arrange(
        self, program: TransferProgram, tier: int, changes: list[tuple[int, Ints]], deadline: Deadline
    ) -> None:
        """Let CP-SAT choose pods for a solution that broke rules between nodes, on the nodes that it changes.

        Nodes that the incumbent changes may change too, so that its moves can be taken back.
        """
        run, problem, kind = self._run, self._run.evaluator.problem, program.programs.kind
        moved = changed(problem, run.best)
        nodes = {n for n, _ in changes} | set(moved.node.tolist())
        kinds = {k for _, change in changes for k in np.flatnonzero(change).tolist()} | set(kind[moved.cls].tolist())
        free = freed(problem, run.best, nodes, kinds, kind)
        limits = SolverLimits(max(0.1, deadline.remaining), workers=self._options.workers, seed=self._options.seed)
        placement, _ = rearranged(Index(run.evaluator), tier, run.best, free, limits, self._cpsat, deadline.stop.is_set)
        if placement is not None:
            run.offer(placement, NAME)
