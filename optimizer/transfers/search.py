"""The search of one program of transfers: what solvers say of it, made into bounds and placements."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from functools import cached_property, partial
from queue import SimpleQueue

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.errors import InternalError
from stowplan.models.options import Options
from stowplan.models.problem import Placement
from stowplan.models.result import bound_holds
from stowplan.models.stop import Stop
from stowplan.optimizer.bounds.waiting import costs_of_waiting
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.task import SolverLimits
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.node_changes.generation import patterns_of
from stowplan.optimizer.node_changes.realization import realize
from stowplan.optimizer.node_changes.sub_problem import freed, rearranged
from stowplan.optimizer.processes import Workers
from stowplan.optimizer.run import Run
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.transfers.cores import CoreSearch, search_cores_beside
from stowplan.optimizer.transfers.parameters import TransferParameters
from stowplan.optimizer.transfers.program import TransferProgram
from stowplan.optimizer.transfers.solver import IntegerProgram, Row, solve, solve_beside

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

    def __init__(
        self,
        run: Run,
        program: TransferProgram,
        tier: int,
        options: Options,
        parameters: TransferParameters,
        cpsat: CpSatParameters,
    ) -> None:
        self._run, self._program, self._tier = run, program, tier
        self._options, self._parameters, self._cpsat = options, parameters, cpsat
        self._given = run.values[:tier]
        self._told: SimpleQueue[tuple[int | None, float | Floats]] = SimpleQueue()
        self._behind: tuple[Sequence[tuple[int, Ints]], int] = (), run.values[tier]
        self._heard, self._least = 0.0, run.values[tier]
        self._arranged = 0
        self._other: Row | None = None

    def search_here(self, deadline: Deadline) -> None:
        """Let a solver work in this process, which listens soon enough where the program is small."""

        def hear(word: float | Floats) -> None:
            self._hear(None, word)
            self._take()

        until = time.monotonic() + deadline.remaining
        solve(self._program.whole, until, lambda: deadline.over or not self._matters, hear)
        self._end(deadline)
        self._search_others(deadline)

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
            pending = [
                workers.submit_telling(partial(self._hear, below), solve_beside, program, until)
                for below, program in self._programs(processors)
            ]
            self._listen(deadline, pending, until)
        self._end(deadline)
        self._search_others(deadline)

    def search_cores(self, deadline: Deadline, come: Floats, leave: Floats, *, whole: bool) -> None:
        """Let one solver work on cores in a process, and another one on the whole program; place what they find.

        Parameters
        ----------
        come, leave
            ``[m, k]`` ranks by which cores are chosen.
        whole
            Whether to solve the whole program too.
        """
        program, chosen = self._program, self._parameters
        until = time.monotonic() + chosen.solving * deadline.remaining
        before = patterns_of(program.programs, len(program.start), self._beginning)
        order, always = program.order(come, leave)
        first = max(chosen.first_core, chosen.core_share * program.variables)
        core = CoreSearch(
            program=program.whole,
            order=order,
            always=always,
            begin=program.columns(before),
            first=int(first),
            growth=chosen.core_growth,
            time=chosen.core_time,
            until=until,
        )
        with Workers(2) as workers:
            hear = partial(self._hear, None)
            pending = [workers.submit_telling(hear, search_cores_beside, core)]
            if whole:
                pending.append(workers.submit_telling(hear, solve_beside, program.whole, until))
            self._listen(deadline, pending, until)
        self._end(deadline)
        if whole:
            self._search_others(deadline)

    def _search_others(self, deadline: Deadline) -> None:
        """Search solutions that are better than the incumbent, where the last one could not be arranged.

        At least one of the nodes that its arrangement kept in use, or else of all that it empties, is in use then.
        Where it empties none, not all pods leave that left.
        """
        program, rows = self._program, []
        while self._other and self._matters and not deadline.over and deadline.remaining > self._parameters.worth:
            value = self._run.values[self._tier]
            rows.append(self._other)
            better = program.below(value)
            if better is None:
                return
            self._behind, self._least, self._other = ((), value), value, None
            other = replace(better, rows=(*better.rows, *rows))

            def hear(word: float | Floats) -> None:
                if not isinstance(word, float):  # bounds are those of other solutions alone
                    self._hear(None, word)

            until = time.monotonic() + deadline.remaining
            if program.variables <= self._parameters.largest_here:
                solve(other, until, lambda: deadline.over or not self._matters, hear)
            else:
                with Workers(1) as workers:
                    self._listen(deadline, [workers.submit_telling(hear, solve_beside, other, until)], until)
            self._end(deadline)

    @property
    def _beginning(self) -> Placement:
        """The start, from which solvers find more than from what others have made of it; or else the incumbent."""
        start = self._run.evaluator.problem.start
        values = self._run.evaluator.evaluate(start).values
        good = all(value <= given for value, given in zip(values, self._given, strict=False))
        return start if good else self._run.best

    def _listen(self, deadline: Deadline, solvers: Iterable[Future[bool]], until: float) -> None:
        """Take what solvers tell, until one has left nothing, all have ended, or time is up."""
        pending, ended, arranged = set(solvers), False, self._behind
        while pending and not ended and self._matters and not deadline.over and time.monotonic() < until:
            done, pending = wait(pending, POLL, FIRST_COMPLETED)
            self._take()
            waited = time.monotonic() - self._heard > self._parameters.patience  # else a better solution is near
            if waited and self._behind is not arranged:
                arranged = self._behind
                self._arrange_last(deadline, min(self._parameters.arranging, deadline.remaining / 2))
            ended = any(self._left_nothing(answer) for answer in done)

    def _end(self, deadline: Deadline) -> None:
        self._take()  # what was said while solvers came to their end
        # A solution that was worth the time so far is worth a little more of it.
        beyond = min(self._parameters.arranging, self._parameters.beyond * self._run.left)
        self._arrange_last(deadline, max(self._parameters.arranging_share * deadline.remaining, beyond))

    def _arrange_last(self, deadline: Deadline, seconds: float) -> None:
        """Arrange the last solution if rules between nodes have kept its placement from being as good."""
        changes, worth = self._behind
        if changes and worth < self._run.values[self._tier] and self._matters and not self._run.over:
            self._arrange(changes, worth, seconds, deadline.stop)

    def _programs(self, processors: int) -> Sequence[tuple[int | None, IntegerProgram]]:
        """Return what to solve, with the value that it is limited to values below."""
        value = self._run.values[self._tier]
        better = self._program.below(value) if processors > 1 else None
        return [(None, self._program.whole), *([(value, better)] if better is not None else [])]

    @cached_property
    def _index(self) -> Index:
        return Index(self._run.evaluator)

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
        if not isinstance(word, float):
            self._least = min(self._least, self._program.worth(word))
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
        if found is not None and program.worth(found) < min(self._behind[1], run.values[tier]):
            changes = self._changes(found)
            run.offer(realize(run.evaluator, program.programs, changes), NAME, trusted=False)
            self._behind, self._heard = (changes, program.worth(found)), time.monotonic()

    def _changes(self, found: Floats) -> Sequence[tuple[int, Ints]]:
        """Return the nodes where a solution has other pods than the start, and the change ``[k]`` of each."""
        wanted = self._program.pods(found)
        before = patterns_of(self._program.programs, len(wanted), self._run.evaluator.problem.start)
        return [(n, wanted[n] - before[n]) for n in np.flatnonzero((wanted != before).any(axis=1)).tolist()]

    def _arrange(self, changes: Sequence[tuple[int, Ints]], worth: int, seconds: float, stop: Stop) -> None:
        """Let CP-SAT choose pods for a solution that broke rules between nodes, on the nodes that it changes.

        Other nodes are as they start: all moves are for this solution. A better one ends it. A single worker with all
        constraints in its relaxation comes to the best arrangement of so few variables sooner than several do that have
        to share the processors, and one that must be better than the incumbent sooner still. It may use a few more
        moves than the solution, not all there are: tiers that follow need them.
        """
        run, problem, kind = self._run, self._run.evaluator.problem, self._program.programs.kind
        self._arranged += 1  # where time was short, another seed finds other arrangements
        kinds = {k for _, change in changes for k in np.flatnonzero(change).tolist()}
        leaving = -sum(int(np.minimum(change, 0).sum()) for _, change in changes)
        counted = costs_of_waiting(problem, self._tier) > 0
        free = freed(problem, problem.start, {n for n, _ in changes}, kinds, kind, counted)
        try:
            placement, _ = rearranged(
                self._index,
                self._tier,
                problem.start,
                free,
                SolverLimits(max(0.1, seconds), seed=self._options.seed + self._arranged, linear=True),
                self._cpsat,
                lambda: stop.is_set() or self._least < worth,
                run.values[: self._tier],
                below=run.values[self._tier],
                most_moves=int(self._parameters.arranging_moves * leaving) + 1,
            )
        except InternalError as error:
            run.note(f"a solution of the {NAME} was not arranged: {error}")
            return
        if placement is not None:
            run.offer(placement, NAME)
        if run.values[self._tier] > worth:
            emptied = self._program.emptied(changes)
            kept = emptied[:0] if placement is None else np.intersect1d(emptied, placement.node)
            nodes = kept if kept.size else emptied
            self._other = self._program.in_use(nodes) if nodes.size else self._program.fewer_leave(changes)
