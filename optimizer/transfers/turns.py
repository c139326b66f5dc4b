"""When transfers are searched: in tiers that count pods, nodes or moves, before engines that prove less."""

from __future__ import annotations

from stowplan.models.options import Options
from stowplan.models.problem import Move, Open, Prefer, Unplaced
from stowplan.optimizer.bounds.interior_point import RelaxedPrograms
from stowplan.optimizer.bounds.lagrangian import LagrangianBound, LagrangianDual
from stowplan.optimizer.bounds.node_programs import Programs, node_programs
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.run import Run
from stowplan.optimizer.transfers.parameters import TransferParameters
from stowplan.optimizer.transfers.program import TransferProgram
from stowplan.optimizer.transfers.search import NAME, TransferSearch
from stowplan.optimizer.transfers.selection import cheapest, on_all, promising, ranks


class TransferTurns:
    """The turns that the integer program over transfers has in a run.

    The solver's work cannot be counted, so that there are none in deterministic mode.

    Parameters
    ----------
    processors
        See `TransferSearch.search_beside`.
    """

    def __init__(
        self,
        run: Run,
        options: Options,
        parameters: TransferParameters,
        bounds: BoundParameters,
        cpsat: CpSatParameters,
        processors: int,
    ) -> None:
        self._run, self._options, self._processors = run, options, processors
        self._parameters, self._bounds, self._cpsat = parameters, bounds, cpsat
        self._taken: dict[int, tuple[int, ...]] = {}

    def take_first(self, tiers: int) -> None:
        """Improve and bound the first open one of so many tiers, if it is one to `take`."""
        tier = next((tier for tier in range(tiers) if self._run.is_open(tier)), None)
        if tier is not None:
            self.take(tier)

    def take(self, tier: int) -> None:
        """Improve and bound a tier, if moves are limited or it counts moves alone."""
        run, share = self._run, self._share(tier)
        if share is None or self._options.deterministic or run.over or not run.is_open(tier):
            return
        if self._taken.get(tier) == run.values[:tier]:
            return
        self._taken[tier] = run.values[:tier]
        with run.stage(NAME, share, tier) as deadline:
            most, kinds = self._bounds.lagrangian_variables, self._bounds.lagrangian_kinds
            programs = node_programs(run.evaluator, run.upper, tier, run.values[:tier], most, kinds)
            if programs is not None and TransferProgram.suits(programs):
                if self._has_cores(tier):
                    self._search_cores(programs, tier, deadline)
                elif self._affords(TransferProgram.size(programs), deadline):
                    self._search(programs, tier, deadline)

    def _has_cores(self, tier: int) -> bool:
        """Whether cores of a program are worth it: where pods wait, most nodes have no part in a good solution."""
        counted = self._run.evaluator.problem.tiers[tier]
        return counted.counts_unscheduled and self._run.variables > self._parameters.cored and self._options.kernels

    def _affords(self, size: int, deadline: Deadline) -> bool:
        """Whether there is time and memory to solve a program as a whole."""
        chosen = self._parameters
        worth = size <= min(chosen.largest_whole, chosen.variables_per_second * deadline.remaining)
        return worth and self._run.memory.admits(size * chosen.bytes_per_variable)

    def _search(self, programs: Programs, tier: int, deadline: Deadline) -> None:
        program = TransferProgram(programs)
        search = TransferSearch(self._run, program, tier, self._options, self._parameters, self._cpsat)
        if program.variables <= self._parameters.largest_here:
            search.search_here(deadline)
        else:
            search.search_beside(deadline, self._processors)

    def _search_cores(self, programs: Programs, tier: int, deadline: Deadline) -> None:
        """Choose nodes and variables by the linear relaxation, and search cores of them; bound all nodes on the way."""
        chosen, (nodes, kinds) = self._parameters, programs.tables.upper.shape
        share = deadline.share(chosen.relaxing_share)
        number = int(chosen.relaxed_per_second * share.remaining / kinds**2)
        if deadline.remaining < chosen.worth or number < min(nodes, chosen.least_nodes):
            return
        some = promising(programs, number if number >= nodes else min(number, chosen.some_nodes))
        part = programs if some.all() else programs.of_some(some)
        dual = RelaxedPrograms(part, self._bounds).solve(chosen.close, share)
        lagrangian = LagrangianDual(part, dual)
        lagrangian.search(self._bounds.first_budget, deadline.share(chosen.relaxing_share), self._bounds.chunk)
        if some.all():
            self._run.raise_bound(tier, lagrangian.bound, LagrangianBound.name)
        if deadline.remaining < chosen.worth or deadline.over or not self._run.is_open(tier):
            return
        come, leave = (on_all(some, rank) for rank in ranks(part, dual, lagrangian.solutions))
        program = TransferProgram(programs, cheapest(programs, come, leave, chosen.largest))
        if self._run.memory.admits(program.variables * chosen.bytes_per_core_variable):
            search = TransferSearch(self._run, program, tier, self._options, chosen, self._cpsat)
            whole = program.complete and self._processors > 1 and self._affords(program.variables, deadline)
            search.search_cores(deadline, come, leave, whole=whole)

    def _share(self, tier: int) -> float | None:
        """Return the share of the time that a tier has, or ``None`` if it has no turn."""
        problem, chosen = self._run.evaluator.problem, self._parameters
        counted = problem.tiers[tier]
        if self._run.variables > chosen.largest_whole and not counted.counts_unscheduled:
            return None
        if counted.counts(Move):
            return chosen.moves_share
        if problem.move_limit is None or not counted.counts(Open, Unplaced, Move, Prefer):
            return None
        if counted.counts_unscheduled:
            return chosen.cored_room_share if self._has_cores(tier) else chosen.room_share
        if not counted.counts(Open):
            return chosen.moves_share
        # With many moves, solvers seldom come to an end; what closes nodes one by one finds more then.
        far = self._run.values[tier] - self._run.bounds[tier] > chosen.far * self._run.values[tier]
        return chosen.far_share if far else chosen.share
