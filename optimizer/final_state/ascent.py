"""Steps of the subgradient method: along a mean of the last subgradients, with a length for each multiplier.

A multiplier moves the less the more its subgradients have added up to (J. Duchi, E. Hazan, Y. Singer, "Adaptive
subgradient methods for online learning and stochastic optimization", Journal of Machine Learning Research 12, 2011).
So prices of many pods and of few, and those of capacities, need no scale of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from stowplan.models.arrays import Floats, Ints

LEAST = 1e-12
"""A sum of squares that counts as nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Multipliers:
    """A point of the dual, or a direction.

    Parameters
    ----------
    price
        ``[c]`` what a pod of each class is worth.
    room
        ``[r, n]`` what a unit of each capacity costs.
    moves
        What a move costs beside its own cost.
    slopes
        ``[t][n]`` slopes of the tangents of curves.
    resting
        ``[c]`` what a move of each class saves of its cost of resting.
    turn
        ``[n]`` how far what is said of a node is turned; see `Part.turned`.
    """

    price: Floats
    room: Floats
    moves: float
    slopes: tuple[Floats, ...]
    resting: Floats
    turn: Floats

    def toward(self, other: Multipliers, share: float) -> Multipliers:
        """Return the point a share of the way to another."""
        near = 1.0 - share
        return self.of([near * a + share * b for a, b in zip(self.arrays, other.arrays, strict=True)])

    @property
    def arrays(self) -> list[Floats]:
        """The kinds of multipliers, each as an array."""
        return [self.price, self.room, np.array(self.moves), *self.slopes, self.resting, self.turn]

    @classmethod
    def of(cls, arrays: list[Floats]) -> Self:
        """Return the point with such arrays."""
        price, room, moves, *slopes, resting, turn = arrays
        return cls(price, room, float(moves), tuple(slopes), resting, turn)


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """The minimum of the Lagrangian at some multipliers.

    Parameters
    ----------
    value
        The dual function there, a lower bound.
    pods
        ``[c, n]``
    without
        ``[c]`` pods without a node.
    loads
        ``[t][n]`` where the tangent of each curve touches it.
    """

    value: float
    pods: Ints
    without: Floats
    loads: Sequence[Floats]


class Ascent:
    """Remembers the subgradients of a run of steps.

    Parameters
    ----------
    units
        For each kind of multiplier, in the order of `Multipliers.arrays`: what counts as large.
    rate
        Length of the first step, in units.
    memory
        Share of the last direction in the next one.
    """

    def __init__(self, units: list[Floats | float], rate: float, memory: float) -> None:
        self._lengths = [rate * unit for unit in units]
        self._memory = memory
        self._mean: list[Floats | float] = [0.0] * len(units)
        self._squares: list[Floats | float] = [0.0] * len(units)

    def step(self, at: Multipliers, subgradient: Multipliers) -> Multipliers:
        """Return the next point, which may be beyond what multipliers can be."""
        near, found = self._memory, []
        for i, (point, way) in enumerate(zip(at.arrays, subgradient.arrays, strict=True)):
            self._mean[i] = near * self._mean[i] + (1.0 - near) * way
            self._squares[i] = self._squares[i] + way**2
            found.append(point + self._lengths[i] * self._mean[i] / np.sqrt(self._squares[i] + LEAST))
        return Multipliers.of(found)
