"""What came of one instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stowplan.instances.suites.suite import Reference
from stowplan.models.problem import Tier
from stowplan.models.result import Status

FAILED = "FAILED"
"""The status of an instance without an answer: it is malformed, or its process died."""


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one instance.

    Parameters
    ----------
    status
        `stowplan.models.result.Status`, or `FAILED`.
    values, bounds, start
        By tier, in whole units: of the answer, proven, of the placement it starts from.
    units
        Name, unit and scale of each tier.
    measures, bound_measures
        Values and bounds in the benchmark's own words, where it has any.
    greedy
        Values of kube-scheduler's placement, where it was played through.
    seconds
        Spent on solving.
    accepted
        Whether the checker of the format accepts the solution as it was written, at the value that is claimed.
    complaints
        What it said otherwise, or why there is no answer.
    """

    instance: str
    group: str
    reference: Reference
    status: str = FAILED
    values: tuple[int, ...] = ()
    bounds: tuple[int, ...] = ()
    start: tuple[int, ...] = ()
    units: tuple[tuple[str, str, int], ...] = ()
    measures: Mapping[str, float] = field(default_factory=dict)
    bound_measures: Mapping[str, float] = field(default_factory=dict)
    greedy: tuple[int, ...] | None = None
    seconds: float = 0.0
    accepted: bool = False
    interrupted: bool = False
    complaints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def proved(self) -> bool:
        """Whether the answer is proven to be the best there is."""
        return self.accepted and self.status == Status.OPTIMAL

    @property
    def gap(self) -> float | None:
        """How far the bound of the first tier that is not proven is below its value, as a fraction of the value."""
        if not self.values:
            return None
        open_tiers = [(v, b) for v, b in zip(self.values, self.bounds, strict=True) if v > b]
        value, bound = open_tiers[0] if open_tiers else (0, 0)
        return (value - bound) / max(1, abs(value))

    @property
    def excess(self) -> float | None:
        """How far the value is above the best one known, as a fraction of that; for instances of one tier."""
        best = self.reference.best
        return None if best is None or len(self.values) != 1 else (self.values[0] - best) / max(1, abs(best))

    @property
    def score(self) -> float | None:
        """The challenge's score, ``100·(cost − best)/initial``, for instances whose initial cost is known."""
        return self.score_against(self.reference.best)

    def score_against(self, best: int | None) -> float | None:
        """Return the challenge's score against another best value."""
        if best is None or "initial" not in self.reference.others or not self.values or not self.start[0]:
            return None
        return 100 * (self.values[0] - best) / self.start[0]


def units(tiers: tuple[Tier, ...]) -> tuple[tuple[str, str, int], ...]:
    """Return name, unit and scale of each tier."""
    return tuple((tier.name, tier.unit, tier.scale) for tier in tiers)
