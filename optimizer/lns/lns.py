"""Large neighborhood search: solve a sub-problem of the incumbent exactly, accept the solution, and repeat.

P. Shaw, "Using constraint programming and local search methods to solve vehicle routing problems" (1998).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from stowplan.models.problem import Placement
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.solve import TierModel, build
from stowplan.optimizer.cpsat.task import SolverLimits, Task, TaskResult
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.evaluation import Evaluator
from stowplan.optimizer.lns.extraction import Busy, extract
from stowplan.optimizer.lns.features import Features, Shared
from stowplan.optimizer.lns.operators import ABOUT_MOVES, OPERATORS
from stowplan.optimizer.lns.parameters import LnsParameters
from stowplan.optimizer.lns.selection import OperatorSelection
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.scope import Free, replaced


@dataclass(frozen=True, slots=True)
class Improvement:
    """The result of large neighborhood search.

    Parameters
    ----------
    placement, values
        The best placement, and the values of its tiers.
    solved, improved
        Sub-problems that were solved, and that improved something.
    operators
        For each destroy operator: how often it was tried, how often it improved something, its size in the end.
    notes
        What went wrong and was recovered from.
    """

    placement: Placement
    values: tuple[int, ...]
    solved: int
    improved: int
    operators: dict[str, tuple[int, int, int]]
    notes: tuple[str, ...]


class OperatorState:
    """What is computed once for a problem, and what has been learned about its destroy operators."""

    def __init__(
        self,
        evaluator: Evaluator,
        parameters: LnsParameters | None = None,
        cpsat: CpSatParameters | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.parameters, self.cpsat = parameters or LnsParameters(), cpsat or CpSatParameters()
        self.index = Index(evaluator)
        self._shared: dict[int, Shared] = {}
        self._selection: dict[int, OperatorSelection] = {}

    def shared(self, tier: int) -> Shared:
        """Return what does not change with the incumbent."""
        return self._shared.setdefault(tier, Shared(self.index, tier, self.parameters))

    def selection(self, tier: int) -> OperatorSelection:
        """Return what is known of the destroy operators."""
        return self._selection.setdefault(tier, OperatorSelection(list(OPERATORS), self.parameters))


def improve(
    evaluator: Evaluator,
    incumbent: Placement,
    tier: int,
    deadline: Deadline,
    backend: Backend,
    *,
    seed: int = 0,
    offer: Callable[[Placement], object] = lambda placement: None,
    plateau: bool = True,
    operator_state: OperatorState | None = None,
    enough: int | None = None,
) -> Improvement:
    """Improve a tier, and those after it as far as they fit into one model, without making earlier ones worse.

    Parameters
    ----------
    incumbent
        A legal placement.
    deadline
        In deterministic mode, a second is a share of a unit of CP-SAT's deterministic time.
    offer
        Called with placements that are better than all before, about once a second, and with the last one.
    plateau
        Also accept placements as good as the current one: something better may be near.
    operator_state
        What earlier calls for the same problem have learned; this call adds to it. It holds the parameters.
    enough
        Value of the tier at which to stop; if not given, later tiers are improved as long as there is time.

    Returns
    -------
    Improvement
        A legal placement whose tiers are no worse.
    """
    search = _Search(
        operator_state or OperatorState(evaluator), incumbent, tier, deadline, backend, seed, offer, plateau, enough
    )
    search.run()
    return search.result()


@dataclass(frozen=True, slots=True)
class _Proposal:
    operator: str
    curves_held: bool
    free: Free
    tier_model: TierModel
    work: float
    seed: int
    version: int


@dataclass
class _Counts:
    solved: int = 0
    improved: int = 0
    wrong: int = 0
    work: float = 0.0
    notes: list[str] = field(default_factory=list)


class _Search:
    """One search under way."""

    def __init__(
        self,
        operator_state: OperatorState,
        incumbent: Placement,
        tier: int,
        deadline: Deadline,
        backend: Backend,
        seed: int,
        offer: Callable[[Placement], object],
        plateau: bool,
        enough: int | None,
    ) -> None:
        self.tier = tier
        self.enough = enough
        self.parameters, self.cpsat = operator_state.parameters, operator_state.cpsat
        self.deadline = deadline
        self.backend = backend
        self.offer = offer
        self.plateau = plateau
        self.index = operator_state.index
        self.shared = operator_state.shared(tier)
        self.selection = operator_state.selection(tier)
        self.evaluator = evaluator = operator_state.evaluator
        self.placement = incumbent
        self.values = evaluator.evaluate(incumbent).values
        self.features = Features(self.shared, incumbent)
        self.rng = np.random.default_rng(seed)
        self.busy = Busy(*evaluator.problem.shape)
        self.counts = _Counts()
        self.version = 0
        self.idle = 0
        self.proven = False
        self.offered = self.values
        self.offered_at = -math.inf

    @property
    def over(self) -> bool:
        if self.deadline.deterministic and self.counts.work * self.parameters.seconds_of_work >= self.deadline.seconds:
            return True
        reached = self.enough is not None and self.values[self.tier] <= self.enough
        return self.deadline.over or self.proven or reached or self.idle >= self.parameters.patience

    def run(self) -> None:
        """Solve sub-problems until time is up, or nothing is left to gain."""
        while not self.over:
            proposals = self._round() if self.deadline.deterministic else iter(self._propose, None)
            before = self.counts.solved
            self._solve(proposals)
            if self.counts.solved == before:
                break  # the placement is too small, or holds no pods
        self._hand_out()

    def _hand_out(self) -> None:
        """Offer the placement if it is better than the last one that was."""
        if self.values < self.offered:
            self.offered, self.offered_at = self.values, time.monotonic()
            self.offer(self.placement)

    def result(self) -> Improvement:
        """Return the result."""
        counts = self.counts
        notes = [*self.backend.notes]
        if counts.wrong:
            notes.append(f"{counts.wrong} solutions of sub-problems were not what the model said; not used")
        return Improvement(
            self.placement,
            self.values,
            counts.solved,
            counts.improved,
            self.selection.summary(),
            tuple(notes),
        )

    def _round(self) -> list[_Proposal]:
        """Choose some sub-problems of one incumbent."""
        found: list[_Proposal] = []
        while len(found) < self.parameters.round_size and (proposal := self._propose()) is not None:
            found.append(proposal)
        return found

    def _propose(self) -> _Proposal | None:
        """Choose a sub-problem beside those under way, and build its model."""
        if self.over:
            return None
        useless: set[str] = set()
        others: set[str] = set()
        if self.features.only_moves_are_left and self.rng.random() < self.parameters.move_share:
            others |= OPERATORS.keys() - ABOUT_MOVES
        for _ in range(self.parameters.fruitless):
            name = self.selection.next(self.rng, useless | others) or self.selection.next(self.rng, useless)
            if name is None:
                return None
            neighborhood = OPERATORS[name](self.features, self.rng)
            if neighborhood is None:
                useless.add(name)
                continue
            free = extract(self.features, neighborhood, self.selection.size(name), self.busy, self.rng)
            if free is not None and len(free.classes):
                self.busy.take(free)
                tier_model = build(
                    self.index,
                    self.tier,
                    self.values[: self.tier],
                    self.placement,
                    self.values,
                    free,
                    lexicographic=True,
                    largest_span=self.cpsat.largest_span,
                    curves_held=neighborhood.curves_held,
                )
                seed = int(self.rng.integers(1 << 30))
                return _Proposal(
                    name, neighborhood.curves_held, free, tier_model, self.selection.work, seed, self.version
                )
        return None

    def _solve(self, proposals: Iterable[_Proposal]) -> None:
        """Have sub-problems solved, and accept their solutions one after the other, in the order in which they come."""
        sent: dict[int, _Proposal] = {}

        def tasks() -> Iterator[Task]:
            for number, proposal in enumerate(proposals):
                sent[number] = proposal
                yield Task(proposal.tier_model.model, self._limits(proposal))

        for number, result in self.backend.stream(tasks(), self.deadline, ordered=self.deadline.deterministic):
            proposal = sent.pop(number)
            self.busy.release(proposal.free)
            self._digest(proposal, result)

    def _limits(self, proposal: _Proposal) -> SolverLimits:
        if self.deadline.deterministic:
            return SolverLimits(
                work=proposal.work, seed=proposal.seed, symmetry_variables=self.cpsat.symmetry_variables
            )
        seconds = min(0.2 + self.parameters.seconds_per_work * proposal.work, self.deadline.remaining)
        return SolverLimits(
            max(0.05, seconds),
            proposal.work,
            seed=proposal.seed,
            symmetry_variables=self.cpsat.symmetry_variables,
        )

    def _digest(self, proposal: _Proposal, result: TaskResult) -> None:
        counts = self.counts
        counts.solved += 1
        counts.work += self.parameters.overhead + result.work
        before = self.values
        whole = result.optimal and self.version == proposal.version and self._whole(proposal)
        if result.values is not None:
            self._put_in_place(proposal, result)
        improved = self.values < before
        # A gain in later tiers alone counts as the smallest possible gain in this one.
        gain = max(1, before[self.tier] - self.values[self.tier]) if improved else 0
        self.selection.learn(
            proposal.operator, gain=gain, optimal=result.optimal, work=result.work, granted=proposal.work
        )
        self.proven = self.proven or whole
        self.idle = 0 if improved else self.idle + 1
        if improved:
            counts.improved += 1
            if time.monotonic() - self.offered_at >= self.parameters.offer_every:
                self._hand_out()

    def _whole(self, proposal: _Proposal) -> bool:
        """Whether nothing was frozen or held, so that an optimal solution is optimal for the whole problem."""
        if proposal.curves_held:
            return False
        free = proposal.free
        problem = self.index.problem
        elastic = np.isin(np.flatnonzero(problem.optional), free.waiting).all()
        there = np.union1d(self.placement.cls, np.flatnonzero(self.features.missing))
        return len(free.nodes) == len(problem.nodes) and bool(elastic) and len(np.setdiff1d(there, free.classes)) == 0

    def _put_in_place(self, proposal: _Proposal, result: TaskResult) -> None:
        assert result.values is not None
        scope = proposal.tier_model.variables.scope
        table = proposal.tier_model.variables.table(result.values)
        if np.array_equal(table, scope.now):
            return
        placement = replaced(self.placement, proposal.free, table)
        evaluation = self.evaluator.evaluate(placement)
        if evaluation.legal and (
            evaluation.values < self.values or (self.plateau and evaluation.values == self.values)
        ):
            self.placement, self.values = placement, evaluation.values
            self.features = Features(self.shared, placement)
            self.version += 1
        elif self.version != proposal.version:
            self.backend.counts.dropped += 1  # others have been accepted meanwhile, and the two are not compatible
        elif not evaluation.legal or (
            result.optimal and evaluation.values[: self.tier + 1] > self.values[: self.tier + 1]
        ):
            # A solver that was cut off may return something worse than its hint; that alone is no error.
            self.counts.wrong += 1
