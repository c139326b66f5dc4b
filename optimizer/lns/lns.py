"""Large neighbourhood search: solve a part of the placement exactly, put it in place, and go on with another part."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from stowplan.models.problem import Placement
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.cpsat.solve import Restricted, build
from stowplan.optimizer.cpsat.task import Answer, Limits, Task
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.evaluation import Evaluator
from stowplan.optimizer.lns.features import Features, Shared
from stowplan.optimizer.lns.operators import ABOUT_MOVES, OPERATORS
from stowplan.optimizer.lns.selection import OperatorSelection
from stowplan.optimizer.lns.subproblem import Busy, extract
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.scope import Free, replaced

ROUND = 4
"""Neighbourhoods of one round, where the answer must not depend on how many are worked on at a time."""

SECONDS_PER_WORK = 12.0
"""Seconds for a unit of work after which a neighbourhood is cut off in any case, where the clock counts."""

SECONDS_OF_WORK = 6.0
"""Seconds that stand for a unit of work where the answer must not depend on the clock."""

OVERHEAD = 0.005
"""Work that is booked for choosing and building a neighbourhood."""

PATIENCE = 200
"""Neighbourhoods in a row without success after which to give up."""

OFFER_EVERY = 1.0
"""Seconds between placements that are handed out, since whoever takes them judges them once more."""

FOCUS = 0.75
"""Share of the neighbourhoods that follow moves where nothing but moves can cost less."""

FRUITLESS = 20
"""Attempts in a row to choose a neighbourhood after which there is none."""


@dataclass(frozen=True, slots=True)
class Improvement:
    """What large neighbourhood search came to.

    Parameters
    ----------
    placement, values
        The best placement, and the values of its tiers.
    solved, improved
        Neighbourhoods that were solved, and that made something better.
    kinds
        For each kind: how often it was tried, how often it improved something, its size in the end.
    notes
        What went wrong and was made up for.
    """

    placement: Placement
    values: tuple[int, ...]
    solved: int
    improved: int
    kinds: dict[str, tuple[int, int, int]]
    notes: tuple[str, ...]


class OperatorState:
    """What is worked out once for a problem, and what has been learned about its neighbourhoods."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.index = Index(evaluator)
        self._shared: dict[int, Shared] = {}
        self._choice: dict[int, OperatorSelection] = {}

    def shared(self, tier: int) -> Shared:
        """Return what does not change with the placement."""
        return self._shared.setdefault(tier, Shared(self.index, tier))

    def selection(self, tier: int) -> OperatorSelection:
        """Return what is known of the kinds of neighbourhoods."""
        return self._choice.setdefault(tier, OperatorSelection(list(OPERATORS)))


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
        In deterministic mode, a second is a sixth of a unit of CP-SAT's deterministic time.
    offer
        Called with placements that are better than all before, about once a second, and with the last one.
    plateau
        Also accept placements that are as good as the one at hand: something better may be near.
    operator_state
        What earlier calls for the same problem have learned; this one adds to it.
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
    kind: str
    curves_held: bool
    free: Free
    restricted: Restricted
    work: float
    seed: int
    version: int


@dataclass
class _Counts:
    solved: int = 0
    improved: int = 0
    clashes: int = 0
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
        if self.deadline.deterministic and self.counts.work * SECONDS_OF_WORK >= self.deadline.seconds:
            return True
        reached = self.enough is not None and self.values[self.tier] <= self.enough
        return self.deadline.over or self.proven or reached or self.idle >= PATIENCE

    def run(self) -> None:
        """Solve neighbourhoods until time is up, or nothing is left to gain."""
        while not self.over:
            proposals = self._round() if self.deadline.deterministic else iter(self._propose, None)
            before = self.counts.solved
            self._solve(proposals)
            if self.counts.solved == before:
                break  # the placement is too small, or nobody stands on it
        self._hand_out()

    def _hand_out(self) -> None:
        """Offer the placement if it is better than the last one that was."""
        if self.values < self.offered:
            self.offered, self.offered_at = self.values, time.monotonic()
            self.offer(self.placement)

    def result(self) -> Improvement:
        """Return what was reached."""
        counts = self.counts
        notes = [*self.backend.notes]
        if counts.wrong:
            notes.append(f"{counts.wrong} solutions of neighbourhoods did not hold what they promised; not used")
        return Improvement(
            self.placement,
            self.values,
            counts.solved,
            counts.improved,
            self.selection.summary(),
            tuple(notes),
        )

    def _round(self) -> list[_Proposal]:
        """Choose some neighbourhoods of one placement."""
        found: list[_Proposal] = []
        while len(found) < ROUND and (proposal := self._propose()) is not None:
            found.append(proposal)
        return found

    def _propose(self) -> _Proposal | None:
        """Choose a neighbourhood beside those under way, and build its model."""
        if self.over:
            return None
        useless: set[str] = set()
        others: set[str] = set()
        if self.features.only_moves_are_left and self.rng.random() < FOCUS:
            others |= OPERATORS.keys() - ABOUT_MOVES
        for _ in range(FRUITLESS):
            kind = self.selection.next(self.rng, useless | others) or self.selection.next(self.rng, useless)
            if kind is None:
                return None
            neighborhood = OPERATORS[kind](self.features, self.rng)
            if neighborhood is None:
                useless.add(kind)
                continue
            free = extract(self.features, neighborhood, self.selection.size(kind), self.busy, self.rng)
            if free is not None and len(free.classes):
                self.busy.take(free)
                restricted = build(
                    self.index,
                    self.tier,
                    self.values[: self.tier],
                    self.placement,
                    self.values,
                    free,
                    lexicographic=True,
                    curves_held=neighborhood.curves_held,
                )
                seed = int(self.rng.integers(1 << 30))
                return _Proposal(
                    kind, neighborhood.curves_held, free, restricted, self.selection.work, seed, self.version
                )
        return None

    def _solve(self, proposals: Iterable[_Proposal]) -> None:
        """Have neighbourhoods solved, and put the solutions in place one after the other."""
        sent: deque[_Proposal] = deque()

        def tasks() -> Iterator[Task]:
            for proposal in proposals:
                sent.append(proposal)
                yield Task(proposal.restricted.model, self._limits(proposal))

        for answer in self.backend.stream(tasks(), self.deadline):
            proposal = sent.popleft()
            self.busy.release(proposal.free)
            self._digest(proposal, answer)

    def _limits(self, proposal: _Proposal) -> Limits:
        if self.deadline.deterministic:
            return Limits(work=proposal.work, seed=proposal.seed)
        seconds = min(0.2 + SECONDS_PER_WORK * proposal.work, self.deadline.remaining)
        return Limits(max(0.05, seconds), proposal.work, seed=proposal.seed)

    def _digest(self, proposal: _Proposal, answer: Answer) -> None:
        counts = self.counts
        counts.solved += 1
        counts.work += OVERHEAD + answer.work
        before = self.values
        whole = answer.optimal and self.version == proposal.version and self._whole(proposal)
        if answer.values is not None:
            self._put_in_place(proposal, answer)
        improved = self.values < before
        # What gained in later tiers alone is worth no more than the least that can be gained in this one.
        gain = max(1, before[self.tier] - self.values[self.tier]) if improved else 0
        self.selection.learn(proposal.kind, gain=gain, optimal=answer.optimal, work=answer.work, granted=proposal.work)
        self.proven = self.proven or whole
        self.idle = 0 if improved else self.idle + 1
        if improved:
            counts.improved += 1
            if time.monotonic() - self.offered_at >= OFFER_EVERY:
                self._hand_out()

    def _whole(self, proposal: _Proposal) -> bool:
        """Whether nothing was frozen or held, so that an optimal solution is the best there is."""
        if proposal.curves_held:
            return False
        free = proposal.free
        problem = self.index.problem
        elastic = np.isin(np.flatnonzero(problem.optional), free.waiting).all()
        there = np.union1d(self.placement.cls, np.flatnonzero(self.features.missing))
        return len(free.nodes) == len(problem.nodes) and bool(elastic) and len(np.setdiff1d(there, free.classes)) == 0

    def _put_in_place(self, proposal: _Proposal, answer: Answer) -> None:
        assert answer.values is not None
        scope = proposal.restricted.variables.scope
        table = proposal.restricted.variables.table(answer.values)
        if np.array_equal(table, scope.now):
            return
        placement = replaced(self.placement, proposal.free, table)
        verdict = self.evaluator.evaluate(placement)
        if verdict.legal and (verdict.values < self.values or (self.plateau and verdict.values == self.values)):
            self.placement, self.values = placement, verdict.values
            self.features = Features(self.shared, placement)
            self.version += 1
        elif self.version != proposal.version:
            self.counts.clashes += 1  # others have been put in place meanwhile, and the two do not go together
        elif not verdict.legal or (answer.optimal and verdict.values[: self.tier + 1] > self.values[: self.tier + 1]):
            # A search that was cut off may end with something worse than it began with; that alone is no mistake.
            self.counts.wrong += 1
