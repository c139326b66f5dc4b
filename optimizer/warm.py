"""Compiles all kernels ahead of time: ``python -m optimizer.warm``.

Machine code is kept on disk, so that this takes a minute once, and nothing afterwards.
"""

from __future__ import annotations

import numpy as np

from models.problem import Capacity, Curves, Move, NodeCurve, Origin, Placement, Problem, Tier, Unplaced, Weighted
from optimizer.portfolio import Options, solve


def warm() -> None:
    """Solve a problem of three pods on two nodes; no engine can leave it to another, so all are compiled for it."""
    here, one, two = Origin("warm"), np.ones(2, dtype=np.int64), np.full(2, 2, dtype=np.int64)
    capacity = Capacity(here, np.array([2, 3]), np.array([4, 4]), one)
    slope = np.array([[1, 3, 5]])
    curves = Curves(np.array([[0, 2, 3]]), slope, np.array([[0, 2, 5]]))
    curve = NodeCurve(here, np.array([2, 3]), 0 * one, 0 * one, curves)
    tiers = (
        Tier("pending", (Weighted(1, Unplaced(here, one)),)),
        Tier("balance", (Weighted(1, curve), Weighted(1, Move(here, one)))),
    )
    start = Placement.of([(0, 0, 2)])
    problem = Problem(("a", "b"), ("c", "d"), two, np.array([0, 2]), start, (capacity,), tiers)
    solve(problem, Options(time_limit=5.0, deterministic=True))


if __name__ == "__main__":
    warm()
