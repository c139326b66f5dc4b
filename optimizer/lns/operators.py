"""Destroy operators: each names nodes whose pods could be placed better together, the most promising first.

`stowplan.optimizer.lns.extraction` decides how many of them are freed. Every order is randomized, so that the same
incumbent gives different neighborhoods.
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
    """Which part of the incumbent to free, and what to ask of the sub-problem.

    Parameters
    ----------
    nodes
        In the order in which they should be freed.
    waiting
        Classes whose unplaced pods should be included.
    movers
        Classes that stay included where others are left out.
    curves_held
        Whether terms of curves are held at their values, so that only the rest of the tier is minimized.
    anchored
        Whether the neighborhood is worthless without the first node.
    """

    nodes: Ints
    waiting: Ints = field(default_factory=lambda: NONE)
    movers: Ints = field(default_factory=lambda: NONE)
    curves_held: bool = False
    anchored: bool = False


DestroyOperator = Callable[[Features, np.random.Generator], Neighborhood | None]
"""Returns ``None`` where it does not apply to the incumbent."""


def at_random(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """Random nodes."""
    return Neighborhood(rng.permutation(len(features.problem.nodes)))


def alike(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """A node, and the nodes of the most similar utilization."""
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


def exchange(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """A node with reduced cost, and the nodes of pods that would improve it in exchange for its own.

    The loss of these other nodes is left to the model: it can combine exchanges that no single exchange achieves.
    """
    expensive = np.flatnonzero(features.reduced_cost > 0)
    if not len(expensive):
        return None
    seed = int(expensive[_noisy(-features.reduced_cost[expensive], rng)[0]])
    placement, limits = features.placement, features.shared.parameters
    elsewhere = rng.permutation(np.flatnonzero(placement.node != seed))[: limits.offered_pods]
    if not len(elsewhere):
        return None
    goes = rng.permutation(features.classes_on(seed))[: limits.exchanged_pods]
    comes = placement.cls[elsewhere]

    def more(demand: Ints) -> Ints:
        """Additional load of the node: one row for each pod that leaves, the last one for none."""
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
    return Neighborhood(nodes, movers=np.union1d(goes, comes[best[: limits.exchanged_pods]]), anchored=True)


def emptiest(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """The emptiest nodes in use, and others that could take their pods."""
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
    """The nodes of the pods that one rule or term names, and a few others."""
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
    """Nodes of moved pods: the node of one, the node it left, the pods that moved there, and so on."""
    chain = _chain(features, rng, onward=False)
    return (
        None
        if chain is None
        else Neighborhood(_once(np.concatenate([chain, rng.permutation(len(features.problem.nodes))])))
    )


def cheaper_moves(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """Nodes between which pods have moved, and a few others: only moves should get cheaper.

    Where loads cost far more than moves, a model of both spends its time on loads, which are at their minimum already.
    With curves held at their values few choices are left, and far more pods fit into a model that can be solved.
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
    """Return a node to which a pod has moved, those that pods of its class have left, and so on, near ones first.

    Parameters
    ----------
    onward
        Also follow moves from a node to where its pods have moved.
    """
    came, left, limits = features.came, features.left, features.shared.parameters
    seeds = came.node[np.isin(came.cls, left.cls)]  # pods that were unplaced have left no node
    if not len(seeds):
        return None
    chain = [int(rng.choice(seeds))]
    seen = set(chain)
    for n in chain:
        tied = _counterparts(came, left, n, limits.traced_classes, rng)
        if onward:
            tied = np.concatenate([tied, _counterparts(left, came, n, limits.traced_classes, rng)])
        nodes, classes = np.unique(tied, return_counts=True)
        for other in nodes[_noisy(-classes, rng)][: limits.tied_nodes].tolist():
            if other not in seen:
                seen.add(other)
                chain.append(other)
        if len(chain) > limits.longest_chain:
            break
    return np.array(chain, dtype=np.int64)


def _counterparts(here: Placement, there: Placement, n: int, traced: int, rng: np.random.Generator) -> Ints:
    """Return where ``there`` has pods of the classes that ``here`` has on a node, or of ``traced`` of them."""
    classes = rng.permutation(here.cls[here.node == n])[:traced]
    first, last = (np.searchsorted(there.cls, classes, side) for side in ("left", "right"))
    return there.node[ranges(first, last)]


def room_for(features: Features, rng: np.random.Generator) -> Neighborhood | None:
    """The nodes with the smallest shortage for an unplaced pod."""
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
    "expensive and cheap": expensive_and_cheap,
    "exchange": exchange,
    "emptiest": emptiest,
    "domain": domain,
    "workload": workload,
    "tight": tight,
    "moved": moved,
    "cheaper moves": cheaper_moves,
    "room": room_for,
}
"""All destroy operators by name."""

ABOUT_MOVES = frozenset({"moved", "cheaper moves"})
"""The operators that follow moved pods."""


def _forbidden(features: Features, cls: Ints | int, node: Ints | int) -> Bools:
    """Return whether pods of a class are forbidden on a node: of one class for many nodes, or of many for one."""
    forbidden = np.zeros(np.broadcast(cls, node).shape, dtype=np.bool_)
    for rule in features.problem.rules:
        if isinstance(rule, Allow):
            forbidden |= ~rule.mask[rule.row[cls], node]
    return forbidden


def _noisy(key: Floats | Ints, rng: np.random.Generator) -> Ints:
    """Return an order by a key, randomized so that the first stay near the front."""
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
