"""Compiles all kernels ahead of time: ``python -m optimizer.warm``.

Machine code is kept on disk, so that this takes a minute once, and nothing afterwards.
"""

from __future__ import annotations

import multiprocessing
from dataclasses import replace

import numpy as np

from models.problem import (
    Capacity,
    Curves,
    Devices,
    Move,
    NodeCurve,
    Origin,
    Placement,
    Problem,
    Tier,
    Unplaced,
    Weighted,
)
from optimizer.control import Stop
from optimizer.executor import unattended
from optimizer.portfolio import Options, solve
from optimizer.search.kernel import jit

POLL = 0.1
"""Seconds between looks at whether to stop."""


def warm_ahead(stop: Stop) -> None:
    """Compile what has not been compiled, in a process of its own: no solve pays for it with its time limit.

    If a stop comes first, nothing is compiled. A solve that begins with it set needs no kernel.
    """
    if not jit.is_cold():
        return
    child = multiprocessing.get_context("spawn").Process(target=warm, daemon=True)
    with unattended():
        child.start()
    while child.is_alive():
        child.join(POLL)
        if stop.is_set():
            child.terminate()
            child.join()


def warm() -> None:
    """Solve problems of three pods on two nodes; no engine can leave them to another, so all are compiled for them."""
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
    devices = Devices(here, np.array([1, 0]), np.array([0, 6]), 12, two, 0 * one, np.zeros(0, int), np.zeros(0, int))
    # Demands are nearly all there is room for, and no node can be full.
    tight = replace(capacity, demand=np.array([4000, 2002]), free=np.array([6001, 6003]))
    unplaced = replace(problem, spare=two, start=Placement.of([]), rules=(tight,), tiers=tiers[:1])
    for one_problem in (problem, replace(problem, rules=(capacity, devices)), unplaced):
        solve(one_problem, Options(time_limit=5.0, deterministic=True))
    jit.is_warm_now()


if __name__ == "__main__":
    warm()
