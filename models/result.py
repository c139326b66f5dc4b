"""What an engine hands back: a placement, and how good it is known to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from stowplan.models.problem import Placement, Tier

NOT_NEGATIVE = "no cost is negative"
"""What proves a bound of 0."""


class Status(StrEnum):
    """How much is known about a value."""

    OPTIMAL = "OPTIMAL"
    """Proven: nothing better exists, given what the tiers above reached."""
    FEASIBLE = "FEASIBLE"
    """Legal; something better may exist, but not below the bound."""


@dataclass(frozen=True, slots=True)
class TierOutcome:
    """What was reached in one tier.

    Parameters
    ----------
    value, bound
        In the tier's whole units. The bound holds given what the tiers above reached.
    bound_by
        What proved the bound.
    seconds
        Time spent on this tier.
    """

    tier: Tier
    value: int
    bound: int
    bound_by: str
    seconds: float

    @property
    def status(self) -> Status:
        """Whether the value is proven."""
        return Status.OPTIMAL if self.value <= self.bound else Status.FEASIBLE

    @property
    def gap(self) -> float:
        """How far the bound is below the value, as a fraction of the value; 0 if proven."""
        return max(0, self.value - self.bound) / max(1, abs(self.value))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a solve came to.

    Parameters
    ----------
    stages
        Seconds by stage, in the order they ran.
    notes
        What a reader has to know: fallbacks, interruptions, engines that failed.
    """

    placement: Placement
    tiers: Sequence[TierOutcome]
    seconds: float
    stages: Sequence[tuple[str, float]]
    interrupted: bool
    notes: Sequence[str]

    @property
    def status(self) -> Status:
        """`Status.OPTIMAL` only if every tier is."""
        proven = all(tier.status is Status.OPTIMAL for tier in self.tiers)
        return Status.OPTIMAL if proven else Status.FEASIBLE

    @property
    def values(self) -> tuple[int, ...]:
        """Value of each tier."""
        return tuple(tier.value for tier in self.tiers)
