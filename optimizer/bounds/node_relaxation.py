"""The relaxation of one node at given multipliers, in fractions of pods: what its loads are worth there.

Coordinate descent: one kind after the other takes the amount that is cheapest with what the others have. Curves are
convex and nearly smooth, so few rounds lead to the least cost, or close to it. The slopes of the curves there are load
duals, for which the search of a node in whole pods is bounded well; any others bound it too, only worse. Capacities
limit amounts and have no duals of their own.
"""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.optimizer.bounds.node_programs import Programs, Tables
from stowplan.optimizer.bounds.node_search import slope_at
from stowplan.optimizer.compiled.jit import allocating

ROUNDS = 100
"""Rounds through all kinds at most."""

HALVINGS = 20
"""Halvings of the interval in which an amount is looked for."""

SETTLED = 1e-4
"""Pods by which amounts change in the last round."""


def relaxed_load_duals(programs: Programs, multipliers: Ints) -> Ints:
    """``[m, r]`` load duals of all nodes at multipliers ``[k]``, in scaled units."""
    found = np.zeros(programs.tables.base.shape, dtype=np.int64)
    _relax_nodes(programs.tables, multipliers, found)
    return found


@allocating
def _relax_nodes(tables: Tables, multipliers: Ints, found: Ints) -> None:
    for m in range(len(found)):
        load = _relax_node(tables, m, multipliers)
        for r in range(len(load)):
            found[m, r] = slope_at(tables, tables.curve[m, r], int(load[r]))


@allocating
def _relax_node(tables: Tables, m: int, multipliers: Ints) -> Floats:
    """Return the loads of a node at the fractional amounts that cost least."""
    kinds, rows = len(multipliers), len(tables.demand)
    amount, load = np.zeros(kinds), np.zeros(rows)
    for r in range(rows):
        load[r] = tables.base[m, r]
    for k in range(kinds):
        amount[k] = tables.start[m, k]
        for r in range(rows):
            load[r] += tables.demand[r, k] * amount[k]
    for _ in range(ROUNDS):
        changed = 0.0
        for k in range(kinds):
            if tables.upper[m, k] == 0:
                continue
            before = amount[k]
            low, high = _interval(tables, m, k, multipliers, amount[k], load)
            if high <= low:
                continue
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                if _slope(tables, m, k, multipliers, before, middle, load, middle < tables.start[m, k]) < 0:
                    low = middle
                else:
                    high = middle
            amount[k] = (low + high) / 2
            for r in range(rows):
                load[r] += tables.demand[r, k] * (amount[k] - before)
            changed += abs(amount[k] - before)
        if changed < SETTLED:
            break
    return load


@allocating
def _interval(tables: Tables, m: int, k: int, multipliers: Ints, amount: float, load: Floats) -> tuple[float, float]:
    """Return between which amounts of a kind the cheapest one is, as far as capacities let it; empty if it is this."""
    most = float(tables.upper[m, k])
    start = tables.start[m, k]
    if amount < most and _slope(tables, m, k, multipliers, amount, amount, load, amount < start) < 0:
        for r in range(len(load)):
            if tables.demand[r, k] > 0:
                most = min(most, amount + max(0.0, tables.capacity[m, r] - load[r]) / tables.demand[r, k])
        return amount, most
    if amount > 0 and _slope(tables, m, k, multipliers, amount, amount, load, amount <= start) > 0:
        return 0.0, amount
    return amount, amount


@allocating
def _slope(
    tables: Tables, m: int, k: int, multipliers: Ints, before: float, at: float, load: Floats, away: bool
) -> float:
    """Return what a little more of a kind costs where another amount of it made the load."""
    slope = float(tables.linear[m, k] - multipliers[k] - (tables.move[k] if away else 0))
    for r in range(len(load)):
        demand = tables.demand[r, k]
        if demand != 0:
            slope += demand * float(slope_at(tables, tables.curve[m, r], int(load[r] + demand * (at - before))))
    return slope
