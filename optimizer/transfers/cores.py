"""Cores: a program that is large is solved on some of its variables, more and more of them.

Which come first is said in `stowplan.optimizer.transfers.selection`. That good solutions are found so, long before the
whole is solved, is known from packing problems (E. Balas and E. Zemel, "An algorithm for large zero-one knapsack
problems", 1980; E. Angelelli, R. Mansini and M. G. Speranza, "Kernel search: a general heuristic for the
multi-dimensional knapsack problem", 2010).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.stop import Stop
from stowplan.optimizer.transfers.solver import IntegerProgram, solve


@dataclass(frozen=True, slots=True, eq=False)
class CoreSearch:
    """What a search of cores is told.

    Parameters
    ----------
    program
        Of all variables.
    order
        ``[i]`` the variables, those first that come into a core first.
    always
        How many of them are in every core.
    begin
        ``[i]`` a solution to begin with.
    first, growth
        Variables of the first core beside those, and the factor by which the next one is larger.
    time
        Share of the time that is left for each core.
    until
        When to end, as `time.monotonic` counts.
    """

    program: IntegerProgram
    order: Ints
    always: int
    begin: Floats
    first: int
    growth: float
    time: float
    until: float


def search_cores_beside(stop: Stop, tell: Callable[[Floats], object], search: CoreSearch) -> bool:
    """Search in a worker process, as `search_cores` does; return that more may be left."""
    search_cores(search, stop.is_set, tell)
    return False


def search_cores(search: CoreSearch, over: Callable[[], bool], tell: Callable[[Floats], object]) -> None:
    """Search cores, each for most of the time that is left, until one has been all there is.

    Parameters
    ----------
    over
        Whether to end before.
    tell
        Called with solutions ``[i]``, each better than those before.
    """
    best, size = search.begin, float(search.first)
    while not over() and (now := time.monotonic()) < search.until:
        core = best > 0
        core[search.order[: search.always + int(size)]] = True
        best = _searched(search, core, best, now + search.time * (search.until - now), over, tell)
        if core.all():
            return
        size *= search.growth


def _searched(
    search: CoreSearch,
    core: Bools,
    best: Floats,
    until: float,
    over: Callable[[], bool],
    tell: Callable[[Floats], object],
) -> Floats:
    """Solve one core; return the best solution after it."""
    program = search.program
    least = float(program.cost @ best)

    def hear(word: float | Floats) -> None:
        nonlocal best, least
        if isinstance(word, float):
            return  # a bound of the core is none of the whole
        whole = np.rint(word)
        cost = float(program.cost[core] @ whole)
        if cost < least:
            best, least = np.zeros(len(core)), cost
            best[core] = whole
            tell(best)

    solve(program.restricted(core), until, over, hear, best[core])
    return best
