"""Random tiny problems made of arrays alone, for kinds that clusters seldom or never compile to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

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
from tests.support.choices import Choices, drawn

WHERE = Origin("test")

CHOOSE = Curves(
    np.array([[0, 1, 2, 3, 4, 5, 6]]), np.array([[0, 1, 2, 3, 4, 5, 6]]), np.array([[0, 0, 1, 3, 6, 10, 15]])
)
"""Pairs of pods in one domain, up to 7 pods."""
SIZE = 12
"""What a device has to share."""


def ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def random_problem(choices: Choices, *, broken: bool | None = False) -> Problem:
    """Build a random tiny problem of devices, curves of linear forms, and costs of moving whole groups.

    Parameters
    ----------
    broken
        Pods stand anywhere, whatever the rules say; otherwise all wait. None leaves it to chance.
    """
    nodes, classes, size = _sizes(choices, 2, 3)
    broken = choices.chance(0.5) if broken is None else broken
    start = _anywhere(choices, size, nodes, 0.8) if broken else Placement.of([])
    rules: list[Rule] = [_devices(choices, nodes, classes)]
    if choices.chance(0.4):
        free = choices.array(nodes, 1, 5)
        rules.append(Capacity(WHERE, choices.array(classes, 0, 2), free, np.full(nodes, 10)))
    if choices.chance(0.3):
        rules.append(MoveBudget(WHERE, choices.integer(0, 3)))
    peak = MovePeak(WHERE, choices.integer(1, 9), choices.array(classes, -1, 1))
    move = Move(WHERE, choices.array(classes, 0, 3))
    prefer = Prefer(WHERE, np.arange(classes), choices.array((classes, nodes), 0, 9))
    tiers = (
        Tier("repair", (Weighted(1, Violation(WHERE)),)),
        Tier("pending", (Weighted(1, Unplaced(WHERE, choices.array(classes, 1, 3))),)),
        Tier("curve", (Weighted(1, _curve(choices, nodes, classes)), Weighted(1, peak))),
        Tier("rest", (Weighted(2, prefer), Weighted(1, peak), Weighted(1, move))),
    )
    return Problem(*_names(nodes, classes), ints(size), ints(size) - start.placed(classes), start, tuple(rules), tiers)


def _sizes(choices: Choices, fewest: int, most: int) -> tuple[int, int, list[int]]:
    """Return numbers of nodes and classes, and of the pods of each class: few enough for enumeration."""
    nodes, classes = choices.integer(fewest, most), choices.integer(2, 3)
    most = [3, 3] if classes < 3 else [2, 2, 2 if nodes < 4 else 1]
    return nodes, classes, [choices.integer(1, pods) for pods in most]


def _names(nodes: int, classes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(f"n{n}" for n in range(nodes)), tuple(f"c{c}" for c in range(classes))


def _devices(choices: Choices, nodes: int, classes: int) -> Devices:
    sizes = choices.one([[3, 6, 12], [4, 5, 7, 8], list(range(1, SIZE + 1))])
    demands = [
        choices.one([(0, 0), (1, 0), (2, 0), (1, choices.one(sizes)), *[(0, choices.one(sizes))] * 6])
        for _ in range(classes)
    ]
    held = [(n, choices.one(sizes)) for n in range(nodes) for _ in range(choices.one([0, 0, 0, 1, 2]))]
    return Devices(
        WHERE,
        ints([whole for whole, _ in demands]),
        ints([part for _, part in demands]),
        SIZE,
        choices.array(nodes, 0, 3),
        ints([choices.one([0, 0, 0, 1]) for _ in range(nodes)]),
        ints([n for n, _ in held]),
        ints([part for _, part in held]),
    )


def _curve(choices: Choices, nodes: int, classes: int) -> NodeCurve:
    """Return a curve of a load that may be negative; what it says is never negative."""
    corners = sorted(choices.some(range(-6, 7), 3))
    slopes = choices.array(3, -4, 4).tolist()
    if choices.chance(0.5):
        slopes = sorted(choices.some(range(-4, 5), 3))
    demand, held = choices.array(classes, -3, 3), choices.array(nodes, -4, 4)
    which = ints([choices.one([0, 0, 0, -1]) for _ in range(nodes)])
    # Loads stay between -31 and 31.
    return NodeCurve(WHERE, demand, held, which, lifted(corners, slopes, np.arange(-31, 32)))


def lifted(corners: list[int], slopes: list[int], reach: Ints) -> Curves:
    """Return a curve with these slopes from these corners on, whose lowest value at the loads of ``reach`` is 0."""
    values = [0]
    for j in range(len(corners) - 1):
        values.append(values[-1] + slopes[j] * (corners[j + 1] - corners[j]))
    curves = Curves(ints(corners)[None], ints(slopes)[None], ints(values)[None])
    return replace(curves, value=curves.value - curves.first(reach).min())


def random_affinity(choices: Choices, *, broken: bool | None = False) -> Problem:
    """Build a random tiny problem of rules about affinity, capacities held on the source, and limits of moves.

    Parameters
    ----------
    broken
        Pods stand anywhere, whatever the rules say; otherwise as many as the rules let in. None leaves it to chance.
    """
    nodes, classes, size = _sizes(choices, 3, 4)
    broken = choices.chance(0.5) if broken is None else broken
    zones = Topology("zone", ints([choices.one([0, 0, 1, 2, -1]) for _ in range(nodes)]), ("a", "b", "c"))
    hosts = Topology("host", np.arange(nodes), tuple(f"n{n}" for n in range(nodes)))
    rules = [_affinity(choices, nodes, classes, choices.one([hosts, zones])) for _ in range(choices.one([1, 1, 2]))]
    if choices.chance(0.4):
        demand, free = choices.array(classes, 0, 2), choices.array(nodes, 1, 5)
        rules.append(Capacity(WHERE, demand, free, np.full(nodes, 10), held_on_source=choices.chance(0.7)))
    if choices.chance(0.3):
        rules.append(MoveBudget(WHERE, choices.integer(1, 4)))
    table = ints([choices.one([0, 1, 5, 9]) for _ in range(classes * nodes)]).reshape(classes, nodes)
    move = MovePeak(WHERE, choices.integer(1, 9), choices.array(classes, -1, 1))
    tiers = (
        Tier("repair", (Weighted(1, Violation(WHERE)),)),
        Tier("pending", (Weighted(1, Unplaced(WHERE, ints([1] * classes))),)),
        Tier("rest", (Weighted(1, Prefer(WHERE, np.arange(classes), table)), Weighted(1, move))),
    )
    whole = Problem(*_names(nodes, classes), ints(size), ints(size), Placement.of([]), tuple(rules), tiers)
    start = _anywhere(choices, size, nodes, 0.9)
    if not broken:
        start = let_in(whole, start)
    return replace(whole, start=start, optional=ints(size) - start.placed(classes))


def _affinity(choices: Choices, nodes: int, classes: int, topology: Topology) -> Rule:
    def some() -> Ints:
        return ints(sorted(choices.some(range(classes), choices.integer(1, classes))))

    def held(size: int) -> Ints:
        return ints([choices.one([0, 0, 0, 0, 1]) for _ in range(size)])

    kind = choices.one(["at most", "occupy", "repel", "attract", "attract", "spread", "spread"])
    outside = Held(held(nodes), held(nodes), held(nodes)) if choices.chance(0.3) else Held(*[np.zeros(nodes, int)] * 3)
    if kind == "spread":
        floor = choices.one([1, 1, 1, 4])
        both = some()
        counted = both if choices.chance(0.5) else some()
        return Spread(WHERE, both, counted, topology, 1, floor, held(topology.size), held(topology.size))
    if kind == "attract":
        return Attract(WHERE, some(), some(), (topology,), outside)
    if kind == "repel":
        return Repel(WHERE, some(), some(), topology, outside)
    if kind == "at most":
        return AtMost(WHERE, some(), topology, choices.integer(1, 2), held(topology.size))
    return Occupy(WHERE, some(), topology, 2, held(topology.size))


def random_room(choices: Choices, *, broken: bool | None = None) -> Problem:
    """Build a random problem that has a capacity at least, which may be held on the source."""
    make = random_affinity if choices.chance(0.5) else random_problem
    problem = make(choices, broken=broken)
    if not any(isinstance(rule, Capacity) for rule in problem.rules):
        classes, nodes = problem.shape
        demand, free = choices.array(classes, 0, 2), choices.array(nodes, 1, 5)
        room = Capacity(WHERE, demand, free, np.full(nodes, 10), held_on_source=choices.chance(0.5))
        problem = replace(problem, rules=(*problem.rules, room))
    return problem


# -- placements -------------------------------------------------------------------------------------------------


def _anywhere(choices: Choices, size: list[int], nodes: int, share: float) -> Placement:
    """Place such a share of the pods on any nodes."""
    return Placement.of(
        (c, choices.integer(0, nodes - 1), 1)
        for c, pods in enumerate(size)
        for _ in range(pods)
        if choices.chance(share)
    )


def let_in(problem: Problem, wanted: Placement) -> Placement:
    """Return a legal part of a placement: pods come one by one while the rules let them in, those refused once more."""
    evaluator = Evaluator(problem)
    pods = [(c, n, 1) for c, n, k in wanted.entries() for _ in range(k)]
    inside: list[tuple[int, int, int]] = []
    for _ in range(2):
        refused = []
        for pod in pods:
            if evaluator.evaluate(Placement.of([*inside, pod])).legal:
                inside.append(pod)
            else:
                refused.append(pod)
        pods = refused
    return Placement.of(inside)


def random_move(choices: Choices, problem: Problem) -> Placement:
    """Move some of the pods that stand anywhere, and place some of those that wait."""
    often, nodes = choices.one([0.2, 0.5, 1.0]), len(problem.nodes)
    pods = [(c, n) for c, n, k in problem.start.entries() for _ in range(k)]
    moved = [(c, choices.integer(0, nodes - 1) if choices.chance(often) else n, 1) for c, n in pods]
    waiting = problem.size - problem.start.placed(len(problem.classes))
    for c, number in enumerate(waiting.tolist()):
        moved += [(c, choices.integer(0, nodes - 1), 1) for _ in range(number) if choices.chance(0.7)]
    return Placement.of(moved)


def random_legal_move(choices: Choices, problem: Problem) -> Placement:
    """Make those moves of a `random_move` that leave the placement legal, from the start on, one by one."""
    evaluator = Evaluator(problem)
    target = random_move(choices, problem)
    reached, wanted = problem.start.table(*problem.shape), target.table(*problem.shape)
    for c, n in choices.any_order(np.argwhere(wanted > reached).tolist()):
        for source in [*np.flatnonzero(reached[c] > wanted[c]).tolist(), -1]:
            tried = reached.copy()
            tried[c, n] += 1
            if source >= 0:
                tried[c, source] -= 1
            placed = Placement.from_table(tried)
            if (placed.placed(len(tried)) <= problem.size).all() and evaluator.evaluate(placed).legal:
                reached = tried
                break
    return Placement.from_table(reached)


# -- strategies -------------------------------------------------------------------------------------------------


def problems(**options: Any) -> st.SearchStrategy[Problem]:
    """Return the strategy of `random_problem`; pods of about every other one stand anywhere."""
    return drawn(random_problem, **{"broken": None, **options})


def affinity_problems(**options: Any) -> st.SearchStrategy[Problem]:
    """Return the strategy of `random_affinity`; pods of about every other one stand anywhere."""
    return drawn(random_affinity, **{"broken": None, **options})


def problems_with_room() -> st.SearchStrategy[Problem]:
    """Return the strategy of `random_room`; pods of about every other one stand anywhere."""
    return drawn(random_room)
