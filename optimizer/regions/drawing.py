"""Draws regions: each gets nodes of every kind, by the reduced costs of what is on them.

Whatever couples the nodes of a part, such as the sum of their loads, has a price, the dual of the surrogate relaxation.
At that price a node has a reduced cost. Nodes are dealt in the order of these like cards, so that each region has the
same share of what is to be gained, and the same prices as the whole: then an optimum of each is close to one of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """How the nodes of a placement are divided.

    Parameters
    ----------
    region
        ``[n]`` the region of each node.
    regions
        How many there are.
    seed
        Decides which region owns what crosses borders.
    violated
        The rules that the placement violates, as pods did at the start.
    budgets
        For each limit on moves, by its number among the rules, how many each region may make.
    """

    region: Ints
    regions: int
    seed: int
    violated: frozenset[int]
    budgets: Mapping[int, Ints]


def dealt(cost: Floats, regions: int, rng: np.random.Generator) -> Ints:
    """``[n]`` the region of each node; the numbers of nodes of two regions differ by one at most.

    Parameters
    ----------
    cost
        ``[n]`` reduced cost.
    """
    order = np.lexsort((rng.random(len(cost)), -cost))
    turn = np.empty(len(cost), dtype=np.int64)
    turn[order] = np.arange(len(cost)) // regions
    shuffled = np.lexsort((rng.random(len(cost)), turn))
    region = np.empty(len(cost), dtype=np.int64)
    region[shuffled] = np.arange(len(cost)) % regions
    return region
