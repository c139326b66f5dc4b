"""The points that pods miss at least, plugin by plugin, wherever pods are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import POINTS, Part, Placement
from stowplan.plugins_compat.final_state.affinity_floor import points_missed
from stowplan.plugins_compat.final_state.at_rest import missed_at_rest
from stowplan.plugins_compat.final_state.plugin_scores import (
    AffinityScores,
    BalancedScores,
    ByFramework,
    FitScores,
    FixedScores,
    OnNode,
    OverFeasible,
    ScaledScores,
)
from stowplan.plugins_compat.final_state.scorer import FinalStateScorer
from stowplan.plugins_compat.final_state.spread_scores import SpreadScores
from stowplan.plugins_compat.plugins.resource_scores import ResourceSpec
from stowplan.plugins_compat.plugins.retired.node_resources_least_allocated import NodeResourcesLeastAllocated


def relaxed(
    scorer: FinalStateScorer, start: Placement, points: Mapping[str, int], size: Ints, limit: int | None = None
) -> Sequence[Part]:
    """Return, for each plugin, what no legal placement costs less; see `Part`.

    Parameters
    ----------
    scorer
        At ``start``; pods are taken off.
    points
        Cost of a point of each plugin that counts.
    size
        ``[c]`` pods of each class, placed or not.
    limit
        How many pods may move, if that is limited.
    """
    overloaded, today = unlimited(scorer), start.table(len(scorer.kinds), scorer.framework.state.size)
    at_rest = {}
    if limit is not None:
        for p, one in scorer.scores:
            if scorer.names[p] in points and isinstance(one, SpreadScores | AffinityScores):
                at_rest[p] = missed_at_rest(scorer, one, start, size - today.sum(axis=1), limit)
    scorer.go_to(Placement.of(()))
    found = []
    for p, one in scorer.scores:
        if scorer.names[p] not in points:
            continue
        weight = points[scorer.names[p]] / scorer.unit
        table, crowding, held = _missed(scorer, one, overloaded, start, size)
        found.append(
            Part(
                scorer.names[p],
                table * weight,
                (scorer.most[:, p] * weight).astype(np.float64),
                None if crowding is None else crowding * weight,
                None if held is None else held * weight,
                np.maximum(0.0, at_rest[p] - (table * today).sum(axis=1)) * weight if p in at_rest else None,
            )
        )
    return found


def unlimited(scorer: FinalStateScorer) -> Bools:
    """``[r, n]`` where more may be requested than there is: it is so at the start, or no filter minds."""
    state = scorer.framework.state
    found: Bools = (state.requested > state.allocatable) | ~scorer.feasibility.limited[:, None]
    return found


Missed = tuple[Floats, Floats | None, Floats | None]
"""``table``, ``crowding`` and ``held`` of a `Part`, unweighted."""


def _missed(
    scorer: FinalStateScorer, one: OnNode | OverFeasible, overloaded: Bools, start: Placement, size: Ints
) -> Missed:
    shape = (len(scorer.kinds), scorer.framework.state.size)
    none = np.zeros(shape)
    match one:
        case FitScores():
            return _crowded(scorer, one, overloaded)
        case BalancedScores() if scorer.framework.state.release.balanced != "delta":
            return _apart(scorer, one, overloaded, start)
        case BalancedScores():
            return _unbalanced(scorer, one, overloaded), None, None
        case FixedScores():
            rows = [one.row(c) for c in range(shape[0])]
            return np.array([none[0] if row is None else row.max(initial=0) - row for row in rows]), None, None
        case ScaledScores():
            return np.array([_scaled(one, c, scorer.feasibility.allowed(c)) for c in range(shape[0])]), None, None
        case AffinityScores():
            return points_missed(scorer, one, size, start), None, None
        case ByFramework() if type(one.plugin) is NodeResourcesLeastAllocated and scorer.unit == 1:
            return _least_of_all(scorer, one.plugin, overloaded)
        case _:
            return none, None, None


def _scaled(one: ScaledScores, c: int, allowed: Bools) -> Floats:
    """``[n]`` points missed where scores are scaled by the highest of the feasible nodes.

    Reversed, no feasible node has more than the highest of all nodes that are allowed, so that is the mildest scale.
    Otherwise the mildest scale is that of the node itself: it has all points, if it has anything.
    """
    raw = one.raw[c]
    if one.reverse:
        highest = int(raw[allowed].max(initial=0))
        missed: Floats = (raw * POINTS // max(highest, 1)).clip(0, POINTS).astype(np.float64)
        return missed
    return np.where((raw > 0) | (not raw.any()), 0.0, float(POINTS))


def _crowded(scorer: FinalStateScorer, one: FitScores, overloaded: Bools) -> Missed:
    """Return how pods on a node cost each other points of the least or most allocated strategy.

    Every pod on a node misses ``100·Σ_r w_r·u_r / Σ_r w_r`` points at least of the least allocated strategy, where
    ``u_r`` is the share of the resource that is requested, its own requests included, and 100 less that share of the
    most allocated strategy: floors only add to it. A node that is overloaded at the start may miss less than its share
    says; there, nothing is said of the resource.
    """
    state = scorer.framework.state
    classes, size = len(scorer.kinds), state.size
    none = np.zeros((classes, size))
    kind = one.plugin.args.scoring_strategy.type
    # A resource that counts for some pods and not for others is no function of the node's usage.
    if kind == "RequestedToCapacityRatio" or not classes or not one.usage.of_the_node:
        return none, None, None
    room = one.usage.capacity
    weights = np.where(room > 0, one.usage.weights[:, None], 0)
    total = np.maximum(weights.sum(axis=0), 1)
    rate = POINTS * weights / (np.maximum(room, 1) * total)
    if kind == "LeastAllocated":
        return _least(scorer, one.usage.specs, weights, total, overloaded)
    held = -(rate * one.usage.held).sum(axis=0)
    return none + float(POINTS), -(one.usage.asked.T.astype(np.float64) @ rate), held


def _least_of_all(scorer: FinalStateScorer, plugin: NodeResourcesLeastAllocated, overloaded: Bools) -> Missed:
    """Return the same for the plugin of its own of early releases, where what a node lacks keeps its weight."""
    state = scorer.framework.state
    known = [spec for spec in plugin.specs if spec.name in state.resources]
    weights = np.array([spec.weight or 1 for spec in known], dtype=np.int64)[:, None]
    total = np.full(state.size, sum(spec.weight or 1 for spec in plugin.specs))
    here = state.allocatable[rows_of(scorer, known)] > 0
    return _least(scorer, known, np.where(here, weights, 0), total, overloaded)


def _least(
    scorer: FinalStateScorer, specs: Sequence[ResourceSpec], weights: Ints, total: Ints, overloaded: Bools
) -> Missed:
    """Return what the least allocated strategy misses, for weights ``[r, n]``, 0 where a node lacks one, and their sum.

    What containers without requests count for is not limited by the filter; what is requested is.
    """
    state, rows = scorer.framework.state, rows_of(scorer, specs)
    rate = POINTS * weights / (np.maximum(state.allocatable[rows], 1) * total)
    rate = np.where(overloaded[rows], 0.0, rate)
    lacking = POINTS * (1 - weights.sum(axis=0) / total)
    table = np.zeros((len(scorer.kinds), state.size)) + lacking
    return table, requests_of(scorer, rows).T @ rate, (rate * state.requested[rows]).sum(axis=0)


def rows_of(scorer: FinalStateScorer, specs: Sequence[ResourceSpec]) -> list[int]:
    """Return the rows of some resources in the arrays of the state."""
    return [scorer.framework.state.resources[spec.name] for spec in specs]


def requests_of(scorer: FinalStateScorer, rows: Sequence[int]) -> Floats:
    """``[r, c]`` what a pod of each class requests."""
    vector = scorer.framework.state.vector
    requests = np.array([[vector(kind)[row] for kind in scorer.kinds] for row in rows], dtype=np.float64)
    return requests.reshape(len(rows), len(scorer.kinds))


def _apart(scorer: FinalStateScorer, one: BalancedScores, overloaded: Bools, start: Placement) -> Missed:
    """Return how far apart two resources are at least where the score is that of the node with all its pods.

    A pod misses ``100·|u − v|`` points, or half of that where standard deviations count, for shares ``u`` and ``v`` of
    the two that are used, and all points where one is full. So it misses ``100·(u − v)`` at least, with what is
    requested, which no node has too much of, in ``u``, and what containers without requests count for too in ``v``.
    Which of the two is ``u`` is free to choose on each node: what it is at the start.
    """
    state = scorer.framework.state
    classes, size = len(scorer.kinds), state.size
    none, usage = np.zeros((classes, size)), one.usage
    scored = all(one.most(c) > 0 for c in range(classes))
    if (
        not classes
        or len(usage.specs) != 2
        or not usage.counts_for_all
        or not scored
        or (usage.asked != usage.own).any()
    ):
        return none, None, None
    rows = rows_of(scorer, usage.specs)
    capacity = state.allocatable[rows]
    rate = POINTS * (1.0 if state.release.balanced == "difference" else 0.5) / np.maximum(capacity, 1)
    requests, nodes = requests_of(scorer, rows), np.arange(size)
    held = state.requested[rows], usage.of(np.zeros(size, dtype=np.int64), nodes, there=False)[0]
    pods = start.table(classes, size)
    requested, used = held[0] + requests @ pods, held[1] + usage.own @ pods
    known = (capacity > 0).all(axis=0) & ~overloaded[rows].any(axis=0)
    crowding, fixed = none, np.zeros(size)
    for u, v in ((0, 1), (1, 0)):
        here = known & (rate[u] * requested[u] > rate[v] * used[v])
        more = requests[u][:, None] * rate[u] - usage.own[v][:, None] * rate[v]
        crowding = np.where(here, more, crowding)
        fixed = np.where(here, rate[u] * held[0][u] - rate[v] * held[1][v], fixed)
    return none, crowding, fixed


def _unbalanced(scorer: FinalStateScorer, one: BalancedScores, overloaded: Bools) -> Floats:
    """``[c, n]`` points missed of the balance: a pod cannot improve it by more than its own imbalance on the node."""
    state = scorer.framework.state
    classes, size = len(scorer.kinds), state.size
    none = np.zeros((classes, size))
    specs = one.usage.specs
    if len(specs) != 2:
        return none
    capacity = state.allocatable[rows_of(scorer, specs)]
    both = (capacity > 0).all(axis=0)
    shares = one.usage.asked[:, :, None] / np.maximum(capacity, 1)[:, None, :]
    apart = np.abs(shares[0] - shares[1])
    # Above its capacity, a resource counts as full; then a pod may even out as much as its larger share.
    apart = np.where(overloaded.any(axis=0), shares.max(axis=0), apart)
    gained = np.ceil(POINTS // 2 * apart + 1e-9)
    best = np.minimum(POINTS, POINTS // 2 + np.floor((POINTS // 2 + gained) / 2))
    scored = np.array([one.most(c) > 0 for c in range(classes)], dtype=np.bool_)
    missed: Floats = np.where(both & scored[:, None], POINTS - best, none)
    return missed
