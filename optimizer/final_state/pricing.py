"""The sub-problems of the Lagrangian dual: the pods of each node that cost least at given prices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.optimizer.final_state.kernel.pricing import Choices, cheapest


class NodePricing:
    """What pods nodes can have, and which of them cost least.

    For a given number ``k`` of pods on a node, its cost is linear in the pods, so the ``k`` cheapest are best; all
    ``k`` are tried.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    start
        ``[c, n]`` pods at the start.
    table, crowding
        ``[c, n]`` what a pod costs, and what it costs each pod beside it, itself included.
    turned
        ``[c, n]`` and ``[n]`` what ``crowding``, and all of ``table``, change by if turned; see `Part.turned`.
    most
        ``[n]`` the most pods.
    demands, curves
        ``[r, c]`` demands for capacities, and ``[t][c]`` those of curves of loads.
    kernels
        Whether compiled code is used.
    """

    def __init__(
        self,
        upper: Ints,
        start: Ints,
        table: Floats,
        crowding: Floats,
        turned: tuple[Floats, Floats] | None,
        most: Ints,
        demands: Floats,
        curves: Sequence[Ints],
        *,
        kernels: bool,
    ) -> None:
        classes, nodes = upper.shape
        stay = np.minimum(start, upper)
        node, cls, stays, copies = [], [], [], []
        for pods, there in ((stay, True), (upper - stay, False)):
            at = np.nonzero(pods.T)
            node.append(at[0])
            cls.append(at[1])
            stays.append(np.full(len(at[0]), there))
            copies.append(pods.T[at])
        where = np.concatenate(node)
        order = np.argsort(where, kind="stable")
        kind = np.concatenate(cls)[order]
        where = where[order]
        first = np.searchsorted(where, np.arange(nodes + 1))
        bend = np.array(curves, dtype=np.float64).reshape(-1, classes)
        self._choices = Choices(
            first.astype(np.int64),
            kind.astype(np.int64),
            np.concatenate(copies)[order].astype(np.int64),
            np.ascontiguousarray(table[kind, where], dtype=np.float64),
            np.ascontiguousarray(crowding[kind, where], dtype=np.float64),
            np.concatenate(stays)[order],
            np.ascontiguousarray(most, dtype=np.int64),
            np.ascontiguousarray(demands, dtype=np.float64),
            bend,
            _selfless(crowding[kind, where], where, nodes),
        )
        self._shape, self._kernels = (classes, nodes), kernels
        self._turned = None if turned is None else (turned[0][kind, where], turned[1])

    def cheapest(
        self, price: Floats, move: Floats, room: Floats, slopes: Sequence[Floats], turn: Floats
    ) -> tuple[Floats, Ints]:
        """Return ``[n]`` the least cost of each node, and ``[c, n]`` the pods that have it.

        Parameters
        ----------
        price, move
            ``[c]`` what a pod is worth, and what it costs if it leaves.
        room, slopes
            ``[r, n]`` and ``[t][n]`` prices of a unit of each capacity, and of the load of each curve.
        turn
            ``[n]`` how far costs are turned.
        """
        _, nodes = self._shape
        least, chosen = np.zeros(nodes), np.zeros(self._shape, dtype=np.int64)
        slope = np.array(slopes, dtype=np.float64).reshape(-1, nodes)
        f = self._choices
        where = np.repeat(np.arange(nodes), np.diff(f.first))
        if self._turned is not None and turn.any():
            crowding = f.crowding + turn[where] * self._turned[0]
            base = f.base + (turn * self._turned[1])[where]
            f = f._replace(base=base, crowding=crowding, selfless=_selfless(crowding, where, nodes))
        if self._kernels:
            cheapest(f, price, move, np.ascontiguousarray(room), slope, least, chosen)
            return least, chosen
        each = f.base - price[f.cls] - np.where(f.stays, move[f.cls], 0.0)
        each += (f.demand[:, f.cls] * room[:, where]).sum(axis=0) + (f.bend[:, f.cls] * slope[:, where]).sum(axis=0)
        for n, (a, b) in enumerate(_pairs(f.first)):
            least[n], pods = _cheapest(f.copies[a:b], each[a:b], f.crowding[a:b], int(f.most[n]))
            np.add.at(chosen[:, n], f.cls[a:b], pods)
        return least, chosen


def _selfless(crowding: Floats, where: Ints, nodes: int) -> Bools:
    """``[n]`` whether no pod makes others cheaper, for entries at some nodes."""
    least = np.zeros(nodes)
    np.minimum.at(least, where, crowding)
    found: Bools = least >= 0
    return found


def most_pods(upper: Ints, demands: Floats, free: Floats) -> Ints:
    """``[n]`` the most pods that a node can hold, by each capacity alone.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class.
    demands, free
        ``[r, c]`` and ``[r, n]`` of the capacities.
    """
    classes, nodes = upper.shape
    most: Ints = upper.sum(axis=0)
    for demand, room in zip(demands, free, strict=True):
        order = np.argsort(demand, kind="stable")
        for n in range(nodes):
            copies = upper[order, n]
            total = np.cumsum(copies * demand[order])
            full = int(np.searchsorted(total, room[n], side="right"))
            fit = int(copies[:full].sum())
            if full < classes and demand[order[full]] > 0:
                before = float(total[full - 1]) if full else 0.0
                fit += int((room[n] - before) // demand[order[full]])
            most[n] = min(most[n], fit)
    return most


def _pairs(first: Ints) -> Sequence[tuple[int, int]]:
    """Return where the entries of each node begin and end."""
    return list(zip(first[:-1].tolist(), first[1:].tolist(), strict=True))


def _cheapest(copies: Ints, single: Floats, crowding: Floats, most: int) -> tuple[float, Ints]:
    """Return the least cost of a node, and how many pods of each of its entries have it; without compiled code."""
    pods = np.zeros(len(copies), dtype=np.int64)
    number = np.arange(1, min(most, int(copies.sum())) + 1)
    if not len(number):
        return 0.0, pods
    prices = single + number[:, None] * crowding
    order = np.argsort(prices, axis=1, kind="stable")
    taken = np.minimum(np.cumsum(copies[order], axis=1), number[:, None])
    taken = np.diff(taken, axis=1, prepend=0)
    total = (np.take_along_axis(prices, order, axis=1) * taken).sum(axis=1)
    best = int(total.argmin())
    if total[best] >= 0:
        return 0.0, pods
    pods[order[best]] = taken[best]
    return float(total[best]), pods
