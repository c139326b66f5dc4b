"""When transfers are searched: in tiers that count pods, nodes or moves, before engines that prove less."""

from __future__ import annotations

import threading
from queue import Empty, Queue

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.options import Options
from stowplan.models.problem import Move, Open, Prefer, Problem, Unplaced
from stowplan.optimizer.bounds.node_programs import node_programs
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.task import SolverLimits
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.kinds import pods_by_kind
from stowplan.optimizer.node_changes.realization import realize
from stowplan.optimizer.node_changes.sub_problem import rearranged
from stowplan.optimizer.run import Run
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.scope import Free
from stowplan.optimizer.transfers.parameters import TransferParameters
from stowplan.optimizer.transfers.program import TransferProgram

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
        """Improve and bound the first open one of so many tiers, if moves are limited."""
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
        run, problem = self._run, self._run.evaluator.problem
        moves = _counts(problem, tier, Move)
        limited = problem.move_limit is not None and _counts(problem, tier, Open, Unplaced, Move, Prefer)
        if self._options.deterministic or run.over or not run.is_open(tier) or not (limited or moves):
            return
        if run.variables > self._parameters.largest or self._taken.get(tier) == run.values[:tier]:
            return
        room, chosen = _counts(problem, tier, Unplaced), self._parameters
        if room and not late and run.variables > chosen.early_variables:
            return
        self._taken[tier] = run.values[:tier]
        nodes = _counts(problem, tier, Open)
        share = chosen.share if nodes else chosen.room_share if room else chosen.moves_share
        with run.stage(NAME, share, tier) as deadline:
            program = self._program(tier, deadline)
            if program is not None:
                self._solve(program, tier, deadline)

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

        def work(solver_number: int) -> None:
            if solvers[solver_number].run(lambda: ended.is_set() or deadline.over, told.put, told.put):
                ended.set()

        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(solvers))]
        for thread in threads:
            thread.start()
        best: Floats | None = None
        while any(thread.is_alive() for thread in threads) or not told.empty():
            try:
                found = told.get(timeout=POLL)
            except Empty:
                continue
            if isinstance(found, int):
                run.raise_bound(tier, found, NAME)
            elif program.worth(found) < run.values[tier]:
                best = None if self._offer(program, found) else found
            if not run.is_open(tier):
                ended.set()
        if best is not None and run.is_open(tier) and not run.over:
            self._arrange(program, tier, best, deadline)

    def _offer(self, program: TransferProgram, found: Floats) -> bool:
        """Offer the placement of a solution, as far as rules between nodes allow it; return whether it is better."""
        placement = realize(self._run.evaluator, program.programs, self._changes(program, found))
        return self._run.offer(placement, NAME, trusted=False)

    def _changes(self, program: TransferProgram, found: Floats) -> list[tuple[int, Ints]]:
        """Return the nodes where a solution has other pods than the start, and the change ``[k]`` of each."""
        wanted, start = program.pods(found), self._run.evaluator.problem.start
        before = pods_by_kind(start, program.programs.kind, wanted.shape[1], len(wanted))
        return [(n, wanted[n] - before[n]) for n in np.flatnonzero((wanted != before).any(axis=1)).tolist()]

    def _arrange(self, program: TransferProgram, tier: int, found: Floats, deadline: Deadline) -> None:
        """Let CP-SAT choose pods for a solution that broke rules between nodes, on the nodes that it changes.

        Nodes that the incumbent changes may change too, so that its moves can be taken back.
        """
        run, problem = self._run, self._run.evaluator.problem
        nodes = len(problem.nodes)
        changes, kind = self._changes(program, found), program.programs.kind
        moved = [run.best.beyond(problem.start, nodes), problem.start.beyond(run.best, nodes)]
        chosen = {n for n, _ in changes} | {n for part in moved for n in part.node.tolist()}
        kinds = {k for _, change in changes for k in np.flatnonzero(change).tolist()}
        kinds |= {k for part in moved for k in kind[part.cls].tolist()}
        there = [
            cls[np.isin(node, list(chosen))]
            for cls, node in ((run.best.cls, run.best.node), (problem.start.cls, problem.start.node))
        ]
        missing = (problem.size > run.best.placed(len(problem.classes))) & (problem.optional > 0)
        classes = np.union1d(np.concatenate(there), np.flatnonzero(missing))
        classes = classes[np.isin(kind[classes], list(kinds))]
        free = Free(np.array(sorted(chosen), dtype=np.int64), classes, classes[problem.optional[classes] > 0])
        limits = SolverLimits(max(0.1, deadline.remaining), workers=self._options.workers, seed=self._options.seed)
        placement, _ = rearranged(Index(run.evaluator), tier, run.best, free, limits, self._cpsat, deadline.stop.is_set)
        if placement is not None:
            run.offer(placement, NAME)


def _counts(problem: Problem, tier: int, *kinds: type) -> bool:
    """Whether a tier has only such terms."""
    terms = [weighted.term for weighted in problem.tiers[tier].terms]
    return bool(terms) and all(isinstance(term, kinds) for term in terms)
