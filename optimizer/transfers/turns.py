"""When transfers are searched: in tiers that count pods, nodes or moves, before engines that prove less."""

from __future__ import annotations

from stowplan.models.options import Options
from stowplan.models.problem import Move, Open, Prefer, Unplaced
from stowplan.optimizer.bounds.node_programs import node_programs
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.run import Run
from stowplan.optimizer.transfers.parameters import TransferParameters
from stowplan.optimizer.transfers.program import TransferProgram
from stowplan.optimizer.transfers.search import NAME, TransferSearch


class TransferTurns:
    """The turns that the integer program over transfers has in a run.

    The solver's work cannot be counted, so that there are none in deterministic mode.

    Parameters
    ----------
    processors
        See `TransferSearch.search_beside`.
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
                search = TransferSearch(run, program, tier, self._options, self._cpsat)
                if program.variables <= self._parameters.largest_here:
                    search.search_here(deadline)
                else:
                    search.search_beside(deadline, self._processors)

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
        if not counted.counts(Open):
            return chosen.moves_share
        # With many moves, solvers seldom come to an end; what closes nodes one by one finds more in the time.
        far = self._run.values[tier] - self._run.bounds[tier] > chosen.far * self._run.values[tier]
        return chosen.far_share if far else chosen.share

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
