"""The slowest possible solver: try everything, judge with `evaluate`."""

from __future__ import annotations

import hashlib
import itertools
import pickle
from collections.abc import Iterator

from stowplan.models.problem import Placement, Problem
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.subproblem.scope import Free

_ENUMERATED: dict[bytes, frozenset[tuple[int, ...]]] = {}
"""What was found for problems of these bytes: several tests ask about the same ones."""


def placements(problem: Problem) -> Iterator[Placement]:
    """Yield every placement: all ways to put each class's pods on nodes, or nowhere."""
    classes, nodes = problem.shape
    ways = [list(_ways(int(problem.size[c]), nodes)) for c in range(classes)]
    for choice in itertools.product(*ways):
        yield Placement.of((c, n, k) for c, counts in enumerate(choice) for n, k in enumerate(counts) if k)


def best(problem: Problem) -> tuple[int, ...]:
    """Return the smallest tier values, in lexicographic order, of all legal placements."""
    return min(legal_values(problem))


def legal_values(problem: Problem) -> frozenset[tuple[int, ...]]:
    """Return the tier values of all legal placements; what is all the same, byte for byte, is enumerated once."""
    key = hashlib.sha256(pickle.dumps(problem)).digest()
    if key not in _ENUMERATED:
        evaluator = Evaluator(problem)
        evaluations = (evaluator.evaluate(placement) for placement in placements(problem))
        _ENUMERATED[key] = frozenset(e.values for e in evaluations if e.legal)
    return _ENUMERATED[key]


def _ways(pods: int, nodes: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to put at most ``pods`` alike pods on ``nodes`` nodes."""
    if not nodes:
        yield ()
        return
    for here in range(pods + 1):
        for rest in _ways(pods - here, nodes - 1):
            yield (here, *rest)


def agreeing(problem: Problem, incumbent: Placement, free: Free) -> Iterator[Placement]:
    """Yield every placement that differs from another one in its free part only."""
    nodes, waiting = free.nodes.tolist(), set(free.waiting.tolist())
    chosen = set(free.classes.tolist())
    frozen, here = [], dict.fromkeys(chosen, 0)
    for c, n, k in incumbent.entries():
        if c in chosen and n in nodes:
            here[c] += k
        else:
            frozen.append((c, n, k))
    missing = problem.size - incumbent.placed(len(problem.classes))
    ways = []
    for c, pods in here.items():
        if c in waiting:
            ways.append([(c, way) for way in _ways(pods + int(missing[c]), len(nodes))])
        else:
            ways.append([(c, way) for way in _ways(pods, len(nodes)) if sum(way) == pods])
    for choice in itertools.product(*ways):
        moved = [(c, n, k) for c, way in choice for n, k in zip(nodes, way, strict=True) if k]
        yield Placement.of([*frozen, *moved])
