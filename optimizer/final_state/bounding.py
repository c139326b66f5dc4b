"""The lower bound of a tier with a cost of the final state: here, or in a process of its own beside the search."""

from __future__ import annotations

import math
import pickle
import time
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from stowplan.models.problem import Move, Placement, Problem, Tier
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.final_state.bound import FinalStateBound, whole
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.split_bound import split_bound, splits
from stowplan.optimizer.processes import Workers

LATE = 2.0
"""Seconds that the process has for its answer once it is told to stop."""


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


def lower_bound(asked: Question, deadline: Deadline, parameters: FinalStateParameters) -> int:
    """Return the best bound that there is time for; without time, that of the first multipliers."""
    problem, tier = asked.problem, asked.problem.tiers[asked.tier]
    assert tier.final is not None
    parts = tier.final.relaxation(problem.start)
    found = 0
    if splits(problem, asked.tier):
        # A program over patterns that there is time for proves more than the two by themselves.
        programmed = parameters.programmed(asked.pairs, deadline.share(1 - parameters.short_split_share))
        share = parameters.short_split_share if programmed else parameters.split_share
        found = split_bound(
            problem,
            asked.upper,
            asked.tier,
            parts,
            asked.reached,
            asked.incumbent,
            deadline.share(share),
            parameters,
            kernels=asked.kernels,
        )
    dual = FinalStateBound(problem, tier, parts, asked.upper, asked.incumbent, asked.value, parameters)
    return max(found, whole(dual.solve(deadline), asked.value, _step(tier)))


class NotSentError(Exception):
    """A question cannot be sent to a process."""


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
        try:
            self._answer = self._workers.submit(_bound, asked, time.monotonic(), seconds, parameters)
        except (pickle.PicklingError, AttributeError, TypeError) as error:  # pickle raises all of these
            self._workers.close()
            raise NotSentError(str(error)) from None

    @property
    def pids(self) -> list[int]:
        """The id of the process, once it has begun."""
        return self._workers.pids

    @property
    def failed(self) -> bool:
        """Whether no bound will come: the process died, or could not read or bound the problem."""
        return self._answer.done() and self._answer.exception() is not None

    @property
    def found(self) -> int | None:
        """The bound, once it is there; none before, and none if there will be none."""
        return self._answer.result() if self._answer.done() and not self.failed else None

    def end(self) -> int | None:
        """Tell the process to come to an end, and return its bound, if that comes soon."""
        if not self._answer.done():
            self._workers.tell_to_stop()
            wait([self._answer], LATE)
        return self.found

    def close(self) -> None:
        """End the process."""
        self._workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bound(stop: Stop, asked: Question, began: float, seconds: float, parameters: FinalStateParameters) -> int:
    return lower_bound(asked, Deadline(seconds, stop=stop, began=began), parameters)


def _step(tier: Tier) -> int:
    """Return a number of which all values of a tier are multiples."""
    assert tier.final is not None
    step = tier.final.step
    for weighted in tier.terms:
        if isinstance(weighted.term, Move):
            step = math.gcd(step, *(weighted.weight * weighted.term.cost).tolist())
        else:
            return 1
    return step
