"""What every lower bound is: a name, a cost class, the tiers it supports, and the computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stowplan.models.problem import Problem
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.evaluation import Evaluator


class CostClass(Enum):
    """How expensive a bound is."""

    CHEAP = "about as long as evaluating a placement"
    EXPENSIVE = "up to the deadline"


@dataclass(frozen=True, slots=True)
class BoundRequest:
    """What a bound is asked for.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold; see `stowplan.optimizer.domains.upper_bounds`.
    tier
        The tier to bound.
    reached
        Values of the earlier tiers, which must not get worse.
    value
        A value of the tier that is known to be reachable: a bound that meets it ends the search.
    proven
        Lower bounds of the earlier tiers, if they are known.
    """

    evaluator: Evaluator
    upper: NDArray[np.int32]
    tier: int
    reached: Sequence[int]
    value: int
    deadline: Deadline
    parameters: BoundParameters = field(default_factory=BoundParameters)
    cpsat: CpSatParameters = field(default_factory=CpSatParameters)
    proven: Sequence[int] = ()


class CheapBound:
    """What the bounds share that take no time: each reads a part of the tier, so that others may be better."""

    cost = CostClass.CHEAP

    def dominates(self, problem: Problem, tier: int) -> bool:
        """Return ``False``."""
        return False


class Bound(Protocol):
    """A lower bound of a tier.

    Attributes
    ----------
    name
        What results call it.
    cost
        How long it takes.
    """

    name: str
    cost: CostClass

    def supports(self, problem: Problem, tier: int) -> bool:
        """Whether the bound of a tier can be above 0."""

    def dominates(self, problem: Problem, tier: int) -> bool:
        """Whether no later bound in `stowplan.optimizer.bounds.BOUNDS` can be better, since none reads more."""

    def __call__(self, request: BoundRequest) -> int | None:
        """Return a value that no legal placement is below, or ``None`` if nothing was proven in time."""
