"""What an engine returns: a placement, and how good it is known to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from stowplan.models.problem import Placement, Tier

TRIVIAL = "trivial bound 0"
"""What proves a bound of 0: no cost is negative. As long as a bound is this one, nothing is known of the tier."""


BOUNDING = "bounds"
"""The stage of a solve that proves and does not search."""


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
    tier
        The tier.
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
        """How far the bound is below the value, as a fraction of the value as it is shown; 0 if proven."""
        return max(0, self.value - self.bound) / max(1, abs(self.value + self.tier.constant))


def bound_holds(values: Sequence[float], given: Sequence[float]) -> bool:
    """Whether a bound of a tier holds for other values of the tiers above it than it was proven for.

    A bound is proven over all placements that are as good, in every tier above, as some values ``given``. Where no
    tier above is worse than that, the placements in question are among those; where one is, nothing is known.

    Parameters
    ----------
    values, given
        Values of all tiers above, now and when the bound was proven; further tiers are disregarded.
    """
    return all(now <= then for now, then in zip(values, given, strict=False))


def revalued(tiers: Sequence[TierOutcome], values: Sequence[int]) -> tuple[TierOutcome, ...]:
    """Return what the outcome of one placement proves about another placement of the same problem.

    Each tier keeps its bound while `bound_holds`, and unless the new value refutes it.

    Parameters
    ----------
    values
        Value of each tier of the other placement.
    """
    given = tuple(tier.value for tier in tiers)
    found = []
    for t, (tier, value) in enumerate(zip(tiers, values, strict=True)):
        holds = bound_holds(values[:t], given[:t]) and tier.bound <= value
        bound, by = (tier.bound, tier.bound_by) if holds else (0, TRIVIAL)
        found.append(replace(tier, value=value, bound=bound, bound_by=by))
    return tuple(found)


def improvement_reached(before: Sequence[int], tiers: Sequence[TierOutcome], tier: int) -> float | None:
    """Return the least share of a tier's possible improvement that a placement reaches; 1 if it is proven optimal.

    The possible improvement is from the value ``before`` down to the bound. ``None`` where a tier above differs from
    before, since the bound then speaks of other placements, or where nothing can improve.

    Parameters
    ----------
    before
        Value of each tier today.
    """
    this = tiers[tier]
    changed = any(outcome.value != value for outcome, value in zip(tiers[:tier], before, strict=False))
    possible = before[tier] - this.bound
    if changed or possible <= 0 or this.value > before[tier]:
        return None
    return (before[tier] - this.value) / possible


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a solve came to.

    Parameters
    ----------
    placement
        The best placement found.
    tiers
        Value and bound of each tier.
    seconds
        Duration of the solve.
    interrupted
        Whether a stop signal ended it.
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

    def __repr__(self) -> str:
        tiers = ", ".join(f"{t.tier.name} {t.tier.shown(t.value):g}" for t in self.tiers)
        return f"<Outcome {self.status}: {tiers}>"

    @property
    def status(self) -> Status:
        """`Status.OPTIMAL` only if every tier is."""
        proven = all(tier.status is Status.OPTIMAL for tier in self.tiers)
        return Status.OPTIMAL if proven else Status.FEASIBLE

    @property
    def values(self) -> tuple[int, ...]:
        """Value of each tier."""
        return tuple(tier.value for tier in self.tiers)

    @property
    def searched(self) -> bool:
        """Whether any engine has looked for a placement."""
        return any(name != BOUNDING for name, _ in self.stages)
