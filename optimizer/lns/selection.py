"""Which kind of neighbourhood comes next, and how large: learned from what came of the last ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

FIRST = 100
"""Variables that a neighbourhood of each kind begins with."""

LEAST, MOST = 40, 4000
"""Variables between which sizes are adapted."""

GROWTH, SHRINKAGE = 1.25, 0.8
"""Factors of the size after one that was solved quickly, and after one that was cut off."""

QUICK = 0.4
"""Part of the work granted up to which a neighbourhood was solved quickly."""

MEMORY = 0.9
"""How much of a kind's standing is what it was before the last attempt."""

CURIOSITY = 0.05
"""Standing that every kind has in any case, relative to the best one."""


LEAST_WORK, MOST_WORK = 0.02, 0.5
"""CP-SAT's deterministic time granted to a neighbourhood; a unit is about six seconds."""

RARE, FREQUENT = 0.15, 0.6
"""Share of neighbourhoods with success below which more work is granted to each, and above which less."""

WORTHWHILE = 0.1
"""Share of a usual gain from which on a neighbourhood had success."""


@dataclass
class _Record:
    size: float = FIRST
    standing: float = 1.0
    tried: int = 0
    improved: int = 0


class OperatorSelection:
    """Chooses kinds by what they gain for the work they take, and adapts their sizes.

    A gain counts as a share of what successes gained lately, so that many small ones do not stand in the way of large
    ones while there are such.

    While small neighbourhoods often bring something, many of them are solved quickly; when they no longer do, each is
    granted more work, and sizes grow with it.

    Attributes
    ----------
    work
        Deterministic time granted to the next neighbourhood.
    """

    def __init__(self, kinds: Sequence[str]) -> None:
        self.work = LEAST_WORK
        self._success = (RARE + FREQUENT) / 2
        self._usual = 0.0
        self._kinds = {name: _Record() for name in kinds}

    def next(self, rng: np.random.Generator, without: Collection[str] = ()) -> str | None:
        """Return the name of a kind, by chance, in proportion to its standing."""
        names = [name for name in self._kinds if name not in without]
        if not names:
            return None
        standing = np.array([self._kinds[name].standing for name in names])
        standing += CURIOSITY * max(standing.max(), 1e-9)
        return names[int(rng.choice(len(names), p=standing / standing.sum()))]

    def size(self, name: str) -> int:
        """Return the number of variables that a neighbourhood of a kind should have."""
        return int(self._kinds[name].size)

    def learn(self, name: str, *, gain: int, optimal: bool, work: float, granted: float) -> None:
        """Take note of what came of a neighbourhood.

        Parameters
        ----------
        gain
            By how much it made the objective better.
        work, granted
            Deterministic time it took and could have taken.
        """
        kind = self._kinds[name]
        kind.tried += 1
        kind.improved += gain > 0
        if gain > 0:
            self._usual = MEMORY * self._usual + (1 - MEMORY) * gain if self._usual else float(gain)
        share = min(1.0, gain / self._usual) if gain > 0 else 0.0
        reward = share / max(0.05, work / granted)
        kind.standing = MEMORY * kind.standing + (1 - MEMORY) * reward
        if not optimal:
            kind.size = max(LEAST, kind.size * SHRINKAGE)
        elif work < QUICK * granted:
            kind.size = min(MOST, kind.size * GROWTH)
        self._success = MEMORY * self._success + (1 - MEMORY) * (share >= WORTHWHILE)
        if self._success < RARE or self._success > FREQUENT:
            factor = GROWTH if self._success < RARE else 1 / GROWTH
            self.work = min(MOST_WORK, max(LEAST_WORK, self.work * factor))
            self._success = (RARE + FREQUENT) / 2

    def summary(self) -> dict[str, tuple[int, int, int]]:
        """Return how often each kind was tried, how often it improved something, and its size."""
        return {name: (kind.tried, kind.improved, int(kind.size)) for name, kind in self._kinds.items()}
