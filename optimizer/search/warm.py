"""Compiles the kernels of search ahead of time: ``python -m optimizer.search.warm``.

Machine code is kept on disk, so that this takes half a minute once, and nothing afterwards.
"""

from __future__ import annotations

import numpy as np

from models.problem import Allow, Capacity, Origin, Placement, Problem, Tier, Unplaced, Weighted
from optimizer.control import Deadline
from optimizer.evaluate import Judge
from optimizer.search.annealing import anneal


def warm() -> None:
    """Search a problem of two pods: all that there is to compile is compiled for it."""
    here, one, two = Origin("warm"), np.ones(1, dtype=np.int64), np.ones(2, dtype=np.int64)
    capacity = Capacity(here, one, two, two)
    allow = Allow(here, 0 * one, np.ones((1, 2), dtype=np.bool_))
    tiers = (Tier("pending", (Weighted(1, Unplaced(here, one)),)),)
    problem = Problem(("a", "b"), ("c",), 2 * one, 2 * one, Placement.of(()), (capacity, allow), tiers)
    anneal(Judge(problem), problem.start, Deadline(1.0, deterministic=True))


if __name__ == "__main__":
    warm()
