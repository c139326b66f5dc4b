"""The points that pods miss at least, in more detail than `relaxation`: exact for small clusters with room."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import POINTS, Detail, Line, NodePoints, Part
from stowplan.plugins_compat.final_state.plugin_scores import (
    AffinityScores,
    BalancedScores,
    ByFramework,
    FitScores,
    OnNode,
    OverFeasible,
    Usage,
)
from stowplan.plugins_compat.final_state.relaxation import Relaxation, requests_of, rows_of
from stowplan.plugins_compat.final_state.scorer import FinalStateScorer
from stowplan.plugins_compat.final_state.spread_scores import SpreadScores
from stowplan.plugins_compat.final_state.workload_costs import Counts, workload_costs
from stowplan.plugins_compat.plugins.retired.node_resources_least_allocated import NodeResourcesLeastAllocated

ROUNDED = 1e-6
"""What a score that upstream computes in floating point may be above the exact one, in points."""


def detailed(relaxation: Relaxation, pods: Counts, enough: Callable[[], bool]) -> Sequence[Detail]:
    """Return, for each plugin, what no legal placement costs less; see `Detail`.

    Parameters
    ----------
    relaxation
        What each plugin costs at least in less detail.
    pods
        How many there can be.
    enough
        Whether to leave out what is not known yet.
    """
    empty = relaxation.empty
    parts = {part.name: part for part in relaxation.parts(range(len(pods.size)))}
    loads = _Loads(empty, relaxation.overloaded, pods.most)
    found = []
    for p, one in empty.scores:
        part = parts.get(empty.names[p])
        if part is None:
            continue
        price = relaxation.points[part.name] / empty.unit
        if isinstance(one, AffinityScores | SpreadScores):
            workloads = workload_costs(empty, one, pods, price, enough)
            table = part.table.copy()
            for workload in workloads:
                table[workload.classes] = 0.0
            found.append(Detail(part.name, table, part.missing, workloads=workloads))
            continue
        by_load = loads.points(one, price) if empty.unit == 1 else None
        if by_load is not None:
            found.append(Detail(part.name, np.zeros_like(part.table), part.missing, by_load))
        else:
            found.append(Detail(part.name, part.table, part.missing, _crowding(part, price)))
    return found


def _crowding(part: Part, price: float) -> NodePoints | None:
    """Return what pods on a node cost each other by a `Part`."""
    if (part.crowding is None and part.held is None) or not price:
        return None
    nodes = part.table.shape[1]
    line = Line(
        np.zeros(nodes) if part.held is None else part.held / price,
        np.zeros_like(part.table) if part.crowding is None else part.crowding / price,
    )
    return NodePoints(price, ((line,),), np.ones((1, nodes)), np.zeros(nodes), whole=False)


class _Loads:
    """Scores by what is used of a node, for pods that may be on each.

    Parameters
    ----------
    scorer
        Without the pods.
    overloaded
        ``[r, n]`` where more may be requested than there is.
    most
        ``[c, n]`` the most pods of each class on each node.
    """

    def __init__(self, scorer: FinalStateScorer, overloaded: Bools, most: Ints) -> None:
        self._scorer, self._state = scorer, scorer.framework.state
        self._overloaded, self._most = overloaded, most

    def points(self, one: OnNode | OverFeasible, price: float) -> NodePoints | None:
        """Return what a score misses by the loads of nodes; ``None`` if it is no such score."""
        state, kinds = self._state, self._scorer.kinds
        if not kinds:
            return None
        if isinstance(one, FitScores) and one.plugin.args.scoring_strategy.type == "LeastAllocated":
            if not one.usage.of_the_node:
                return None
            weights = np.where(one.usage.capacity > 0, one.usage.weights[:, None], 0)
            return self._least(one.usage, weights, np.maximum(weights.sum(axis=0), 1), price)
        if isinstance(one, ByFramework) and type(one.plugin) is NodeResourcesLeastAllocated:
            usage = Usage(one.plugin.scored, kinds)
            if (usage.asked != usage.own).any():
                return None
            weights = np.where(state.allocatable[rows_of(self._scorer, usage.specs)] > 0, usage.weights[:, None], 0)
            return self._least(usage, weights, np.full(state.size, sum(s.weight or 1 for s in one.plugin.specs)), price)
        if isinstance(one, BalancedScores) and state.release.balanced != "delta":
            scored = all(one.most(c) > 0 for c in range(len(kinds)))
            two = len(one.usage.specs) == 2 and one.usage.counts_for_all
            if scored and two and (one.usage.asked == one.usage.own).all():
                return self._balanced(one.usage, price)
        return None

    def _least(self, usage: Usage, weights: Ints, total: Ints, price: float) -> NodePoints:
        """Return what the least allocated strategy misses: the share that is used of each resource, rounded up."""
        share = weights / total
        nothing = np.zeros(self._state.size)
        rest = np.where(share.any(axis=0), POINTS * (1 - share.sum(axis=0)), float(POINTS))
        pieces = tuple((self._line([(1.0, *each)], nothing),) for each in self._used(usage, legal=True))
        return NodePoints(float(price), pieces, share, rest, whole=True)

    def _balanced(self, usage: Usage, price: float) -> NodePoints:
        """Return what is missed where two resources are used to different shares."""
        rate = 1.0 if self._state.release.balanced == "difference" else 0.5
        at_least, as_counted = self._used(usage, legal=True), self._used(usage, legal=False)
        both = (usage.capacity > 0).all(axis=0)
        lines = tuple(
            self._line(
                [(np.where(both, rate, 0.0), *at_least[u]), (np.where(both, -rate, 0.0), *as_counted[v])], -ROUNDED
            )
            for u, v in ((0, 1), (1, 0))
        )
        nodes = self._state.size
        return NodePoints(float(price), (lines,), np.ones((1, nodes)), np.zeros(nodes), whole=True)

    def _used(self, usage: Usage, *, legal: bool) -> list[tuple[Floats, Floats]]:
        """Return for each resource what is used in percent: ``[n]`` by pods outside the problem, ``[c, n]`` by a pod.

        Parameters
        ----------
        legal
            Count what is requested where containers that request nothing might fill the node, and nothing where no
            filter limits that either: what counts then is never above 100, nor above what the score counts.
        """
        state, rows = self._state, rows_of(self._scorer, usage.specs)
        requests, held = requests_of(self._scorer, rows, range(len(self._scorer.kinds))), usage.held
        found = []
        for i, row in enumerate(rows):
            capacity = state.allocatable[row]
            own = np.repeat(usage.own[i][:, None], state.size, axis=1)
            before = held[i]
            if legal:
                fits = before + (usage.own[i] @ self._most) <= capacity
                limited = np.where(self._overloaded[row], 0, requests[i][:, None])
                own = np.where(fits, own, limited)
                before = np.where(fits, before, np.where(self._overloaded[row], 0, state.requested[row]))
            rate = np.where(capacity > 0, POINTS / np.maximum(capacity, 1), 0.0)
            found.append((before * rate, own * rate))
        return found

    @staticmethod
    def _line(terms: Sequence[tuple[Floats | float, Floats, Floats]], constant: Floats | float) -> Line:
        """Return a weighted sum of what is used of resources."""
        held, own = np.zeros_like(terms[0][1]), np.zeros_like(terms[0][2])
        return Line(
            sum((weight * before for weight, before, _ in terms), held) + constant,
            sum((weight * each for weight, _, each in terms), own),
        )
