"""The lower bound of a tier with a cost of the final state: here, or in a process of its own beside the search."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from stowplan.models.problem import FinalCost, Move, Part, Placement, Problem
from stowplan.models.stop import Stop
from stowplan.optimizer.bounds.water_filling import may_wait
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.bound import FinalStateBound, whole
from stowplan.optimizer.final_state.branch_and_bound import BranchAndBound
from stowplan.optimizer.final_state.branching_program import BranchingProgram
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.search import FinalStateSearch
from stowplan.optimizer.final_state.split_bound import split_bound, splits
from stowplan.optimizer.processes import Workers

LATE, LATE_AFTER_STOP = 2.0, 0.5
"""Seconds that the process has for its answer once it is told to stop: at the time limit, and after a stop signal."""

BEGINNING = 1.5
"""Seconds that a process takes to begin."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is to be bounded.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    reached
        Values of the earlier tiers, which must not get worse.
    incumbent
        A legal placement that has them.
    value
        Its value in the tier.
    kernels
        Whether bounds that need compiled kernels are asked.
    """

    problem: Problem
    upper: NDArray[np.int32]
    tier: int
    reached: tuple[int, ...]
    incumbent: Placement
    value: int
    kernels: bool

    @property
    def pairs(self) -> int:
        """Pairs of a class and a node, which time and memory grow with."""
        return math.prod(self.problem.shape)

    @property
    def final(self) -> FinalCost:
        """The cost of the final state, which the tier has."""
        found = self.problem.tiers[self.tier].final
        assert found is not None
        return found

    @property
    def parts(self) -> Sequence[Part]:
        """What each plugin costs at least."""
        return self.final.relaxation(self.problem.start, self.problem.move_limit)


@dataclass(frozen=True, slots=True)
class Found:
    """A lower bound, and a placement that is better than the incumbent, if one was found."""

    bound: int
    placement: Placement | None = None


Work = Callable[[Question, Deadline, FinalStateParameters], Found]


def lower_bounds(asked: Question, deadline: Deadline, parameters: FinalStateParameters) -> Iterator[Found]:
    """Yield the bounds that there is time for; without time, those of the first multipliers."""
    if not asked.pairs:
        return
    for work, share in works(asked, deadline, parameters):
        found = work(asked, deadline.share(share), parameters)
        yield found
        if found.placement is not None or found.bound >= asked.value:
            return  # what was asked about is no longer the best, or proven


def works(asked: Question, deadline: Deadline, parameters: FinalStateParameters) -> list[tuple[Work, float]]:
    """Return what bounds a tier, one after the other, each with its share of the time that is left then.

    Small problems are divided into boxes first. Loads and the cost of the final state are bounded each by itself then.
    A program over patterns that there is time for proves more than these, unless moves are limited; so they have a
    short time then.
    """
    branched: list[tuple[Work, float]] = (
        [(_branched, parameters.branching_share)] if branches(asked, parameters) else []
    )
    if not splits(asked.problem, asked.tier):
        return [*branched, (_joint, 1.0)]
    left = deadline.share(1 - parameters.short_split_share)
    short = asked.problem.move_limit is None and parameters.in_time(asked.pairs, left)
    share = parameters.short_split_share if short else parameters.split_share
    return [*branched, (_separate, share), (_joint, 1.0)]


def branches(asked: Question, parameters: FinalStateParameters) -> bool:
    """Whether a problem is small enough for branch and bound."""
    _, nodes = asked.problem.shape
    return nodes <= parameters.branched_nodes and int(np.count_nonzero(asked.upper)) <= parameters.branched_pairs


def _branched(asked: Question, deadline: Deadline, parameters: FinalStateParameters) -> Found:
    """Divide placements into boxes, after a short search: a good value makes few boxes."""
    problem, tier, upper = asked.problem, asked.tier, asked.upper.astype(np.int64)
    if deadline.over:
        return Found(0)
    evaluator, waiting = Evaluator(problem), may_wait(problem, tier, asked.reached)

    def cost(placement: Placement) -> int | None:
        seen = evaluator.evaluate(placement)
        return seen.values[tier] if seen.legal and seen.values[:tier] <= asked.reached else None

    best = [asked.incumbent]
    local = FinalStateSearch(Evaluator(problem.steered), problem, tier, asked.incumbent, best.append, parameters)
    local.run(deadline.share(parameters.before_branching))
    found = [(value, placement) for placement in best[1:] if (value := cost(placement)) is not None]
    value, placement = min(found, default=(asked.value, None), key=lambda one: one[0])
    details = asked.final.details(problem.start, upper, waiting, lambda: deadline.over)
    program = BranchingProgram(problem, problem.tiers[tier], details, upper, waiting, value)
    search = BranchAndBound(program, cost, value, _step(asked))
    most = int(parameters.boxes * deadline.seconds) if deadline.deterministic else None
    bound = search.run(deadline, most)
    return Found(bound, search.placement or placement)


def _separate(asked: Question, deadline: Deadline, parameters: FinalStateParameters) -> Found:
    bound = split_bound(
        asked.problem,
        asked.upper,
        asked.tier,
        asked.parts,
        asked.reached,
        asked.incumbent,
        deadline,
        parameters,
        kernels=asked.kernels,
    )
    return Found(bound)


def _joint(asked: Question, deadline: Deadline, parameters: FinalStateParameters) -> Found:
    problem, tier = asked.problem, asked.problem.tiers[asked.tier]
    dual = FinalStateBound(
        problem, tier, asked.parts, asked.upper, asked.incumbent, asked.value, parameters, kernels=asked.kernels
    )
    return Found(whole(dual.solve(deadline), asked.value, _step(asked)))


class NotSentError(Exception):
    """A question cannot be sent to a process; the message says why."""


class BoundBeside:
    """A process that bounds while this one searches.

    Parameters
    ----------
    seconds
        How long it may take, its start included.

    Raises
    ------
    NotSentError
        If a problem holds what cannot be sent, such as a scoring plugin that was defined inside a function.
    """

    def __init__(self, asked: Question, seconds: float, parameters: FinalStateParameters) -> None:
        self.asked = asked
        self._workers = Workers(1)
        began = time.monotonic()
        beginning = min(seconds, BEGINNING)
        left = Deadline(seconds - beginning)
        try:
            self._awaited, ends = [], 0.0
            for work, share in works(asked, left, parameters):
                ends += share * (left.seconds - ends)
                self._awaited.append(self._workers.submit(_work, work, asked, began, beginning + ends, parameters))
        except Exception as error:  # a class that a user wrote may raise anything when it is to be sent
            self._workers.close()
            raise NotSentError(str(error)) from None

    @property
    def pids(self) -> list[int]:
        """The id of the process, once it has begun."""
        return self._workers.pids

    @property
    def done(self) -> bool:
        """Whether nothing more will come."""
        return all(answer.done() for answer in self._awaited)

    @property
    def failure(self) -> Exception | None:
        """Why a bound does not come, if it does not: the process died, or could not read or bound the problem."""
        errors = (answer.exception() for answer in self._awaited if answer.done() and not answer.cancelled())
        return next((error for error in errors if isinstance(error, Exception)), None)

    def new(self) -> list[Found]:
        """Return what has come since this was asked for the last time."""
        come = [answer for answer in self._awaited if answer.done()]
        self._awaited = [answer for answer in self._awaited if answer not in come or answer.exception() is not None]
        return [answer.result() for answer in come if answer.exception() is None]

    def end(self, seconds: float) -> None:
        """Tell the process to come to an end, and wait some seconds for what it has."""
        if not self.done:
            self._workers.tell_to_stop()
            wait(self._awaited, seconds)

    def close(self) -> None:
        """End the process."""
        self._workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _work(
    stop: Stop,
    work: Work,
    asked: Question,
    began: float,
    seconds: float,
    parameters: FinalStateParameters,
) -> Found:
    return work(asked, Deadline(seconds, stop=stop, began=began), parameters)


def _step(asked: Question) -> int:
    """Return a number of which all values of a tier are multiples."""
    step = asked.final.step
    for weighted in asked.problem.tiers[asked.tier].terms:
        if isinstance(weighted.term, Move):
            step = math.gcd(step, *(weighted.weight * weighted.term.cost).tolist())
        else:
            return 1
    return step
