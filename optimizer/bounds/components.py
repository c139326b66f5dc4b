"""Small connected components of the graph of kinds and nodes, solved exactly instead of by multipliers.

Kinds of pods and the nodes open to them are a bipartite graph. Once side constraints are relaxed at their duals, its
connected *components* are independent, so each has a minimum of its own. The Lagrangian bound, which lets a node mix
its solutions, can only be below it. The difference matters most where few expensive nodes compete for few pods. All
that a node of a small component can hold, its *patterns*, are listed with their exact costs, and CP-SAT decides how
many nodes use each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.errors import InternalError
from stowplan.optimizer.bounds.node_programs import Programs
from stowplan.optimizer.bounds.node_search import costs_of
from stowplan.optimizer.cpsat.builder import Builder, Linear, Model
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.task import SolverLimits, Task, solve_task
from stowplan.optimizer.deadline import Deadline

LARGEST_NUMBER = 1 << 46
"""Largest cost of a component in the units of the model, which CP-SAT adds up in 64 bits."""


@dataclass(frozen=True, slots=True)
class Component:
    """Programs ``members`` and kinds ``kinds``: no pod of another kind can be on these nodes."""

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
    """Return the Lagrangian bound of a component, in scaled units: its nodes, multipliers and unplaced pods."""
    members, kinds = component.members, component.kinds
    waiting = np.minimum(0, programs.unplaced - multipliers)[kinds].tolist()
    each = multipliers[kinds].tolist()
    total = sum(a * b for a, b in zip(programs.times[members].tolist(), bounds[members].tolist(), strict=True))
    total += sum(a * b for a, b in zip(each, programs.size[kinds].tolist(), strict=True))
    total += sum(a * b for a, b in zip(waiting, programs.optional[kinds].tolist(), strict=True))
    return int(total)


def jointly(
    programs: Programs,
    component: Component,
    deadline: Deadline,
    most_patterns: int,
    symmetry_variables: int = CpSatParameters().symmetry_variables,
) -> int | None:
    """Return the minimum of a component or a bound of it, in scaled units; ``None`` if large or nothing is proven."""
    patterns = None if deadline.over else _patterns(programs, component, most_patterns)
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
    seconds = None if deadline.deterministic else max(0.1, deadline.remaining)
    work = deadline.seconds if deadline.deterministic else None
    limits = SolverLimits(seconds, work, symmetry_variables=symmetry_variables)
    try:
        found = solve_task(Task(_model(programs, component, patterns, extra, unit), limits), deadline.stop.is_set)
    except InternalError:
        return None
    if found.bound is None:
        return None
    return found.bound * unit + int(sum(low * number for low, number in zip(least, times, strict=True)))


def _patterns(programs: Programs, component: Component, most: int) -> list[Ints] | None:
    """Return, for each program, all ``[p, i]`` patterns of the component's kinds; ``None`` if more than ``most``."""
    found: list[Ints] = []
    for m in component.members.tolist():
        listed = _held(programs, component, m, most - sum(map(len, found)))
        if listed is None:
            return None
        found.append(listed)
    return found


def _held(programs: Programs, component: Component, m: int, most: int) -> Ints | None:
    tables, kinds = programs.tables, component.kinds
    demand = tables.demand[:, kinds]
    upper = np.minimum(tables.upper[m, kinds], programs.size[kinds])
    # By how much the kinds from i on can reduce a load, where demands are negative.
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
    """Return the scaled units per unit of the model: their greatest common divisor, or more where costs are large."""
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
    """Return the integer program over patterns. Costs are rounded down to whole units, which can only lower it."""
    builder, total = Builder(), Linear()
    placed = [Linear() for _ in component.kinds]
    for listed, costs, number in zip(patterns, extra, programs.times[component.members].tolist(), strict=True):
        hints = np.zeros(len(listed), dtype=np.int64)
        hints[0] = number
        uses = builder.counts(np.full(len(listed), number), hints).tolist()
        builder.equal(Linear(uses, [1] * len(uses)), number)
        for use, pattern, cost in zip(uses, listed.tolist(), costs.tolist(), strict=True):
            total.add(use, cost // unit)
            for here, pods in zip(placed, pattern, strict=True):
                here.add(use, pods)
    for k, here in zip(component.kinds.tolist(), placed, strict=True):
        waits = builder.var(0, int(programs.optional[k]), int(programs.optional[k]))
        total.add(waits, int(programs.unplaced[k]) // unit)
        builder.equal(here.plus(waits, 1), int(programs.size[k]))
    return builder.minimize(total)
