"""Random tiny problems made of arrays alone, for kinds that clusters seldom or never compile to."""

from __future__ import annotations

import random

import numpy as np

from models.arrays import Ints
from models.problem import (
    Capacity,
    Curves,
    Devices,
    Excess,
    Move,
    MoveBudget,
    MovePeak,
    NodeCurve,
    Origin,
    Placement,
    Prefer,
    Problem,
    Rule,
    Tier,
    Unplaced,
    Weighted,
)

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
    spare = ints(size) - start.placed(classes)
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
        Tier("repair", (Weighted(1, Excess(WHERE)),)),
        Tier("pending", (Weighted(1, Unplaced(WHERE, ints([rng.randint(1, 3) for _ in range(classes)]))),)),
        Tier("curve", (Weighted(1, _curve(rng, nodes, classes)), Weighted(1, peak))),
        Tier("rest", (Weighted(2, prefer), Weighted(1, peak), Weighted(1, move))),
    ]
    names = tuple(f"n{n}" for n in range(nodes)), tuple(f"c{c}" for c in range(classes))
    return Problem(*names, ints(size), spare, start, tuple(rules), tuple(tiers))


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
