"""Nodes and pods that have nothing to do with the others, solved as a whole where that is small.

Kinds of pods and the nodes open to them are a graph. Unless its *components* share a limit, nothing ties them together
but sums; where they do, its fine does. So each component has a least cost of its own, and multipliers, which let a node
hold a mixture of its answers, can only be below it. That matters most where few costly nodes wait for few pods: one pod
stands on one node, and no mixture of nodes is as bad. All that a node of a small component can hold, its *patterns*,
are listed with their exact costs, and CP-SAT says how many nodes use each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.errors import InternalError
from stowplan.optimizer.bounds.node_programs import Programs
from stowplan.optimizer.bounds.node_search import costs_of
from stowplan.optimizer.cpsat.builder import Builder, Linear, Model
from stowplan.optimizer.cpsat.task import Limits, Task, answer
from stowplan.optimizer.deadline import Deadline

LARGEST = 20_000
"""Patterns of all nodes of a component up to which they are listed."""

LARGEST_NUMBER = 1 << 46
"""What a component may cost in the units that CP-SAT counts in, which adds such numbers up in 64 bits."""


@dataclass(frozen=True, slots=True)
class Component:
    """Programs ``members`` and kinds ``kinds`` that go together: no pod of another kind can stand on these nodes."""

    members: Ints
    kinds: Ints


def components(programs: Programs) -> list[Component]:
    """Return the components that have more than one node."""
    able = programs.tables.upper > 0
    found = []
    unseen = np.ones(len(able), dtype=np.bool_)
    for m in range(len(able)):
        if not unseen[m]:
            continue
        nodes, reached = np.zeros(len(able), dtype=np.bool_), able[m]
        nodes[m] = True
        while True:
            wider = nodes | able[:, reached].any(axis=1)
            if wider.sum() == nodes.sum():
                break
            nodes, reached = wider, able[wider].any(axis=0)
        unseen &= ~nodes
        if reached.any() and int(programs.times[nodes].sum()) > 1:
            found.append(Component(np.flatnonzero(nodes), np.flatnonzero(reached)))
    return found


def separately(programs: Programs, component: Component, multipliers: Ints, bounds: Ints) -> int:
    """Return what a component costs at least by multipliers, in grains: its nodes, and what its pods earn or wait."""
    members, kinds = component.members, component.kinds
    waiting = np.minimum(0, programs.unplaced - multipliers)[kinds].tolist()
    each = multipliers[kinds].tolist()
    total = sum(a * b for a, b in zip(programs.times[members].tolist(), bounds[members].tolist(), strict=True))
    total += sum(a * b for a, b in zip(each, programs.size[kinds].tolist(), strict=True))
    total += sum(a * b for a, b in zip(waiting, programs.optional[kinds].tolist(), strict=True))
    return int(total)


def jointly(programs: Programs, component: Component, deadline: Deadline) -> int | None:
    """Return what a component costs at least as a whole, in grains; ``None`` if it is large or nothing was proven."""
    patterns = None if deadline.over else _patterns(programs, component)
    if patterns is None or not all(len(each) for each in patterns):
        return None
    costs = [
        costs_of(programs.tables, m, component.kinds, each)
        for m, each in zip(component.members.tolist(), patterns, strict=True)
    ]
    least: list[int] = [int(each.min()) for each in costs]
    times = programs.times[component.members].tolist()
    extra = [each - low for each, low in zip(costs, least, strict=True)]
    unit = _unit(programs, component, extra)
    limits = Limits(work=deadline.seconds) if deadline.deterministic else Limits(max(0.1, deadline.remaining))
    try:
        found = answer(Task(_model(programs, component, patterns, extra, unit), limits), deadline.stop.is_set)
    except InternalError:
        return None
    if found.bound is None:
        return None
    return found.bound * unit + int(sum(low * number for low, number in zip(least, times, strict=True)))


def _patterns(programs: Programs, component: Component) -> list[Ints] | None:
    """Return, for each program, ``[p, i]`` what a node can hold of the component's kinds; ``None`` if it is a lot."""
    found: list[Ints] = []
    for m in component.members.tolist():
        listed = _held(programs, component, m, LARGEST - sum(map(len, found)))
        if listed is None:
            return None
        found.append(listed)
    return found


def _held(programs: Programs, component: Component, m: int, most: int) -> Ints | None:
    tables, kinds = programs.tables, component.kinds
    demand = tables.demand[:, kinds]
    upper = np.minimum(tables.upper[m, kinds], programs.size[kinds])
    # What the kinds from i on can take off a load, where demands are negative.
    relief = np.zeros((len(kinds) + 1, len(demand)), dtype=np.int64)
    relief[:-1] = np.cumsum((np.minimum(0, demand) * upper).T[::-1], axis=0)[::-1]
    listed = np.zeros((1, len(kinds)), dtype=np.int64)
    for i, highest in enumerate(upper.tolist()):
        grown: list[Ints] = []
        for count in range(highest + 1):
            more = listed.copy()
            more[:, i] = count
            load = tables.base[m] + more @ demand.T
            grown.append(more[(load + relief[i + 1] <= tables.capacity[m]).all(axis=1)])
            if sum(map(len, grown)) > most:
                return None
        listed = np.vstack(grown)
    return listed


def _unit(programs: Programs, component: Component, extra: list[Ints]) -> int:
    """Return how many grains make a unit of the model: as many as divide all costs, or more where numbers are large."""
    kinds = component.kinds
    waiting = programs.unplaced[kinds]
    unit = int(np.gcd.reduce(np.concatenate([*extra, waiting]))) or 1
    times = programs.times[component.members].tolist()
    worst = sum(int(each.max()) * number for each, number in zip(extra, times, strict=True))
    worst += sum(a * b for a, b in zip(waiting.tolist(), programs.optional[kinds].tolist(), strict=True))
    while worst // unit > LARGEST_NUMBER:
        unit *= 2
    return unit


def _model(programs: Programs, component: Component, patterns: list[Ints], extra: list[Ints], unit: int) -> Model:
    """Return the program over patterns. Costs are rounded down to whole units, which can only lower it."""
    builder, total = Builder(), Linear()
    standing = [Linear() for _ in component.kinds]
    for listed, costs, number in zip(patterns, extra, programs.times[component.members].tolist(), strict=True):
        hints = np.zeros(len(listed), dtype=np.int64)
        hints[0] = number
        uses = builder.counts(np.full(len(listed), number), hints).tolist()
        builder.equal(Linear(uses, [1] * len(uses)), number)
        for use, pattern, cost in zip(uses, listed.tolist(), costs.tolist(), strict=True):
            total.add(use, cost // unit)
            for here, pods in zip(standing, pattern, strict=True):
                here.add(use, pods)
    for k, here in zip(component.kinds.tolist(), standing, strict=True):
        waits = builder.var(0, int(programs.optional[k]), int(programs.optional[k]))
        total.add(waits, int(programs.unplaced[k]) // unit)
        builder.equal(here.plus(waits, 1), int(programs.size[k]))
    return builder.minimize(total)
