"""A placement under change: counts, rules and terms kept up to date, every change undoable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.problem import SEVERITY, Allow, Capacity, Excess, MoveBudget, Open, Placement, Problem, Unplaced
from optimizer.evaluate.evaluation import Judge
from optimizer.search.rules import FollowCapacity, Follower, follow
from optimizer.search.terms import Meter, MeterNodeCurve, measure

Values = tuple[int, ...]


class State:
    """Where pods stand, and what that means.

    Attributes
    ----------
    at
        Count by node, for each class.
    on
        Count by class, for each node.
    unplaced
        ``[c]`` pods without a node.
    moved
        Pods that left the node they started on.
    weights
        ``[c]`` the largest share of an average node that a pod takes of anything.
    urgency
        ``[c]`` the first tier in which a pod without a node costs something.
    counts_nodes
        Whether some tier counts the nodes in use.
    """

    def __init__(self, judge: Judge, placement: Placement) -> None:
        problem = judge.problem
        self.problem = problem
        classes, nodes = problem.shape
        self.at: list[dict[int, int]] = [{} for _ in range(classes)]
        self.on: list[dict[int, int]] = [{} for _ in range(nodes)]
        self.unplaced: list[int] = problem.size.tolist()
        self._start = problem.start.counts()
        self._homes = _homes(problem)
        self._journal: list[tuple[int, int, int]] = []
        self._combination, self._wrong = _combined(problem)
        self._out_of_place = 0
        self._budget = min((r.limit for r in problem.rules if isinstance(r, MoveBudget)), default=None)
        self.moved = sum(self._start.values())
        self.weights = _weights(problem)
        self.urgency = _urgency(problem)
        self.counts_nodes = any(isinstance(w.term, Open) for tier in problem.tiers for w in tier.terms)
        self._follow(judge)
        self._measure()
        for c, n, k in placement.entries():
            self.shift(c, n, k)
        self._journal.clear()

    def _follow(self, judge: Judge) -> None:
        self._followers_of: defaultdict[int, list[Follower]] = defaultdict(list)
        self._broken: list[Follower] = []
        for rule, before in zip(self.problem.rules, judge.start_excess, strict=True):
            follower = follow(rule, self.problem, before)
            if follower is not None:
                if follower.was_broken:
                    self._broken.append(follower)
                for c in follower.classes:
                    self._followers_of[c].append(follower)

    def _measure(self) -> None:
        self._meters: list[list[tuple[int, Meter]]] = []
        self._meters_of: defaultdict[int, list[tuple[int, int, Meter]]] = defaultdict(list)
        self._excess_weight: list[int] = []
        for t, tier in enumerate(self.problem.tiers):
            self._excess_weight.append(sum(w.weight for w in tier.terms if isinstance(w.term, Excess)))
            self._meters.append([])
            for weighted in tier.terms:
                meter = measure(weighted.term, self.problem)
                if meter is not None:
                    self._meters[t].append((weighted.weight, meter))
                    for c in meter.classes:
                        self._meters_of[c].append((t, weighted.weight, meter))

    # -- looking ----------------------------------------------------------------------------------------------

    def values(self) -> Values:
        """Return the value of each tier."""
        excess = sum(follower.weighted() for follower in self._broken) + self._out_of_place * SEVERITY
        return tuple(
            sum(weight * meter.value for weight, meter in meters) + excess * excess_weight
            for meters, excess_weight in zip(self._meters, self._excess_weight, strict=True)
        )

    def placement(self) -> Placement:
        """Return where pods stand now."""
        return Placement.of((c, n, k) for c, nodes in enumerate(self.at) for n, k in nodes.items())

    def open_to(self, c: int) -> Bools:
        """``[n]`` nodes that could take one more pod of a class, as far as can be told without trying."""
        wrong = self._wrong[self._combination[c]]
        mask: Bools = wrong == 0
        for n in self._homes.get(c, ()):
            if wrong[n] and self.at[c].get(n, 0) < self._start[c, n]:
                mask[n] = True
        for follower in self._followers_of[c]:
            room = follower.room_for(c)
            if room is not None:
                mask &= room
        return mask

    def allowed(self, c: int) -> Bools:
        """``[n]`` nodes that a class may use when they are empty."""
        mask: Bools = self._wrong[self._combination[c]] == 0
        return mask

    def best(self, c: int, mask: Bools) -> int | None:
        """Return the node of a mask where one more pod of a class costs least, tier after tier."""
        candidates = np.flatnonzero(mask)
        marginals: dict[int, Ints] = {}
        for t, weight, meter in self._meters_of[c]:
            if len(candidates) < 2:
                break
            marginal = meter.marginal(c)
            if marginal is not None:
                marginals[t] = marginals.get(t, 0) + marginal * weight
        for t in sorted(marginals):
            if len(candidates) < 2:
                break
            costs = marginals[t][candidates]
            candidates = candidates[costs == costs.min()]
        return int(candidates[0]) if len(candidates) else None

    def capacities(self, c: int) -> list[FollowCapacity]:
        """Return the followers of the capacities that a class uses."""
        return [follower for follower in self._followers_of[c] if isinstance(follower, FollowCapacity)]

    def curves(self) -> list[tuple[int, MeterNodeCurve]]:
        """Return the meters of curves of node loads, with their weights."""
        return [(w, meter) for meters in self._meters for w, meter in meters if isinstance(meter, MeterNodeCurve)]

    def legal(self, classes: Iterable[int]) -> bool:
        """Whether the rules that speak of any of these classes hold."""
        if self._budget is not None and self.moved > self._budget:
            return False
        checked: set[int] = set()
        for c in classes:
            for follower in self._followers_of[c]:
                if id(follower) not in checked and (follower.fragile or follower.was_broken):
                    checked.add(id(follower))
                    if not follower.holds():
                        return False
        return True

    # -- changing ---------------------------------------------------------------------------------------------

    def shift(self, c: int, n: int, k: int) -> None:
        """Put ``k`` pods of a class on a node; a negative number takes them off."""
        self._journal.append((c, n, k))
        here = self.at[c].get(n, 0)
        if here + k:
            self.at[c][n] = self.on[n][c] = here + k
        else:
            del self.at[c][n], self.on[n][c]
        self.unplaced[c] -= k
        start = self._start.get((c, n), 0)
        arrived = max(0, here + k - start) - max(0, here - start)
        self.moved += max(0, start - here - k) - max(0, start - here)
        self._out_of_place += int(self._wrong[self._combination[c], n]) * k
        for follower in self._followers_of[c]:
            follower.shift(c, n, k)
            if arrived and follower.was_broken:
                follower.arrive(c, n, arrived)
        for _, _, meter in self._meters_of[c]:
            meter.shift(c, n, k)

    def mark(self) -> int:
        """Return a point to which `undo` can go back."""
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Take back every change since a mark."""
        while len(self._journal) > mark:
            c, n, k = self._journal.pop()
            self.shift(c, n, -k)
            self._journal.pop()

    def touched(self, mark: int) -> set[int]:
        """Return the classes that changed since a mark."""
        return {c for c, _, _ in self._journal[mark:]}


def _homes(problem: Problem) -> dict[int, list[int]]:
    homes: dict[int, list[int]] = {}
    for c, n, _ in problem.start.entries():
        homes.setdefault(c, []).append(n)
    return homes


def _weights(problem: Problem) -> Floats:
    weights = np.zeros(len(problem.classes))
    for rule in problem.rules:
        if isinstance(rule, Capacity):
            weights = np.maximum(weights, rule.demand / max(1.0, float(np.maximum(0, rule.free).mean())))
    return weights


def _urgency(problem: Problem) -> list[int]:
    urgency = [len(problem.tiers)] * len(problem.classes)
    for t, tier in reversed(list(enumerate(problem.tiers))):
        for weighted in tier.terms:
            if isinstance(weighted.term, Unplaced):
                for c in np.flatnonzero(weighted.term.cost).tolist():
                    urgency[c] = t
    return urgency


def _combined(problem: Problem) -> tuple[Ints, Ints]:
    """Combine all `Allow` rules: which combination of rows each class has, and how many rules forbid a node to it."""
    classes, nodes = problem.shape
    rules = [rule for rule in problem.rules if isinstance(rule, Allow)]
    if not rules:
        return np.zeros(classes, dtype=np.int64), np.zeros((1, nodes), dtype=np.int64)
    rows = np.stack([rule.row for rule in rules])
    distinct, combination = np.unique(rows, axis=1, return_inverse=True)
    wrong = np.zeros((distinct.shape[1], nodes), dtype=np.int64)
    for rule, row in zip(rules, distinct, strict=True):
        wrong += ~rule.mask[row]
    return combination.reshape(-1).astype(np.int64), wrong
