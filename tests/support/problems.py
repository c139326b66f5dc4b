"""Random tiny problems made of arrays alone, for kinds that clusters seldom or never compile to."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    AtMost,
    Attract,
    Capacity,
    Curves,
    Devices,
    Held,
    Move,
    MoveBudget,
    MovePeak,
    NodeCurve,
    Occupy,
    Origin,
    Placement,
    Prefer,
    Problem,
    Repel,
    Rule,
    Spread,
    Tier,
    Topology,
    Unplaced,
    Violation,
    Weighted,
)
from stowplan.optimizer.evaluate import Evaluator

WHERE = Origin("test")
SIZE = 12


def ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def random_problem(seed: int, *, broken: bool = False) -> Problem:
    """Build a random tiny problem of devices, curves of linear forms, and costs of moving whole groups.

    Parameters
    ----------
    broken
        Pods stand anywhere, whatever the rules say; otherwise all wait.
    """
    rng = random.Random(seed)
    nodes, classes = rng.randint(2, 3), rng.randint(2, 3)
    size = [rng.randint(1, 3 if classes < 3 else 2) for _ in range(classes)]
    start = Placement.of(
        (c, rng.randrange(nodes), 1) for c in range(classes) for _ in range(size[c]) if broken and rng.random() < 0.8
    )
    optional = ints(size) - start.placed(classes)
    rules: list[Rule] = [_devices(rng, nodes, classes)]
    if rng.random() < 0.4:
        free = ints([rng.randint(1, 5) for _ in range(nodes)])
        demand = ints([rng.randint(0, 2) for _ in range(classes)])
        rules.append(Capacity(WHERE, demand, free, np.full(nodes, 10)))
    if rng.random() < 0.3:
        rules.append(MoveBudget(WHERE, rng.randint(0, 3)))
    peak = MovePeak(WHERE, rng.randint(1, 9), ints([rng.randint(-1, 1) for _ in range(classes)]))
    move = Move(WHERE, ints([rng.randint(0, 3) for _ in range(classes)]))
    table = ints([rng.randint(0, 9) for _ in range(classes * nodes)]).reshape(classes, nodes)
    prefer = Prefer(WHERE, np.arange(classes), table)
    tiers = [
        Tier("repair", (Weighted(1, Violation(WHERE)),)),
        Tier("pending", (Weighted(1, Unplaced(WHERE, ints([rng.randint(1, 3) for _ in range(classes)]))),)),
        Tier("curve", (Weighted(1, _curve(rng, nodes, classes)), Weighted(1, peak))),
        Tier("rest", (Weighted(2, prefer), Weighted(1, peak), Weighted(1, move))),
    ]
    names = tuple(f"n{n}" for n in range(nodes)), tuple(f"c{c}" for c in range(classes))
    return Problem(*names, ints(size), optional, start, tuple(rules), tuple(tiers))


def _devices(rng: random.Random, nodes: int, classes: int) -> Devices:
    sizes = rng.choice([[3, 6, 12], [4, 5, 7, 8], list(range(1, SIZE + 1))])
    demands = [
        rng.choice([(0, 0), (1, 0), (2, 0), (1, rng.choice(sizes)), *[(0, rng.choice(sizes))] * 6])
        for _ in range(classes)
    ]
    held = [(n, rng.choice(sizes)) for n in range(nodes) for _ in range(rng.choice([0, 0, 0, 1, 2]))]
    return Devices(
        WHERE,
        ints([whole for whole, _ in demands]),
        ints([part for _, part in demands]),
        SIZE,
        ints([rng.randint(0, 3) for _ in range(nodes)]),
        ints([rng.choice([0, 0, 0, 1]) for _ in range(nodes)]),
        ints([n for n, _ in held]),
        ints([part for _, part in held]),
    )


def _curve(rng: random.Random, nodes: int, classes: int) -> NodeCurve:
    """Return a curve of a load that may be negative; what it says is never negative."""
    corners = sorted(rng.sample(range(-6, 7), 3))
    slopes = sorted(rng.sample(range(-4, 5), 3)) if rng.random() < 0.5 else [rng.randint(-4, 4) for _ in range(3)]
    values = [0]
    for j in range(2):
        values.append(values[-1] + slopes[j] * (corners[j + 1] - corners[j]))
    curves = Curves(ints(corners)[None], ints(slopes)[None], ints(values)[None])
    demand = ints([rng.randint(-3, 3) for _ in range(classes)])
    held = ints([rng.randint(-4, 4) for _ in range(nodes)])
    # Loads stay between -31 and 31; the lowest value there is lifted to 0.
    reach = np.arange(-31, 32)
    values = ints(values) - int(curves.at(np.zeros(len(reach), dtype=np.int64), reach).min())
    which = ints([rng.choice([0, 0, 0, -1]) for _ in range(nodes)])
    return NodeCurve(WHERE, demand, held, which, Curves(curves.start, curves.slope, values[None]))


def random_affinity(seed: int, *, broken: bool = False) -> Problem:
    """Build a random tiny problem of rules about affinity, capacities held on the source, and limits of moves.

    Parameters
    ----------
    broken
        Pods stand anywhere, whatever the rules say; otherwise as many as the rules let in.
    """
    rng = random.Random(seed)
    nodes, classes = rng.randint(3, 4), rng.randint(2, 3)
    size = [rng.randint(1, 3 if classes < 3 else 2) for _ in range(classes)]
    zones = Topology("zone", ints([rng.choice([0, 0, 1, 2, -1]) for _ in range(nodes)]), ("a", "b", "c"))
    hosts = Topology("host", np.arange(nodes), tuple(f"n{n}" for n in range(nodes)))
    rules = [_affinity(rng, nodes, classes, rng.choice([zones, hosts])) for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.4:
        demand = ints([rng.randint(0, 2) for _ in range(classes)])
        free = ints([rng.randint(1, 5) for _ in range(nodes)])
        rules.append(Capacity(WHERE, demand, free, np.full(nodes, 10), held_on_source=rng.random() < 0.7))
    if rng.random() < 0.3:
        rules.append(MoveBudget(WHERE, rng.randint(1, 4)))
    start = _anywhere(rng, size, nodes)
    table = ints([rng.choice([0, 1, 5, 9]) for _ in range(classes * nodes)]).reshape(classes, nodes)
    move = MovePeak(WHERE, rng.randint(1, 9), ints([rng.randint(-1, 1) for _ in range(classes)]))
    tiers = (
        Tier("repair", (Weighted(1, Violation(WHERE)),)),
        Tier("pending", (Weighted(1, Unplaced(WHERE, ints([1] * classes))),)),
        Tier("rest", (Weighted(1, Prefer(WHERE, np.arange(classes), table)), Weighted(1, move))),
    )
    names = tuple(f"n{n}" for n in range(nodes)), tuple(f"c{c}" for c in range(classes))
    whole = Problem(*names, ints(size), ints(size), Placement.of([]), tuple(rules), tiers)
    if not broken:
        legal = (
            placement for _ in range(30) if Evaluator(whole).evaluate(placement := _anywhere(rng, size, nodes)).legal
        )
        start = next(legal, Placement.of([]))
    return replace(whole, start=start, optional=ints(size) - start.placed(classes))


def random_start(problem: Problem, rng: random.Random) -> Placement:
    """Move some of the pods that stand anywhere, and place some of those that wait."""
    often = rng.choice([0.2, 0.5, 1.0])
    pods = [(c, n) for c, n, k in problem.start.entries() for _ in range(k)]
    spread = [(c, rng.randrange(len(problem.nodes)) if rng.random() < often else n, 1) for c, n in pods]
    waiting = problem.size - problem.start.placed(len(problem.classes))
    for c, number in enumerate(waiting.tolist()):
        spread += [(c, rng.randrange(len(problem.nodes)), 1) for _ in range(number) if rng.random() < 0.7]
    return Placement.of(spread)


def _anywhere(rng: random.Random, size: list[int], nodes: int) -> Placement:
    return Placement.of(
        (c, rng.randrange(nodes), 1) for c, pods in enumerate(size) for _ in range(pods) if rng.random() < 0.9
    )


def _affinity(rng: random.Random, nodes: int, classes: int, topology: Topology) -> Rule:
    def some() -> Ints:
        return ints(sorted(rng.sample(range(classes), rng.randint(1, classes))))

    def held(size: int) -> Ints:
        return ints([rng.choice([0, 0, 0, 0, 1]) for _ in range(size)])

    kind = rng.choice(["spread", "spread", "attract", "attract", "repel", "at most", "occupy"])
    outside = Held(held(nodes), held(nodes), held(nodes)) if rng.random() < 0.3 else Held(*[np.zeros(nodes, int)] * 3)
    if kind == "spread":
        floor = rng.choice([1, 1, 1, 4])
        both = some()
        counted = both if rng.random() < 0.5 else some()
        return Spread(WHERE, both, counted, topology, 1, floor, held(topology.size), held(topology.size))
    if kind == "attract":
        return Attract(WHERE, some(), some(), (topology,), outside)
    if kind == "repel":
        return Repel(WHERE, some(), some(), topology, outside)
    if kind == "at most":
        return AtMost(WHERE, some(), topology, rng.randint(1, 2), held(topology.size))
    return Occupy(WHERE, some(), topology, 2, held(topology.size))
