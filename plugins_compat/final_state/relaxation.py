"""The points that pods miss at least, plugin by plugin, wherever pods are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import POINTS, Part, Placement
from stowplan.plugins_compat.final_state.affinity_floor import AffinityFloor
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


class Relaxation:
    """What no legal placement costs less, plugin by plugin; see `Part`.

    Parameters
    ----------
    scorer
        At ``start``; it is read at once, and not kept.
    empty
        Without any of the pods.
    points
        Cost of a point of each plugin that counts.
    size
        ``[c]`` pods of each class, placed or not.
    limit
        How many pods may move, if that is limited.

    Attributes
    ----------
    overloaded
        What is `unlimited` at the start.
    """

    def __init__(
        self,
        scorer: FinalStateScorer,
        empty: FinalStateScorer,
        start: Placement,
        points: Mapping[str, int],
        size: Ints,
        limit: int | None = None,
    ) -> None:
        self.empty, self.points, self._start = empty, points, start
        self.overloaded = unlimited(scorer)
        self._at_rest = {}
        if limit is not None:
            waiting = size - start.placed(len(size))
            for p, one in scorer.scores:
                if scorer.names[p] in points and isinstance(one, SpreadScores | AffinityScores):
                    self._at_rest[p] = missed_at_rest(scorer, one, start, waiting, limit)
        self._scores = [
            (p, AffinityFloor(empty, one, size, start) if isinstance(one, AffinityScores) else one)
            for p, one in empty.scores
            if empty.names[p] in points
        ]

    def parts(self, classes: range) -> Sequence[Part]:
        """Return the rows of some classes."""
        scorer, start, found = self.empty, self._start.only(np.array(classes, dtype=np.int64)), []
        for p, one in self._scores:
            weight = self.points[scorer.names[p]] / scorer.unit
            missed = self._missed(one, classes)
            table, crowding, held, turned = missed.table, missed.crowding, missed.held, missed.turned
            resting = None
            if p in self._at_rest:
                counted = start.count * table[start.cls - classes.start, start.node]
                known = np.bincount(start.cls - classes.start, counted, len(classes))
                resting = np.maximum(0.0, self._at_rest[p][classes] - known) * weight
            found.append(
                Part(
                    scorer.names[p],
                    table * weight,
                    (scorer.most[classes, p] * weight).astype(np.float64),
                    None if crowding is None else crowding * weight,
                    None if held is None else held * weight,
                    None if turned is None else (turned[0] * weight, turned[1] * weight),
                    resting,
                    signed=crowding is not None and _signed(one),
                )
            )
        return found

    def _missed(self, one: OnNode | OverFeasible | AffinityFloor, classes: range) -> Missed:
        scorer, overloaded = self.empty, self.overloaded
        none = np.zeros((len(classes), scorer.framework.state.size))
        match one:
            case AffinityFloor():
                return Missed(one.points_missed(classes))
            case FitScores():
                return _crowded(scorer, one, overloaded, classes)
            case BalancedScores() if scorer.framework.state.release.balanced != "delta":
                return _apart(scorer, one, overloaded, self._start, classes)
            case BalancedScores():
                return Missed(_unbalanced(scorer, one, overloaded, classes))
            case FixedScores():
                for row, c in zip(none, classes, strict=True):
                    row += _below_the_best(one.row(c))
                return Missed(none)
            case ScaledScores():
                for row, c in zip(none, classes, strict=True):
                    row += _scaled(one, c, scorer.feasibility.allowed(c))
                return Missed(none)
            case ByFramework() if type(one.plugin) is NodeResourcesLeastAllocated and scorer.unit == 1:
                return _least_of_all(scorer, one.plugin, overloaded, classes)
            case _:
                return Missed(none)


def _signed(one: OnNode | OverFeasible | AffinityFloor) -> bool:
    """Whether a pod may make others on its node miss less: where they miss how far apart, or how empty it is."""
    if isinstance(one, FitScores):
        return bool(one.plugin.args.scoring_strategy.type != "LeastAllocated")
    return isinstance(one, BalancedScores)


def unlimited(scorer: FinalStateScorer) -> Bools:
    """``[r, n]`` where more may be requested than there is: it is so at the start, or no filter minds."""
    state = scorer.framework.state
    found: Bools = (state.requested > state.allocatable) | ~scorer.feasibility.limited[:, None]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Missed:
    """What a `Part` says, in points."""

    table: Floats
    crowding: Floats | None = None
    held: Floats | None = None
    turned: tuple[Floats, Floats] | None = None


def _below_the_best(points: Ints | None) -> Floats | float:
    """``[n]`` what nodes have less than the best one."""
    return 0.0 if points is None else (points.max(initial=0) - points).astype(np.float64)


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


def _crowded(scorer: FinalStateScorer, one: FitScores, overloaded: Bools, classes: range) -> Missed:
    """Return how pods on a node cost each other points of the least or most allocated strategy.

    Every pod on a node misses ``100·Σ_r w_r·u_r / Σ_r w_r`` points at least of the least allocated strategy, where
    ``u_r`` is the share of the resource that is requested, its own requests included, and 100 less that share of the
    most allocated strategy: floors only add to it. A node that is overloaded at the start may miss less than its share
    says; there, nothing is said of the resource.
    """
    state = scorer.framework.state
    none = np.zeros((len(classes), state.size))
    kind = one.plugin.args.scoring_strategy.type
    # A resource that counts for some pods and not for others is no function of the node's usage.
    if kind == "RequestedToCapacityRatio" or not len(classes) or not one.usage.of_the_node:
        return Missed(none)
    room = one.usage.capacity
    weights = np.where(room > 0, one.usage.weights[:, None], 0)
    total = np.maximum(weights.sum(axis=0), 1)
    rate = POINTS * weights / (np.maximum(room, 1) * total)
    if kind == "LeastAllocated":
        rows = rows_of(scorer, one.usage.specs)
        return _least(scorer, rows, requests_of(scorer, rows, classes), weights, total, overloaded)
    held = POINTS - (rate * one.usage.held).sum(axis=0)
    return Missed(none, -(one.usage.asked[:, classes].T.astype(np.float64) @ rate), held)


def _least_of_all(
    scorer: FinalStateScorer, plugin: NodeResourcesLeastAllocated, overloaded: Bools, classes: range
) -> Missed:
    """Return the same for the plugin of its own of early releases, where what a node lacks keeps its weight.

    Overhead may count for less in the score of a pod than in that of others on its node.
    """
    state = scorer.framework.state
    known = [spec for spec in plugin.specs if spec.name in state.resources]
    weights = np.array([spec.weight or 1 for spec in known], dtype=np.int64)[:, None]
    total = np.full(state.size, sum(spec.weight or 1 for spec in plugin.specs))
    rows, kinds = rows_of(scorer, known), [scorer.kinds[c] for c in classes]
    here = state.allocatable[rows] > 0
    asked = np.array([[plugin.scored.requests(kind).get(spec.name, 0) for kind in kinds] for spec in known])
    requests = np.minimum(requests_of(scorer, rows, classes), asked.reshape(len(known), len(classes)))
    return _least(scorer, rows, requests, np.where(here, weights, 0), total, overloaded)


def _least(
    scorer: FinalStateScorer,
    rows: Sequence[int],
    requests: Floats,
    weights: Ints,
    total: Ints,
    overloaded: Bools,
) -> Missed:
    """Return what the least allocated strategy misses.

    What containers without requests count for is not limited by the filter; what is requested is.

    Parameters
    ----------
    rows
        Of its resources in the arrays of the state.
    requests
        ``[r, c]`` what a pod of each class counts for at least.
    weights, total
        ``[r, n]`` weights, 0 where a node lacks one, and ``[n]`` what they are divided by.
    """
    state = scorer.framework.state
    rate = POINTS * weights / (np.maximum(state.allocatable[rows], 1) * total)
    rate = np.where(overloaded[rows], 0.0, rate)
    lacking = POINTS * (1 - weights.sum(axis=0) / total)
    table = np.zeros((requests.shape[1], state.size)) + lacking
    return Missed(table, requests.T @ rate, (rate * state.requested[rows]).sum(axis=0))


def rows_of(scorer: FinalStateScorer, specs: Sequence[ResourceSpec]) -> list[int]:
    """Return the rows of some resources in the arrays of the state."""
    return [scorer.framework.state.resources[spec.name] for spec in specs]


def requests_of(scorer: FinalStateScorer, rows: Sequence[int], classes: range) -> Floats:
    """``[r, c]`` what a pod of each class requests."""
    vectors = [scorer.framework.state.vector(scorer.kinds[c]) for c in classes]
    requests = np.array([[vector[row] for vector in vectors] for row in rows], dtype=np.float64)
    return requests.reshape(len(rows), len(classes))


def _apart(
    scorer: FinalStateScorer, one: BalancedScores, overloaded: Bools, start: Placement, classes: range
) -> Missed:
    """Return how far apart two resources are at least where the score is that of the node with all its pods.

    A pod misses ``100·|u − v|`` points, or half of that where standard deviations count, for shares ``u`` and ``v`` of
    the two that are used, and all points where one is full. So it misses ``100·(u − v)`` at least, with what is
    requested, which no node has too much of, in ``u``, and what containers without requests count for too in ``v``.
    Which of the two is ``u`` is free to choose on each node: what it is at the start, or the other one.
    """
    state = scorer.framework.state
    every, size = range(len(scorer.kinds)), state.size
    none, usage = np.zeros((len(classes), size)), one.usage
    scored = all(one.most(c) > 0 for c in every)
    if (
        not len(classes)
        or len(usage.specs) != 2
        or not usage.counts_for_all
        or not scored
        or (usage.asked != usage.own).any()
    ):
        return Missed(none)
    rows = rows_of(scorer, usage.specs)
    capacity = state.allocatable[rows]
    rate = POINTS * (1.0 if state.release.balanced == "difference" else 0.5) / np.maximum(capacity, 1)
    requests, nodes = requests_of(scorer, rows, every), np.arange(size)
    held = state.requested[rows], usage.of(np.zeros(size, dtype=np.int64), nodes, there=False)[0]
    requested = [
        fixed + start.per_node(size, amount.astype(np.int64)) for fixed, amount in zip(held[0], requests, strict=True)
    ]
    used = [fixed + start.per_node(size, amount) for fixed, amount in zip(held[1], usage.own, strict=True)]
    known = (capacity > 0).all(axis=0) & ~overloaded[rows].any(axis=0)
    ways, here = [], []
    for u, v in ((0, 1), (1, 0)):
        more = requests[u, classes][:, None] * rate[u] - usage.own[v, classes][:, None] * rate[v]
        ways.append((np.where(known, more, 0.0), np.where(known, rate[u] * held[0][u] - rate[v] * held[1][v], 0.0)))
        here.append(known & (rate[u] * requested[u] > rate[v] * used[v]))
    crowding, fixed = (np.where(here[0], a, np.where(here[1], b, 0.0)) for a, b in zip(*ways, strict=True))
    turned, free = (np.where(here[0], b, a) for a, b in zip(*ways, strict=True))
    return Missed(none, crowding, fixed, (turned, free))


def _unbalanced(scorer: FinalStateScorer, one: BalancedScores, overloaded: Bools, classes: range) -> Floats:
    """``[c, n]`` points missed of the balance: a pod cannot improve it by more than its own imbalance on the node."""
    state = scorer.framework.state
    none = np.zeros((len(classes), state.size))
    specs = one.usage.specs
    if len(specs) != 2:
        return none
    capacity = state.allocatable[rows_of(scorer, specs)]
    both = (capacity > 0).all(axis=0)
    shares = one.usage.asked[:, classes, None] / np.maximum(capacity, 1)[:, None, :]
    apart = np.abs(shares[0] - shares[1])
    # Above its capacity, a resource counts as full; then a pod may even out as much as its larger share.
    apart = np.where(overloaded.any(axis=0), shares.max(axis=0), apart)
    gained = np.ceil(POINTS // 2 * apart + 1e-9)
    best = np.minimum(POINTS, POINTS // 2 + np.floor((POINTS // 2 + gained) / 2))
    scored = np.array([one.most(c) > 0 for c in classes], dtype=np.bool_)
    missed: Floats = np.where(both & scored[:, None], POINTS - best, none)
    return missed
