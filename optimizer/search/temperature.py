"""How hot to begin: found by racing walkers that begin differently hot."""

from __future__ import annotations

from collections.abc import Sequence

from models.arrays import Ints

HOTTEST, COOLEST = 0.75, 0.25
"""Quantiles of uphill steps between which the first race is run."""

ABOVE = 4.0
"""How far above the upper of the two it begins."""

NARROWEST = 4.0
"""Ratio of the hottest and the coolest start, once the race has narrowed."""

FALL = 1000.0
"""Ratio of a walk's first and last temperature."""

COLD = 0.1
"""Temperature, in whole units of a tier, at which no uphill step is taken any more."""


class Race:
    """Where walkers begin: around the temperature from which the best of the last race came.

    What suits depends on how long a walk is and on how rugged the tier is, and neither is known beforehand: a walk that
    begins too hot has no time to cool, one that begins too cool stays where it is.

    Parameters
    ----------
    uphill
        Sorted: by how much steps from a placement at hand would worsen the tier.
    """

    def __init__(self, uphill: Ints) -> None:
        self.high = self.low = 0.0
        if len(uphill):
            last = len(uphill) - 1
            self.high = ABOVE * max(1.0, float(uphill[int(HOTTEST * last)]))
            self.low = max(1.0, float(uphill[int(COOLEST * last)]))

    def starts(self, walkers: int) -> list[tuple[float, float]]:
        """Return first and last temperature of each walker, from hot to cool."""
        if not self.high:
            return [(0.0, 0.0)] * walkers
        between = [i / max(1, walkers - 1) for i in range(walkers)] if walkers > 1 else [0.5]
        hot = [self.high * (self.low / self.high) ** x for x in between]
        return [(h, max(COLD, h / FALL)) for h in hot]

    def learn(self, starts: Sequence[tuple[float, float]], winner: int) -> None:
        """Go on around the temperature that won."""
        hot = starts[winner][0]
        if hot:
            spread = max(NARROWEST, (self.high / self.low) ** 0.5) ** 0.5
            self.high, self.low = hot * spread, max(1.0, hot / spread)
