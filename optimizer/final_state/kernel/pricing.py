"""The cheapest pods of each node at given prices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.optimizer.compiled.jit import allocating, inlined


class Choices(NamedTuple):
    """What pods nodes can have, an entry for each kind of pod of each node.

    Parameters
    ----------
    first
        ``[n + 1]`` where the entries of a node begin.
    cls, copies, base, crowding, stays
        ``[e]`` class, number of pods, what one costs, what it costs each pod beside it, itself included, and whether
        it is there at the start.
    most
        ``[n]`` the most pods.
    demand, bend
        ``[r, c]`` and ``[t, c]`` demands for capacities, and of the curves.
    selfless
        ``[n]`` whether no pod makes others cheaper.
    """

    first: Ints
    cls: Ints
    copies: Ints
    base: Floats
    crowding: Floats
    stays: Bools
    most: Ints
    demand: Floats
    bend: Floats
    selfless: Bools


@allocating
def cheapest(f: Choices, price: Floats, move: Floats, room: Floats, slope: Floats, least: Floats, chosen: Ints) -> None:
    """Write down the least cost of each node, and the pods ``[c, n]`` that have it.

    For a given number of pods, the cheapest are best; all numbers are tried.

    Parameters
    ----------
    price, move
        ``[c]`` what a pod is worth, and what it costs if it leaves.
    room, slope
        ``[r, n]`` and ``[t, n]`` prices of a unit of each capacity, and of the load of each curve.
    """
    nodes = len(f.most)
    widest = 0
    for n in range(nodes):
        widest = max(widest, f.first[n + 1] - f.first[n])
    entry, alone, nearest, cost = (
        np.empty(widest, np.int64),
        np.empty(widest),
        np.empty(widest, np.int64),
        np.empty(widest),
    )
    kept, taken, pods = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest, np.int64)
    for n in range(nodes):
        number = copies = 0
        for e in range(f.first[n], f.first[n + 1]):
            c = f.cls[e]
            each = f.base[e] - price[c]
            for r in range(len(room)):
                each += f.demand[r, c] * room[r, n]
            for t in range(len(slope)):
                each += f.bend[t, c] * slope[t, n]
            if f.stays[e]:
                each -= move[c]
            # A pod that costs something even alone is no part of a minimum: without it, all others cost no more.
            if not f.selfless[n] or each + f.crowding[e] < 0:
                entry[number], alone[number] = e, each
                number += 1
                copies += f.copies[e]
        least[n], kinds = 0.0, 0
        for k in range(1, min(f.most[n], copies) + 1):
            # The cheapest entries that hold so many pods, by cost; and what all that are worth anything come to.
            used, held, lowest, i = 0, 0, 0.0, 0
            while i < number:
                e = entry[i]
                each = alone[i] + k * f.crowding[e]
                if each >= 0 and f.selfless[n]:
                    # Likewise beside so many pods, and beside more.
                    number -= 1
                    copies -= f.copies[e]
                    entry[i], alone[i] = entry[number], alone[number]
                    continue
                i += 1
                lowest += f.copies[e] * each
                if held < k or each < cost[used - 1]:
                    used = _insert(nearest, cost, used, e, each)
                    held += f.copies[e]
                    while held - f.copies[nearest[used - 1]] >= k:
                        used -= 1
                        held -= f.copies[nearest[used]]
            if copies < k or (f.selfless[n] and lowest >= least[n]):
                break  # more pods cost no less than all that are worth anything beside so many
            total, left = 0.0, k
            for j in range(used):
                pods[j] = min(left, f.copies[nearest[j]])
                total += pods[j] * cost[j]
                left -= pods[j]
            if total < least[n]:
                least[n], kinds = total, used
                kept[:used], taken[:used] = nearest[:used], pods[:used]
        for j in range(kinds):
            chosen[f.cls[kept[j]], n] += taken[j]


@inlined
def _insert(nearest: Ints, cost: Floats, used: int, e: int, each: float) -> int:
    """Insert an entry among those that are sorted by cost; return how many there are."""
    at = used
    while at and cost[at - 1] > each:
        nearest[at], cost[at] = nearest[at - 1], cost[at - 1]
        at -= 1
    nearest[at], cost[at] = e, each
    return used + 1
