"""The slowest possible solver: try everything, judge with `evaluate`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from models.problem import Placement, Problem
from optimizer.evaluate import Judge


def placements(problem: Problem) -> Iterator[Placement]:
    """Yield every placement: all ways to put each class's pods on nodes, or nowhere."""
    classes, nodes = problem.shape
    ways = [list(_ways(int(problem.size[c]), nodes)) for c in range(classes)]
    for choice in itertools.product(*ways):
        yield Placement.of((c, n, k) for c, counts in enumerate(choice) for n, k in enumerate(counts) if k)


def best(problem: Problem) -> tuple[int, ...]:
    """Return the smallest tier values, in lexicographic order, of all legal placements."""
    judge = Judge(problem)
    evaluations = (judge.evaluate(placement) for placement in placements(problem))
    return min(e.values for e in evaluations if e.legal)


def _ways(pods: int, nodes: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to put at most ``pods`` alike pods on ``nodes`` nodes."""
    if not nodes:
        yield ()
        return
    for here in range(pods + 1):
        for rest in _ways(pods - here, nodes - 1):
            yield (here, *rest)
