"""Compiles all kernels ahead of time: ``python -m stowplan.optimizer.warm``.

Machine code is kept on disk, so that this takes some minutes once, and nothing afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import replace

import numpy as np

from stowplan.models.problem import (
    Capacity,
    ClassReadings,
    Curves,
    Devices,
    Move,
    MoveBudget,
    NodeCurve,
    Origin,
    Placement,
    Problem,
    ScoreTables,
    Tier,
    Unplaced,
    Weighted,
)
from stowplan.models.stop import Stop
from stowplan.optimizer.annealing.anneal import anneal
from stowplan.optimizer.bounds import best_bound
from stowplan.optimizer.column_generation.engine import PatternEngine
from stowplan.optimizer.compiled import kernel_cache
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.bound import FinalStateBound
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.walking import FinalStateWalk
from stowplan.optimizer.portfolio import Options, solve
from stowplan.optimizer.processes import Workers
from stowplan.optimizer.rearrangement.model_builder import suits
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.rearrangement.walking import walk
from stowplan.optimizer.reconfiguration import ReconfigurationParameters, find_way, knows

POLL = 0.1
"""Seconds between looks at whether to stop."""


def warm_ahead(stop: Stop, progress: Callable[[int], None] = lambda kept: None) -> Sequence[str]:
    """Compile what has not been compiled, in processes of their own: no solve pays for it with its time limit.

    If a stop comes first, what is under way is given up: a solve that begins with it set needs no kernel.

    Parameters
    ----------
    progress
        Called several times a second with the number of kernels that are kept by then.

    Returns
    -------
    Sequence of str
        Why kernels were not all compiled and kept, a line for each reason; empty if they were.
    """
    kept = kernel_cache.folder()
    if kept is None:
        return [f"machine code cannot be kept: {kernel_cache.WHY_NOWHERE}"]
    if kept.complete:
        return []
    problems: list[str] = []
    with Workers(len(PARTS)) as workers:
        running = {workers.submit(part) for part in PARTS}
        while running:
            if stop.is_set():
                return ["compiling was stopped"]
            done, running = wait(running, POLL)
            progress(kept.kernels)
            for future in done:
                try:
                    problems += future.result()
                except Exception as error:
                    problems.append(f"compiling failed: {error}")
    if not problems:
        kernel_cache.mark_complete()
    return problems


def _annealing_first(stop: Stop) -> Sequence[str]:
    """Compile annealing, ways and patterns; then solve problems of three pods on two nodes, for all there is.

    No engine can leave them to another, so all of them are compiled, or loaded, for these.
    """
    for problem in _problems():
        anneal(Evaluator(problem), problem.start, _shortly())
    for problem in _problems():
        if knows(problem, ReconfigurationParameters()) and problem.start.count.size:
            find_way(Evaluator(problem), Placement.of([(0, 0, 1), (0, 1, 1)]), _shortly())
    for problem in _problems():
        PatternEngine(Evaluator(problem)).close_tier(0, (), problem.start, Deadline(5.0, deterministic=True))
    for problem in _problems():
        solve(problem, Options(time_limit=5.0, deterministic=True), stop=stop)
    return kernel_cache.unsaved


def _rearranging_first(stop: Stop) -> Sequence[str]:
    """Compile the rearranging walk, then what is exact about final states, then bounds."""
    for problem in _problems():
        evaluator, last = Evaluator(problem), len(problem.tiers) - 1
        if suits(problem, last, RearrangementParameters().largest_table):
            for chosen in (RearrangementParameters(), RearrangementParameters(divided=1)):
                walk(evaluator, problem.start, last, _shortly(), parameters=chosen)
    for problem in _problems():
        evaluator, last, parameters = Evaluator(problem), len(problem.tiers) - 1, FinalStateParameters()
        upper, (*reached, value) = upper_bounds(problem), evaluator.evaluate(problem.start).values
        FinalStateWalk(problem, last, _scores(), problem.start, lambda placement: None, parameters).run(_shortly())
        FinalStateBound(problem, problem.tiers[last], (), upper, problem.start, value, parameters).solve(_shortly())
        best_bound(evaluator, upper, last, reached, value, Deadline(5.0, deterministic=True))
    return kernel_cache.unsaved


def _shortly() -> Deadline:
    return Deadline(0.1, deterministic=True)


PARTS: tuple[Callable[[Stop], Sequence[str]], ...] = (_annealing_first, _rearranging_first)
"""Work that together asks for every kernel, each part in a process of its own. What one has compiled, others load.

They begin with different kernels, so that neither compiles what the other is at.
Each returns what machine code could not be kept, and why.
"""


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
    yield replace(problem, rules=(capacity, MoveBudget(here, 1)))
    yield replace(problem, optional=two, start=Placement.of([]), rules=(tight,), tiers=tiers[:1])


def _scores() -> ScoreTables:
    """Return filters and scores of two classes on two nodes."""
    table = np.ones((2, 2), dtype=np.int64)
    return ScoreTables(0, table > 0, table, table, 9 * table, table, [], [ClassReadings()] * 2, 1, 1, [], [], [])


def main() -> int:
    """Compile all kernels, print why they were not all kept, and return the exit code."""
    problems = warm_ahead(Stop())
    for line in dict.fromkeys(problems):
        print(f"stowplan: {line}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    # By its name, under which the processes look the parts up.
    from stowplan.optimizer import warm

    sys.exit(warm.main())
