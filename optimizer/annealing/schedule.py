"""How walks begin: found by racing walkers that begin differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.models.arrays import Ints

HOTTEST, COOLEST = 0.75, 0.25
"""Quantiles of uphill steps between which the first race is run."""

ABOVE = 8.0
"""How far above the upper of the two it begins."""

NARROWEST = 4.0
"""Ratio of the ends of a range, once the race has narrowed it."""

FALL = 1000.0
"""Ratio of a walk's first and last temperature, where it does not begin hotter than what won or go on from there."""

COLD = 0.1
"""Temperature, in whole units of a tier, at which no uphill step is taken any more."""

HELD_PENALTY = 1.0
"""What the room counts that an average moved pod holds on the node it left, in multiples of the temperature."""

MOST = 0.1
"""How much a node may be overfilled on the way, in shares of what an average node can hold."""

EXPENSIVE = 100.0
"""What it costs to overfill a node by all that an average node can hold, in multiples of the temperature."""

CLOSING, LATEST = 0.4, 0.8
"""Shares of a walk after which it gets dearer, and after which the walk goes back to where it was legal."""

MORE_EXPENSIVE = 20.0
"""Powers of ten by which it would get dearer in a whole walk."""

CALIBRATION_TURNS = 3
"""Turns that are races; a long walk follows."""

LENGTHENED = (1 / 2, 8)
"""Multiples of the temperature that won, between which the long walk after the races begins."""

REHEATED = (1 / 16, 1 / 4)
"""Shares of the temperature that won, between which walks begin that go on from a placement annealed before."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a walk begins.

    Parameters
    ----------
    initial, final
        First and last temperature, in units of the tier.
    overloads
        Whether nodes may be overfilled on the way.
    """

    initial: float
    final: float
    overloads: bool = False


def overload_penalty(spent: float) -> float:
    """Return what overfill costs, in multiples of the temperature, after a share of a walk."""
    return float(EXPENSIVE * 10 ** (MORE_EXPENSIVE * max(0.0, spent - CLOSING)))


class Calibration:
    """Where walkers begin: around the start from which the best of the last race came.

    What suits depends on how long a walk is and on how rugged the tier is, and neither is known beforehand: a walk that
    begins too hot has no time to cool, one that begins too cool stays where it is.

    After `CALIBRATION_TURNS` races comes a chain much longer than those: it may begin hotter. Chains after that go on
    from what was annealed before, and are cool enough not to forget it.

    Where little room is left, nearly no pod fits anywhere, and legal placements are islands: a walk that may overfill
    nodes a little, at a price, gets from one to another. Where there is room, that only misleads it. So the first race
    is between both, all else being equal. Where who stays legal wins, it is run again when the temperature is known
    better.

    Parameters
    ----------
    uphill
        Sorted: by how much steps from a placement at hand would worsen the tier.
    tight
        Whether room is scarce, so that it may pay to overfill nodes on the way.
    """

    def __init__(self, uphill: Ints, *, tight: bool = False) -> None:
        self._heat: _Range | None = None
        if len(uphill):
            last = len(uphill) - 1
            low = max(1.0, float(uphill[int(COOLEST * last)]))
            self._heat = _Range(low, ABOVE * max(1.0, float(uphill[int(HOTTEST * last)])))
        self._tight, self._overloads, self._guessed = tight, False, len(uphill) > 0
        self._coldest = COLD
        self.turn = 0

    def starts(self, chains: int) -> list[Schedule]:
        """Return how each walker begins, from hot to cool, or overfilling or not."""
        if self._heat is None:
            return [Schedule(0.0, 0.0)] * chains
        middle, overloads = self._heat.middle, [self._overloads] * chains
        if self.turn > CALIBRATION_TURNS:
            initial = [middle * share for share in _Range(*REHEATED).spaced(chains)]
            final = [self._coldest] * chains
        elif self.turn == CALIBRATION_TURNS:
            initial = [middle * share for share in _Range(*LENGTHENED).spaced(chains)]
            # Who begins hotter than who won has to get as cold: ended hotter, it would come to nothing.
            final = [min(h, middle) / FALL for h in initial]
        else:
            initial = [middle] * chains if self._asks_overload else self._heat.spaced(chains)
            final = [h / FALL for h in initial]
        if self._asks_overload:
            overloads = [i % 2 == 1 for i in range(chains)]
        starts = [Schedule(max(COLD, h), max(COLD, c), o) for h, c, o in zip(initial, final, overloads, strict=True)]
        return starts if self._asks_overload else starts[::-1]

    @property
    def _asks_overload(self) -> bool:
        """Whether the walkers of this turn differ in whether they overfill; in their temperatures if not."""
        return self._tight and (self.turn == 0 or (self.turn == 2 and not self._overloads))

    @property
    def afresh(self) -> bool:
        """Whether walkers should begin this race where the tier began, and not with the best placement.

        A cool walk keeps what an earlier race has gained, and a hot one forgets it. So a first race for the temperature
        from the best placement would be won by who is too cool for a long walk.
        """
        return self._guessed and self.turn < CALIBRATION_TURNS and not self._asks_overload

    def learn(self, starts: Sequence[Schedule], winner: int) -> None:
        """Take note of who won; the next turn goes on around the start of that walker."""
        if self._heat is not None and self.turn <= CALIBRATION_TURNS:
            if self._asks_overload:
                self._overloads = starts[winner].overloads
            else:
                self._heat.narrow(starts[winner].initial, 1.0)
                self._guessed = False
            self._coldest = starts[winner].final
        self.turn += 1


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
