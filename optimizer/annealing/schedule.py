"""Temperature schedules of chains, calibrated by racing chains that begin at different temperatures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.models.arrays import Ints
from stowplan.optimizer.annealing.parameters import AnnealingParameters


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of one chain.

    Parameters
    ----------
    initial, final
        First and last temperature, in units of the tier.
    overloads
        Whether nodes may be overloaded on the way, for a penalty.
    """

    initial: float
    final: float
    overloads: bool = False


def overload_penalty(spent: float, parameters: AnnealingParameters) -> float:
    """Return the penalty of overload, in multiples of the temperature, after a share of a chain's time."""
    late = max(0.0, spent - parameters.closing)
    return float(parameters.overload_penalty * 10 ** (parameters.closing_decades * late))


class Calibration:
    """Calibrates initial temperatures: each round begins around the schedule that won the last one.

    The right temperature depends on the length of a chain and on the ruggedness of the tier, and neither is known
    beforehand: a chain that begins too hot has no time to cool, one that begins too cool stays where it is.

    After some calibration rounds comes a much longer chain, which may begin hotter. Later chains continue an annealed
    placement, and are cool enough not to destroy it.

    Where capacities are nearly used up, almost no pod fits anywhere, and feasible placements are islands: a chain that
    may overload nodes a little, for a penalty, gets from one to another. Where there is room, overload only misleads
    it. So the first round compares both, all else being equal. Where staying feasible wins, the comparison is repeated
    when the temperature is known better.

    Parameters
    ----------
    uphill
        By how much uphill proposals from the incumbent would worsen the tier, sorted.
    tight
        Whether a capacity is nearly used up, so that overload on the way may pay.
    """

    def __init__(self, uphill: Ints, *, tight: bool = False, parameters: AnnealingParameters | None = None) -> None:
        self.parameters = parameters = parameters or AnnealingParameters()
        self._temperatures: _Range | None = None
        if len(uphill):
            last = len(uphill) - 1
            low = max(1.0, float(uphill[int(parameters.cool_quantile * last)]))
            self._temperatures = _Range(
                low, parameters.above * max(1.0, float(uphill[int(parameters.hot_quantile * last)]))
            )
        self._tight, self._overloads, self._guessed = tight, False, len(uphill) > 0
        self._coldest = parameters.frozen
        self.turn = 0

    def starts(self, chains: int) -> list[Schedule]:
        """Return the schedule of each chain, from hot to cool, or with and without overload."""
        chosen = self.parameters
        if self._temperatures is None:
            return [Schedule(0.0, 0.0)] * chains
        middle, overloads = self._temperatures.middle, [self._overloads] * chains
        if self.turn > chosen.calibration_rounds:
            initial = [middle * share for share in _Range(*chosen.reheated).spaced(chains)]
            final = [self._coldest] * chains
        elif self.turn == chosen.calibration_rounds:
            initial = [middle * share for share in _Range(*chosen.lengthened).spaced(chains)]
            # A chain that begins hotter than the winner has to end as cold: one that ends hotter gains nothing.
            final = [min(h, middle) / chosen.cooling for h in initial]
        else:
            initial = [middle] * chains if self._asks_overload else self._temperatures.spaced(chains)
            final = [h / chosen.cooling for h in initial]
        if self._asks_overload:
            overloads = [i % 2 == 1 for i in range(chains)]
        starts = [
            Schedule(max(chosen.frozen, h), max(chosen.frozen, c), o)
            for h, c, o in zip(initial, final, overloads, strict=True)
        ]
        return starts if self._asks_overload else starts[::-1]

    @property
    def _asks_overload(self) -> bool:
        """Whether the chains of this round differ in overload; in their temperatures if not."""
        return self._tight and (self.turn == 0 or (self.turn == 2 and not self._overloads))

    @property
    def afresh(self) -> bool:
        """Whether chains should begin this round where the tier began, and not with the incumbent.

        A cool chain keeps what an earlier round has gained, and a hot one destroys it. So a first calibration from the
        incumbent would be won by a temperature that is too cool for a long chain.
        """
        return self._guessed and self.turn < self.parameters.calibration_rounds and not self._asks_overload

    def learn(self, starts: Sequence[Schedule], winner: int) -> None:
        """Note which chain won; the next round begins around its schedule."""
        if self._temperatures is not None and self.turn <= self.parameters.calibration_rounds:
            if self._asks_overload:
                self._overloads = starts[winner].overloads
            else:
                self._temperatures.narrow(starts[winner].initial, 1.0, self.parameters.narrowest)
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

    def narrow(self, middle: float, least: float, narrowest: float) -> None:
        """Continue around a number, with a smaller ratio of the ends."""
        half = max(narrowest, (self.high / self.low) ** 0.5) ** 0.5
        self.low, self.high = max(least, middle / half), max(least, middle * half)
