"""How walks begin: found by racing walkers that begin differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.arrays import Ints

HOTTEST, COOLEST = 0.75, 0.25
"""Quantiles of uphill steps between which the first race is run."""

ABOVE = 8.0
"""How far above the upper of the two it begins."""

NARROWEST = 4.0
"""Ratio of the ends of a range, once the race has narrowed it."""

FALL = 1000.0
"""Ratio of a walk's first and last temperature."""

COLD = 0.1
"""Temperature, in whole units of a tier, at which no uphill step is taken any more."""

RENTS = (1.0, 10.0)
"""Rents between which the first race is run."""

LEAST_RENT = 0.1
"""Rent below which it does not matter."""

MOST = 0.1
"""How much a node may be overfilled on the way, in shares of what an average node can hold."""

DEAR = 100.0
"""What it costs to overfill a node by all that an average node can hold, in multiples of the temperature."""

CLOSING, LATEST = 0.4, 0.8
"""Shares of a walk after which it gets dearer, and after which the walk goes back to where it was legal."""

DEARER = 20.0
"""Powers of ten by which it would get dearer in a whole walk."""

REHEATED = (1 / 16, 1 / 4)
"""Shares of the temperature that won, between which walks begin that go on from a placement annealed before."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a walk begins.

    Parameters
    ----------
    hot, cold
        First and last temperature, in units of the tier.
    rent
        What the room counts that an average moved pod holds on the node it left, in multiples of the temperature.
    overfills
        Whether nodes may be overfilled on the way.
    """

    hot: float
    cold: float
    rent: float
    overfills: bool = False


def overfill_price(spent: float) -> float:
    """Return what overfill costs, in multiples of the temperature, after a share of a walk."""
    return float(DEAR * 10 ** (DEARER * max(0.0, spent - CLOSING)))


class Race:
    """Where walkers begin: around the start from which the best of the last race came.

    What suits depends on how long a walk is and on how rugged the tier is, and neither is known beforehand: a walk that
    begins too hot has no time to cool, one that begins too cool stays where it is. The same holds for the rent where
    capacities stay charged on the nodes that pods leave. A hot walk moves pods for no reason; each of them holds room,
    which the few that should move then lack. A rent that falls with the temperature keeps that room free until the end.

    Where little room is left, nearly no pod fits anywhere, and legal placements are islands: a walk that may overfill
    nodes a little, at a price, gets from one to another. Where there is room, that only misleads it. So the first race
    is between both, all else being equal. Where who stays legal wins, it is run again when the temperature is known
    better.

    Parameters
    ----------
    uphill
        Sorted: by how much steps from a placement at hand would worsen the tier.
    rents
        Whether moved pods hold room.
    tight
        Whether room is scarce, so that it may pay to overfill nodes on the way.
    """

    def __init__(self, uphill: Ints, *, rents: bool = False, tight: bool = False) -> None:
        self._heat: _Range | None = None
        if len(uphill):
            last = len(uphill) - 1
            low = max(1.0, float(uphill[int(COOLEST * last)]))
            self._heat = _Range(low, ABOVE * max(1.0, float(uphill[int(HOTTEST * last)])))
        self._rent = _Range(*RENTS) if rents else None
        self._tight, self._overfills = tight, False
        self._turn = self._narrowed = 0

    def starts(self, walkers: int) -> list[Start]:
        """Return how each walker begins, from hot to cool; or with different rents, or overfilling or not."""
        if self._heat is None:
            return [Start(0.0, 0.0, 0.0)] * walkers
        hot, rents = [self._heat.middle] * walkers, [self._usual_rent] * walkers
        overfills = [self._overfills] * walkers
        match self._subject:
            case "overfill":
                overfills = [i % 2 == 1 for i in range(walkers)]
            case "rent" if self._rent:
                rents = self._rent.spaced(walkers)
            case _:
                hot = self._heat.spaced(walkers)[::-1]
        return [Start(h, max(COLD, h / FALL), r, o) for h, r, o in zip(hot, rents, overfills, strict=True)]

    @property
    def _subject(self) -> str:
        """What the walkers of this turn differ in."""
        if self._tight and (self._turn == 0 or (self._turn == 2 and not self._overfills)):
            return "overfill"
        return "rent" if self._rent and self._narrowed % 2 else "heat"

    def reheated(self, walkers: int) -> list[Start]:
        """Return how each walker goes on from a placement that was annealed before, without forgetting it."""
        if self._heat is None:
            return [Start(0.0, 0.0, 0.0)] * walkers
        hot = self._heat.middle
        cold = max(COLD, hot / FALL)
        shares = _Range(*REHEATED).spaced(walkers)[::-1]
        return [Start(max(cold, hot * share), cold, self._usual_rent, self._overfills) for share in shares]

    def learn(self, starts: Sequence[Start], winner: int) -> None:
        """Go on around the start that won."""
        if self._heat is None:
            return
        subject = self._subject
        self._narrowed += subject != "overfill"
        if subject == "overfill":
            self._overfills = starts[winner].overfills
        elif subject == "rent" and self._rent:
            self._rent.narrow(starts[winner].rent, LEAST_RENT)
        else:
            self._heat.narrow(starts[winner].hot, 1.0)
        self._turn += 1

    @property
    def _usual_rent(self) -> float:
        return self._rent.middle if self._rent else 0.0


class _Range:
    """A range of positive numbers on a logarithmic scale."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, max(low, high)

    @property
    def middle(self) -> float:
        """The middle of the range."""
        return float((self.low * self.high) ** 0.5)

    def spaced(self, number: int) -> list[float]:
        """Return numbers from low to high, or the one in the middle."""
        if number == 1:
            return [self.middle]
        places = [i / (number - 1) for i in range(number)]
        return [self.low * (self.high / self.low) ** place for place in places]

    def narrow(self, middle: float, least: float) -> None:
        """Go on around a number, with a smaller ratio."""
        half = max(NARROWEST, (self.high / self.low) ** 0.5) ** 0.5
        self.low, self.high = max(least, middle / half), max(least, middle * half)
