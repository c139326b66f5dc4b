"""What a core is made of: nodes where pods can be let in, and pods that come or leave in good solutions.

The linear relaxation has the first word, by its reduced costs: in a good solution of whole numbers most variables are 0
that cost much there. Before those, the changes come that each node would make at its multipliers, in whole pods, those
that gain most first. Duals from inside the optimal face, as an interior point method has them, leave few variables
equal; those of a vertex leave most of them at 0.
"""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.optimizer.bounds.interior_point import Dual
from stowplan.optimizer.bounds.node_programs import Programs

ROOMY = 1e9
"""Pods for which a node has room at most."""


def promising(programs: Programs, number: int) -> Bools:
    """``[m]`` so many programs: one half could let most pods in after one eviction, the other half has most room.

    Room is measured in unscheduled pods of mean size; for the one half it is none where none of them may come, for the
    other half it counts by the share of kinds that may. Pods count as evicted that have room on some node as it is.
    """
    tables = programs.tables
    if number >= len(tables.upper):
        return np.ones(len(tables.upper), dtype=np.bool_)
    counted = np.where(programs.unplaced > 0, programs.optional, 0)
    mean = tables.demand @ counted / max(1, int(counted.sum()))
    asked = mean > 0
    room = np.maximum(0, tables.capacity - tables.base - tables.start @ tables.demand.T)[:, asked] / mean[asked]
    demand = tables.demand[asked].T / mean[asked]
    open_to = ((tables.upper > tables.start) & (counted > 0)).any(axis=1)
    free = np.where(open_to, room.min(axis=1, initial=ROOMY), 0.0)
    after = free.copy()
    for k in range(len(demand)):
        if ((room >= demand[k]).all(axis=1) & (tables.upper[:, k] > tables.start[:, k])).any():
            held = open_to & (tables.start[:, k] > 0)
            after[held] = np.maximum(after[held], (room[held] + demand[k]).min(axis=1, initial=ROOMY))
    chosen = np.zeros(len(free), dtype=np.bool_)
    chosen[np.argsort(free - after, kind="stable")[: number // 2]] = True
    others = np.flatnonzero(~chosen)
    receives = room.min(axis=1, initial=ROOMY) * (tables.upper > tables.start).mean(axis=1)
    chosen[others[np.argsort(-receives[others], kind="stable")[: number - number // 2]]] = True
    return chosen


def ranks(programs: Programs, dual: Dual, solutions: Ints) -> tuple[Floats, Floats]:
    """``[m, k]`` ranks of a pod that comes to a node of each program, and of one that leaves it; low ones come first.

    Parameters
    ----------
    dual
        Of the linear relaxation.
    solutions
        ``[m, k]`` the best pattern that was found for each program at this dual.

    Returns
    -------
    come, leave
        Sizes of reduced costs in scaled units, negative for changes to the patterns; infinite where no pod can come,
        or there is none to leave.
    """
    tables, limits = programs.tables, programs.limits
    multipliers, load_duals = np.nan_to_num(dual.multipliers), np.nan_to_num(dual.load_duals)
    here = tables.linear + load_duals @ tables.demand - multipliers
    move = tables.move + np.nan_to_num(dual.side_duals) @ limits.move
    load = tables.base + solutions @ tables.demand.T
    highest = np.maximum(tables.capacity, tables.base + tables.start @ tables.demand.T)
    fits: Bools = np.all(load <= highest, axis=1)
    change = np.where(fits[:, None], solutions - tables.start, 0)  # a node that was not searched may be overfull
    gain = (change * (tables.linear - multipliers) - np.minimum(0, change) * move).sum(axis=1)
    first = np.empty(len(gain))
    first[np.argsort(gain, kind="stable")] = np.arange(len(gain)) - len(gain)
    come, leave = np.abs(here), np.abs(move - here)
    come, leave = np.where(change > 0, first[:, None], come), np.where(change < 0, first[:, None], leave)
    return np.where(tables.upper > tables.start, come, np.inf), np.where(tables.start > 0, leave, np.inf)


def on_all(chosen: Bools, part: Floats) -> Floats:
    """``[m, k]`` ranks of all programs: of the chosen ones as given, and infinite for others."""
    whole = np.full((len(chosen), part.shape[1]), np.inf)
    whole[chosen] = part
    return whole


def cheapest(programs: Programs, come: Floats, leave: Floats, number: int) -> tuple[Bools, Bools]:
    """``[m, k]`` which pods come first, by their ranks, so that there are at most so many variables on all nodes."""
    every = np.concatenate([come.ravel(), leave.ravel()])
    weight = np.tile(np.repeat(programs.times, come.shape[1]), 2)
    order = np.argsort(every, kind="stable")[: int(np.isfinite(every).sum())]
    chosen = np.zeros(len(every), dtype=np.bool_)
    chosen[order[np.cumsum(weight[order]) <= number]] = True
    first, second = chosen.reshape(2, *come.shape)
    return first, second
