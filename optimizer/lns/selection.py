"""Adaptive selection of destroy operators, and of the size and work limit of sub-problems."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.optimizer.lns.parameters import LnsParameters


@dataclass
class _Record:
    size: float
    weight: float = 1.0
    tried: int = 0
    improved: int = 0


class OperatorSelection:
    """Selects destroy operators by their gain per unit of work, and adapts the sizes of their sub-problems.

    A gain counts as a share of the gains of recent successes, so that many small gains do not displace large ones while
    there are any.

    While small sub-problems often succeed, many of them are solved quickly; when they no longer do, each is granted
    more work, and sizes grow with it.

    Attributes
    ----------
    work
        Work granted to the next sub-problem.
    """

    def __init__(self, operators: Sequence[str], parameters: LnsParameters | None = None) -> None:
        self.parameters = parameters = parameters or LnsParameters()
        self.work = parameters.least_work
        self._success = (parameters.rare + parameters.frequent) / 2
        self._usual = 0.0
        self._records = {name: _Record(parameters.first_size) for name in operators}

    def next(self, rng: np.random.Generator, without: Collection[str] = ()) -> str | None:
        """Return the name of a random operator, with probabilities proportional to the weights."""
        names = [name for name in self._records if name not in without]
        if not names:
            return None
        weights = np.array([self._records[name].weight for name in names])
        weights += self.parameters.exploration * max(weights.max(), 1e-9)
        return names[int(rng.choice(len(names), p=weights / weights.sum()))]

    def size(self, name: str) -> int:
        """Return the number of variables that the next sub-problem of an operator should have."""
        return int(self._records[name].size)

    def learn(self, name: str, *, gain: int, optimal: bool, work: float, granted: float) -> None:
        """Note the result of a sub-problem.

        Parameters
        ----------
        gain
            By how much it improved the objective.
        work, granted
            Work it took, and its limit.
        """
        record, chosen = self._records[name], self.parameters
        old, new = chosen.memory, 1 - chosen.memory
        record.tried += 1
        record.improved += gain > 0
        if gain > 0:
            self._usual = old * self._usual + new * gain if self._usual else float(gain)
        share = min(1.0, gain / self._usual) if gain > 0 else 0.0
        reward = share / max(0.05, work / granted)
        record.weight = old * record.weight + new * reward
        if not optimal:
            record.size = max(chosen.smallest, record.size * chosen.shrinkage)
        elif work < chosen.quick * granted:
            record.size = min(chosen.largest, record.size * chosen.growth)
        self._success = old * self._success + new * (share >= chosen.worthwhile)
        if self._success < chosen.rare or self._success > chosen.frequent:
            factor = chosen.growth if self._success < chosen.rare else 1 / chosen.growth
            self.work = min(chosen.most_work, max(chosen.least_work, self.work * factor))
            self._success = (chosen.rare + chosen.frequent) / 2

    def summary(self) -> dict[str, tuple[int, int, int]]:
        """Return how often each operator was tried, how often it improved something, and its size."""
        return {name: (record.tried, record.improved, int(record.size)) for name, record in self._records.items()}
