"""Kinds of neighbourhoods: each names nodes whose pods could be better placed together, the most promising first.

How many of them are taken is decided elsewhere, by what could be solved lately. Every order has some chance in it,
so that the same placement is looked at in different ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import Allow, Placement
from stowplan.optimizer.lns.features import Features
from stowplan.optimizer.subproblem.mentions import ranges

NONE: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """Which part of a placement to free, and what to ask of it.

    Parameters
    ----------
    nodes
        In the order in which they should be taken.
    waiting
        Classes with pods without a node that should get a chance there.
    movers
        Classes that should stay in where others are left out.
    curves_held
        Whether terms of curves should come to no more than they do, and the rest of the tier alone be made better.
    anchored
        Whether it is worth nothing without the first node.
    """

    nodes: Ints
    waiting: Ints = field(default_factory=lambda: NONE)
    movers: Ints = field(default_factory=lambda: NONE)
    curves_held: bool = False
    anchored: bool = False


DestroyOperator = Callable[[Features, np.random.Generator], Neighborhood | None]
"""Returns ``None`` where the placement has nothing of the kind."""


def at_random(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """Any nodes."""
    return Neighborhood(rng.permutation(len(features.problem.nodes)))


def alike(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """A node, and those that are about as full of everything."""
    seed = int(rng.integers(len(features.problem.nodes)))
    apart = np.abs(features.fill - features.fill[:, [seed]]).sum(axis=0)
    return Neighborhood(_first(seed, _noisy(apart, rng)))


def expensive_and_cheap(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """The nodes that cost most in the tier, each followed by one that costs little and has room."""
    node_cost = features.node_cost
    if node_cost.max(initial=0) <= node_cost.min(initial=0):
        return None
    return Neighborhood(
        _alternating(_noisy(-node_cost, rng), _noisy(_ranks(node_cost) + _ranks(features.fullness), rng))
    )


EXCHANGED, OFFERED = 16, 2000
"""Pods of a node that may give way, and pods elsewhere that may come in their place, that are looked at."""


def exchange(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """A node whose loads cost more than they have to, and those of pods that would do well there instead of its own.

    What these nodes lose is left to the model: it may put together what no exchange of two pods can.
    """
    expensive = np.flatnonzero(features.reduced_cost > 0)
    if not len(expensive):
        return None
    seed = int(expensive[_noisy(-features.reduced_cost[expensive], rng)[0]])
    placement = features.placement
    elsewhere = rng.permutation(np.flatnonzero(placement.node != seed))[:OFFERED]
    if not len(elsewhere):
        return None
    goes = rng.permutation(features.classes_on(seed))[:EXCHANGED]
    comes = placement.cls[elsewhere]

    def more(demand: Ints) -> Ints:
        """What the node would hold more: one row for each pod that gives way, the last one for none."""
        held: Ints = demand[comes][None, :] - np.append(demand[goes], 0)[:, None]
        return held

    cost = np.zeros((len(goes) + 1, len(comes)))
    there = np.full(cost.size, seed)
    for curve, load in zip(features.shared.curves, features.loads, strict=True):
        after = load[seed] + more(curve.term.demand)
        cost += curve.reduced_cost(there, after.ravel()).reshape(cost.shape)
    here = placement.node == seed
    for capacity in features.shared.capacities:
        free = int(capacity.free[seed] - (capacity.demand[placement.cls[here]] * placement.count[here]).sum())
        cost[more(capacity.demand) > max(0, free)] = np.inf
    cost[:, _forbidden(features, comes, seed)] = np.inf
    best = _noisy(cost.min(axis=0), rng)
    nodes = _first(seed, _once(placement.node[elsewhere[best]]))
    return Neighborhood(nodes, movers=np.union1d(goes, comes[best[:EXCHANGED]]), anchored=True)


def emptiest(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """Nodes in use that hold least, and others that could take their pods."""
    if not features.shared.counts_nodes:
        return None
    used = np.flatnonzero(features.pods)
    if len(used) < 2:
        return None
    leaving = used[_noisy(features.fullness[used], rng)]
    others = used[_noisy(-features.fullness[used], rng)] if rng.random() < 0.5 else rng.permutation(used)
    return Neighborhood(_first(int(leaving[0]), others))


def domain(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """Nodes of one domain, or of two."""
    if not features.shared.topologies:
        return None
    topology = features.shared.topologies[int(rng.integers(len(features.shared.topologies)))]
    chosen = rng.permutation(topology.size)[: int(rng.integers(1, 3))]
    members = [rng.permutation(np.flatnonzero(topology.domain == d)) for d in chosen]
    return Neighborhood(_alternating(*members) if len(members) > 1 else members[0])


def workload(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """The nodes that hold the pods that one rule or term speaks of, and a few others."""
    if not features.shared.groups:
        return None
    group = features.shared.groups[int(rng.integers(len(features.shared.groups)))]
    holding = rng.permutation(features.holders(group))
    waiting = group[features.missing[group] > 0]
    others = rng.permutation(len(features.problem.nodes))
    return Neighborhood(_once(np.concatenate([_alternating(holding, others[: len(holding) // 2]), others])), waiting)


def tight(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """Nodes that are short of one resource, each followed by one that has plenty of it."""
    if not len(features.fill):
        return None
    fill = features.fill[int(rng.integers(len(features.fill)))]
    return Neighborhood(_alternating(_noisy(-fill, rng), _noisy(fill, rng)))


def moved(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """Nodes of pods that have moved: where one stands, where it came from, who else moved there, and so on."""
    chain = _chain(features, rng, onward=False)
    return (
        None
        if chain is None
        else Neighborhood(_once(np.concatenate([chain, rng.permutation(len(features.problem.nodes))])))
    )


CHAIN = 64
"""Nodes after which a chain of moves is long enough."""

TRACED, TIED = 16, 8
"""Classes of a node whose moves are followed from there, and nodes to which that leads."""


def cheaper_moves(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """Nodes between which pods have moved, and if they are few some others: moves alone should get cheaper.

    Where loads cost far more than moves, a model of both spends its time on loads, at their least already. Held where
    they are, they leave few choices, and far more pods fit into a model that is solved.
    """
    if not features.shared.weighs_moves:
        return None
    chain = _chain(features, rng, onward=True)
    if chain is None:
        return None
    others = np.setdiff1d(np.arange(len(features.problem.nodes)), chain)
    nodes = np.concatenate([chain, rng.permutation(others)[: 1 + len(chain) // 2]])
    movers = np.union1d(*(pods.cls[np.isin(pods.node, nodes)] for pods in (features.came, features.left)))
    return Neighborhood(nodes, movers=movers, curves_held=True)


def _chain(features: Features, rng: np.random.Generator, *, onward: bool) -> Ints | None:
    """Return a node to which a pod has moved, those that it or its like have left, and so on, near ones first.

    Parameters
    ----------
    onward
        Also go from a node to those to which its pods have moved.
    """
    came, left = features.came, features.left
    seeds = came.node[np.isin(came.cls, left.cls)]  # pods that waited have come from nowhere
    if not len(seeds):
        return None
    chain = [int(rng.choice(seeds))]
    seen = set(chain)
    for n in chain:
        tied = _counterparts(came, left, n, rng)
        if onward:
            tied = np.concatenate([tied, _counterparts(left, came, n, rng)])
        nodes, classes = np.unique(tied, return_counts=True)
        for other in nodes[_noisy(-classes, rng)][:TIED].tolist():
            if other not in seen:
                seen.add(other)
                chain.append(other)
        if len(chain) > CHAIN:
            break
    return np.array(chain, dtype=np.int64)


def _counterparts(here: Placement, there: Placement, n: int, rng: np.random.Generator) -> Ints:
    """Return where ``there`` has pods of the classes that ``here`` has on a node, or of some of them."""
    classes = rng.permutation(here.cls[here.node == n])[:TRACED]
    first, last = (np.searchsorted(there.cls, classes, side) for side in ("left", "right"))
    return there.node[ranges(first, last)]


def room_for(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """Nodes that lack least of what a waiting pod needs."""
    waiting = np.flatnonzero(features.missing)
    if not len(waiting):
        return None
    c = int(rng.choice(waiting))
    lacking = np.zeros(len(features.problem.nodes))
    for i, capacity in enumerate(features.shared.capacities):
        lacking += np.maximum(0.0, features.fill[i] + capacity.demand[c] / np.maximum(1, capacity.free) - 1)
    allowed = np.flatnonzero(~_forbidden(features, c, np.arange(len(lacking))))
    if not len(allowed):
        return None
    seed = int(allowed[_noisy(lacking[allowed], rng)[0]])
    others = _noisy(lacking, rng) if rng.random() < 0.5 else rng.permutation(len(lacking))
    return Neighborhood(_first(seed, others), np.array([c], dtype=np.int64))


OPERATORS: dict[str, DestroyOperator] = {
    "random": at_random,
    "alike": alike,
    "hot and cold": expensive_and_cheap,
    "exchange": exchange,
    "emptiest": emptiest,
    "domain": domain,
    "workload": workload,
    "tight": tight,
    "moved": moved,
    "cheaper moves": cheaper_moves,
    "room": room_for,
}
"""All kinds by name."""

ABOUT_MOVES = frozenset({"moved", "cheaper moves"})
"""Those that follow pods that have moved."""


def _forbidden(features: Features, cls: Ints | int, node: Ints | int) -> Bools:
    """Return whether pods of a class may not stand on a node: of one class for many nodes, or of many for one."""
    forbidden = np.zeros(np.broadcast(cls, node).shape, dtype=np.bool_)
    for rule in features.problem.rules:
        if isinstance(rule, Allow):
            forbidden |= ~rule.mask[rule.row[cls], node]
    return forbidden


def _noisy(key: Floats | Ints, rng: np.random.Generator) -> Ints:
    """Return an order by a key, disturbed so that the first stay among the first."""
    order = np.argsort(key, kind="stable")
    position = (np.arange(len(order)) + 1) * rng.random(len(order))
    disturbed: Ints = order[np.argsort(position, kind="stable")]
    return disturbed


def _ranks(key: Floats) -> Ints:
    ranks = np.empty(len(key), dtype=np.int64)
    ranks[np.argsort(key, kind="stable")] = np.arange(len(key))
    return ranks


def _alternating(*orders: Ints) -> Ints:
    """Take from several orders in turn, each node once."""
    length = max(len(order) for order in orders)
    table = np.full((length, len(orders)), -1, dtype=np.int64)
    for i, order in enumerate(orders):
        table[: len(order), i] = order
    merged = table.ravel()
    return _once(merged[merged >= 0])


def _once(nodes: Ints) -> Ints:
    """Drop what comes a second time."""
    _, first = np.unique(nodes, return_index=True)
    return nodes[np.sort(first)]


def _first(seed: int, order: Ints) -> Ints:
    return np.concatenate([np.array([seed], dtype=np.int64), order[order != seed]])
