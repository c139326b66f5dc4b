"""The arrays that kernels work on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]


class SearchState(NamedTuple):
    """A problem and a placement as flat arrays; `layout` names the columns.

    Pods are individuals here: pod ``p`` is on node ``pod[p, P_NODE]``, where node number ``N`` stands for none.
    What is known about classes of pods is derived from that, so interchangeable pods stay interchangeable.

    Parameters
    ----------
    head
        ``[HEAD]`` sizes, and first columns of the groups of columns below.
    cls, fix, live
        ``[C, …]`` constants of a class; ``[N, …]`` constants of a node, and what is on it now.
    weight
        ``[C]`` size of a pod: its share of an average node's capacities, summed over them.
    fill
        ``[N]`` the sum of ``weight`` over the pods of the node.
    pod, on, on_at, width
        ``[P, 3]`` class, node and slot of each pod; ``on[on_at[n] + slot]`` the pods of a node; ``[N + 1]`` how many.
    delta
        ``[row, N]`` pods of the class on the node now, less those at the start; a class of one pod has no row.
    mask
        ``[row, N]`` number of `Allow` rules that forbid the node.
    choice, home
        Nodes open to each class, and nodes it started on, one class after another.
    member, participants
        ``[m, 2]`` relation and role of a class, one class after another; for `MovePeak` the role is the group. And
        the classes of each relation, one relation after another.
    relation, counter, domain
        ``[Q, R_COLUMNS]``; counters by domain of all relations; ``[topology, N + 1]`` domain of each node or -1.
    piece
        ``[j, 3]`` start, slope and value of the pieces of all curves.
    curve, score, prefer, opened
        ``[K, 2]`` tier and weight; ``[S, 6]`` tier, weight, kind, first load, loads, first weight in ``load_weight``;
        ``[J, 3]`` tier, weight, first entry in ``table``; ``[O, 1]`` tier.
    violation_weight
        ``[T]`` weight of `Violation` in each tier.
    transient
        ``[R]`` whether a capacity stays charged on the source of a move.
    thing
        ``[i, N]`` how many pods on the node use each shared thing; ``bundle`` and ``bundle_at`` list the things of
        each bundle.
    device
        ``[Y]`` size of a device; ``held_part`` shares held by pods outside the problem.
    value
        ``[T + VALUES]`` value of each tier, then what `layout` names: capacity held, illegal places, moves, unplaced
        pods, overload.
    """

    head: Int64
    cls: Int64
    fix: Int64
    live: Int64
    weight: NDArray[np.float64]
    fill: NDArray[np.float64]
    pod: Int64
    on: Int64
    on_at: Int64
    width: Int64
    delta: NDArray[np.int32]
    mask: NDArray[np.int16]
    choice: Int64
    home: Int64
    member: Int64
    participants: Int64
    relation: Int64
    counter: Int64
    domain: Int64
    piece: Int64
    curve: Int64
    score: Int64
    load_weight: Int64
    prefer: Int64
    table: Int64
    opened: Int64
    violation_weight: Int64
    transient: Int64
    thing: NDArray[np.int16]
    bundle: Int64
    bundle_at: Int64
    device: Int64
    held_part: Int64
    value: Int64
