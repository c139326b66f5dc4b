"""Compiles all kernels ahead of time: ``python -m stowplan.optimizer.warm``.

Machine code is kept on disk, so that this takes some minutes once, and nothing afterwards.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stowplan.models.problem import (
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
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import unattended
from stowplan.optimizer.bounds import best_bound
from stowplan.optimizer.column_generation.engine import PatternEngine
from stowplan.optimizer.compiled import jit
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options, solve

POLL = 0.1
"""Seconds between looks at whether to stop."""


def warm_ahead(stop: Stop) -> bool:
    """Compile what has not been compiled, in processes of their own: no solve pays for it with its time limit.

    Returns whether nothing failed or was stopped. If a stop comes first, what is under way is given up: a solve that
    begins with it set needs no kernel.
    """
    if not jit.is_cold():
        return True
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=part, daemon=True) for part in PARTS]
    try:
        with unattended():
            for child in children:
                child.start()
        while any(child.is_alive() for child in children) and not stop.is_set():
            for child in children:
                child.join(POLL)
    finally:
        for child in children:
            if child.is_alive():
                child.terminate()
                child.join()
    complete = not any(child.exitcode for child in children)
    if complete:
        jit.is_warm_now()
    return complete


def _everything() -> None:
    """Solve problems of three pods on two nodes; no engine can leave them to another, so all are compiled for them."""
    for problem in _problems():
        solve(problem, Options(time_limit=5.0, deterministic=True))


def _patterns_and_bounds() -> None:
    """Compile what a solve asks for last, while its walks, which take longest, are compiled beside it."""
    for problem in _problems():
        evaluator = Evaluator(problem)
        PatternEngine(evaluator).close_tier(0, (), problem.start, Deadline(5.0, deterministic=True))
        *reached, value = evaluator.evaluate(problem.start).values
        best_bound(evaluator, upper_bounds(problem), len(reached), reached, value, Deadline(5.0, deterministic=True))


PARTS = (_everything, _patterns_and_bounds)
"""Work that together asks for every kernel, each part in a process of its own. What one has compiled, others load."""


def _problems() -> Iterator[Problem]:
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
    yield problem
    yield replace(problem, rules=(capacity, devices))
    yield replace(problem, optional=two, start=Placement.of([]), rules=(tight,), tiers=tiers[:1])


if __name__ == "__main__":
    # By its name, under which the processes look the parts up.
    from stowplan.optimizer import warm

    sys.exit(not warm.warm_ahead(Stop()))
