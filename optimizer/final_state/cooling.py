"""How hot a search on the exact cost of a final state is, and when."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stowplan.optimizer.final_state.parameters import Temperatures


@dataclass(frozen=True, slots=True)
class Cooling:
    """Temperatures, by the share of the time that is spent.

    Where there is time for many trials of each pair of a class and a node, it pays to begin hot; then the search cools
    down several times, each time from the best placement. Every other round begins cool, since what a hot one finds, or
    ruins, is unknown.

    Parameters
    ----------
    begun
        The share of the time at which the first round begins.
    hottest
        The temperature at which each round begins.
    coolest
        That at which it ends, as a multiple of the first.
    """

    begun: float
    hottest: tuple[float, ...]
    coolest: float

    @classmethod
    def of(cls, chosen: Temperatures, change: float, spent: float, trials: float) -> Cooling:
        """Return a schedule for what is left of the time.

        Parameters
        ----------
        change
            What moves change in the middle.
        spent
            The share of the time that is spent.
        trials
            How many trials of a pair of a class and a node there is time for.
        """
        hot = min(chosen.hottest, chosen.least_hot + chosen.heating * trials) * change
        if trials < chosen.trials_of_rounds:
            return cls(spent, (hot,), chosen.coolest)
        again = int(trials / chosen.trials_of_more)
        cool = hot * chosen.cool
        return cls(spent, (hot, cool, *(hot * chosen.reheated, cool) * again), chosen.coolest)

    def round(self, spent: float) -> int:
        """Return the number of the round, from 0 on."""
        return min(len(self.hottest) - 1, int(self._at(spent)))

    def temperature(self, spent: float) -> float:
        """Return the temperature."""
        number = self.round(spent)
        return self.hottest[number] * math.pow(self.coolest, min(1.0, self._at(spent) - number))

    def _at(self, spent: float) -> float:
        """Return how many rounds are over."""
        return len(self.hottest) * (spent - self.begun) / max(1e-9, 1.0 - self.begun)
