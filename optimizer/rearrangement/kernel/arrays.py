"""The arrays that the kernels of the walk work on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stowplan.optimizer.compiled.random import RandomState

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

# Kinds of relations.
AT_MOST, OCCUPY, ATTRACT, REPEL, SPREAD = range(5)

# Roles of a class in a relation.
SEEKER, TARGET = 1, 2

# Columns of `WalkModel.relation`.
KIND, TOPOLOGY, FIRST, SECOND, HISTOGRAM, LIMIT, FLOOR = range(7)

# Columns of `WalkState.extent`.
USED, LEAST, MOST = range(3)

# Entries of `WalkState.value`.
COST, BEST, PEAK, MOVED_PODS, DIRTY, SPENT, SPENT_REARRANGING, STEPS, REARRANGEMENTS, ACCEPTED = range(10)
MOVES, VALUES = 10, 11

# Columns of `WalkState.rank`.
FACTOR, BESIDES, AT_BEST = range(3)

WHOLE_NODE = 25
"""Pods on a node up to which all of them are candidates to be pushed off; else some random ones are."""

UNLIMITED = 1 << 60
"""Limit on moves where there is none."""


class WalkModel(NamedTuple):
    """What a walk does not change.

    Parameters
    ----------
    cls, home
        ``[P]`` class of each pod, and the node where it starts.
    row, start
        ``[C]`` row of `WalkState.delta`, or -1 for a class of one pod, which starts on node ``start``.
    weight
        ``[C]`` size of a pod: its share of a mean node's capacities, summed over them.
    need
        ``[2, C + 1, R]`` what a pod takes where it is a newcomer, and where it started: nothing there of a capacity
        that stays charged on the source of a move.
    share
        ``[R]`` the share of a mean node that is one unit.
    demand
        ``[C + 1, K]`` what a pod adds to the load of a curve.
    hinged, rate
        Whether all curves are 0 up to a corner and rise by ``[N, K]`` ``rate`` from there on. Then loads are counted
        from the corner, and the pieces are not used.
    first, last
        ``[N, K]`` pieces of a node's curve.
    begin, slope, worth
        ``[j]`` where a piece begins, its slope, and the value there, times the weight of the term.
    price_row, price
        ``[C]`` row of ``[i, N]``, what a pod costs on a node by itself.
    move
        ``[C]`` what a pod costs that is not where it started.
    least_price
        ``[C]`` what no node charges less than if a pod comes: it may save its move, and more if curves fall.
    group, peak
        ``[C]`` group of the class whose movers are counted together, or -1, and the cost of a mover of the group with
        the most.
    limit
        How many pods may leave the nodes they started on.
    target, target_at
        Nodes where a pod of each class can ever be, one class after another: ``target[target_at[c] :
        target_at[c + 1]]``.
    open
        ``[C, N]`` the same as a table.
    member, member_at
        ``[i, 2]`` relation and role of each class, one class after another.
    relation
        ``[G, 7]`` kind, topology, first counters, second counters or numbers of domains by count, limit, and whether
        the least count is taken as 0.
    domain
        ``[topology, N]`` domain of each node, or -1.
    """

    cls: Int32
    home: Int32
    row: Int32
    start: Int32
    weight: Float64
    need: Int64
    share: Float64
    demand: Int64
    hinged: bool
    rate: Int64
    first: Int32
    last: Int32
    begin: Int64
    slope: Int64
    worth: Int64
    price_row: Int32
    price: Int64
    move: Int64
    least_price: Int64
    group: Int32
    peak: int
    limit: int
    target: Int32
    target_at: Int64
    open: NDArray[np.bool_]
    member: Int32
    member_at: Int64
    relation: Int64
    domain: Int32


class WalkState(NamedTuple):
    """A placement, and what follows from it.

    Parameters
    ----------
    node, slot
        ``[P]`` node of each pod, and its index among the node's pods.
    on, width
        ``[N, W]`` pods of each node; ``[N]`` how many.
    room, level, piece, value_at, charge
        ``[N, R]`` capacity left, below 0 while a node is overloaded; ``[N, K]`` load of each curve, the piece it is
        on, and its value; ``[N]`` the sum of these values.
    delta
        ``[i, N]`` pods of a class now, less those at the start.
    counter, extent
        Counters of all relations by domain; ``[G, 3]`` domains in use, least and most in a domain.
    leavers, groups_with
        ``[groups]`` movers of each group; ``[…]`` groups by their number of movers.
    away, away_at
        ``[P]`` pods that are not at home, and the index there of each, or -1.
    best, dirty, dirty_at
        ``[P]`` node of each pod in the best placement of the walk; pods that moved since, and whether a pod did.
    candidate, rank
        ``[WHOLE_NODE]`` pods that may be pushed off a node; ``[WHOLE_NODE, 3]`` the factor of the rank of each, what
        it takes besides the price of the target, and the lowest rank it may have.
    pods, nodes, own
        Pods and nodes that the thread may draw, and ``[N]`` whether a node is one of these.
    owned
        ``[G]`` whether the thread may change how many pods of a relation are in a domain.
    path
        ``[…, 2]`` pods moved in the current step, and where they came from.
    value
        ``[VALUES]`` cost now and at best, movers of the group with the most, pods away from home, pods in ``dirty``,
        work in all and for rearrangements, steps, rearrangements, steps accepted, pods that left the nodes they started
        on.
    random
        State of the random numbers.
    """

    node: Int32
    slot: Int32
    on: Int32
    width: Int32
    room: Int64
    level: Int64
    piece: Int32
    value_at: Int64
    charge: Int64
    delta: Int32
    counter: Int32
    extent: Int64
    leavers: Int32
    groups_with: Int32
    away: Int32
    away_at: Int32
    best: Int32
    dirty: Int32
    dirty_at: NDArray[np.bool_]
    candidate: Int32
    rank: Float64
    pods: Int32
    nodes: Int32
    own: NDArray[np.bool_]
    owned: NDArray[np.bool_]
    path: Int32
    value: Int64
    random: RandomState
