"""Packings that are hard and whose optimum is known: every bin of the optimum is filled to the brim by three items.

After the triplets of Falkenauer (1996) for one dimension: in every dimension the three sizes of a bin add up to its
capacity, none is below a quarter of it, and which of the three is the large one differs from dimension to dimension.
The sizes of all items add up to the capacity of ``items / 3`` bins, so fewer do not suffice.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from stowplan.instances.suites.packing import Packing, PackingProblem, check_packing, packing_problem
from stowplan.instances.suites.suite import Instance, Reference, Verdict
from stowplan.models.errors import InputError

CAPACITY = 1000
LEAST = CAPACITY // 4
LARGE = (380, 490)
"""Sizes of the large item."""


def triplets(items: int, dimensions: int, seed: int) -> Packing:
    """Make an instance with the optimum ``items / 3``.

    Raises
    ------
    InputError
        If the items do not come in threes.
    """
    if items % 3 or items <= 0 or dimensions <= 0:
        raise InputError("items must be a positive multiple of 3, dimensions positive", obj="triplets")
    numbers = random.Random(f"{seed} {items} {dimensions}")
    bins = [[_bin(numbers) for _ in range(dimensions)] for _ in range(items // 3)]
    sizes = [[column[i] for column in columns] for columns in bins for i in range(3)]
    numbers.shuffle(sizes)
    return Packing(
        capacity=np.full(dimensions, CAPACITY, dtype=np.int64),
        size=np.array(sizes, dtype=np.int64),
        copies=np.ones(items, dtype=np.int64),
    )


def _bin(numbers: random.Random) -> list[int]:
    """Return three sizes that add up to the capacity, in random order."""
    large = numbers.randint(*LARGE)
    middle = numbers.randint(LEAST, CAPACITY - large - LEAST)
    sizes = [large, middle, CAPACITY - large - middle]
    numbers.shuffle(sizes)
    return sizes


@dataclass(frozen=True)
class TripletInstance(Instance):
    """A packing that is made when it is needed."""

    name: str
    group: str
    items: int
    dimensions: int
    seed: int

    @property
    def reference(self) -> Reference:
        """The optimum, which is known by construction."""
        optimum = self.items // 3
        return Reference(optimum, "construction", optimum, "construction")

    def state(self) -> PackingProblem:
        """State it as a problem."""
        return packing_problem(triplets(self.items, self.dimensions, self.seed))

    def check(self, file: str, data: bytes) -> Verdict:
        """Count the bins of a solution, and name what is wrong with it."""
        bins, violations = check_packing(triplets(self.items, self.dimensions, self.seed), file, data)
        return Verdict((bins,), tuple(violations))
