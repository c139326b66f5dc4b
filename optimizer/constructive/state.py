"""The placement that constructive heuristics change one pod at a time, and which changes are legal."""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from typing import assert_never

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    NOWHERE,
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    GroupMoveBudget,
    MoveBudget,
    Occupy,
    Placement,
    Repel,
    Rule,
    Spread,
    Topology,
)
from stowplan.optimizer.evaluate import Evaluator

UNLIMITED = 1 << 40
"""Moves that are left where no rule limits them."""


class State:
    """A placement, the loads of its nodes, and the moves that are left.

    Two rules are read from tables that `shift` updates: capacities and allowed nodes. They are read on the safe side: a
    node that is overloaded at the start receives no pod that adds to the load. The others are evaluated, as far as
    they name the class that moves.
    """

    def __init__(self, evaluator: Evaluator, placement: Placement) -> None:
        self.evaluator, self.problem = evaluator, evaluator.problem
        problem = self.problem
        self.nodes = len(problem.nodes)
        self.limit = UNLIMITED if problem.move_limit is None else problem.move_limit
        self._allow = [rule for rule in problem.rules if isinstance(rule, Allow)]
        self._capacities = [rule for rule in problem.rules if isinstance(rule, Capacity)]
        self._demand = np.array([rule.demand for rule in self._capacities]).reshape(
            len(self._capacities), len(problem.classes)
        )
        self._naming: list[list[int]] = [[] for _ in problem.classes]
        for i, rule in enumerate(problem.rules):
            for c in named(rule).tolist():
                self._naming[c].append(i)
        self.replace(placement)

    def replace(self, placement: Placement) -> None:
        """Go on with another legal placement."""
        self.placement = placement
        self.pods = placement.per_node(self.nodes)
        self.moved = self.problem.start.moved(placement, self.nodes)
        self._room = np.array(
            [np.maximum(0, rule.free) - placement.per_node(self.nodes, rule.demand) for rule in self._capacities]
        ).reshape(len(self._capacities), self.nodes)

    def is_named(self, cls: Ints) -> Bools:
        """``[...]`` whether rules that are not read from tables name each class."""
        naming: Bools = self._is_named[cls]
        return naming

    @cached_property
    def _is_named(self) -> Bools:
        return np.array([bool(rules) for rules in self._naming], dtype=np.bool_)

    def admit(self, cls: Ints, node: Ints) -> Bools:
        """``[..., n]`` whether one more pod of a class may come to a node, as far as tables tell.

        Parameters
        ----------
        cls, node
            ``[c, 1]`` and ``[n]`` for a table, or ``[n]`` and ``[n]`` for pairs.
        """
        fit = np.ones(np.broadcast_shapes(cls.shape, node.shape), dtype=np.bool_)
        for rule in self._allow:
            fit &= rule.mask[rule.row[cls], node]
        for demand, room in zip(self._demand, self._room, strict=True):
            fit &= (demand[cls] <= np.maximum(0, room[node])) | (demand[cls] <= 0)
        return fit

    @property
    def left(self) -> int:
        """How many more pods may leave the node they started on."""
        return self.limit - self.moved

    @cached_property
    def _largest(self) -> Ints:
        """``[r, 1]`` the largest node's capacity, at least 1."""
        largest = [max(1, int(rule.free.max(initial=1))) for rule in self._capacities]
        return np.array(largest, dtype=np.int64).reshape(-1, 1)

    def room(self) -> Ints:
        """``[n]`` free capacity of each node, summed over resources in millionths of the largest node's."""
        total: Ints = (self._room * 1_000_000 // self._largest).sum(axis=0)
        return total

    def size(self, c: int) -> int:
        """Return the largest share of a node that a pod of a class takes, in millionths."""
        shares = zip(self._demand[:, c].tolist(), self._largest.ravel().tolist(), strict=True)
        return max((demand * 1_000_000 // largest for demand, largest in shares), default=0)

    def fits(self, cls: Ints, node: Ints) -> Bools:
        """``[c, n]`` whether one more pod of a class may come to a node, as far as tables tell."""
        return self.admit(cls[:, None], node)

    def allowed(self, c: int) -> Bools:
        """``[n]`` whether a pod of a class may be on a node at all."""
        found = np.ones(self.nodes, dtype=np.bool_)
        for rule in self._allow:
            found &= rule.mask[rule.row[c]]
        return found

    def demands(self, cls: Ints) -> Ints:
        """``[r, c]`` what a pod of each class takes of each capacity."""
        demand: Ints = self._demand[:, cls]
        return demand

    def missing(self, c: int, n: int) -> Ints:
        """``[r]`` how much of each capacity a node lacks for one more pod of a class; not above 0 where it suffices."""
        needed = self._demand[:, c]
        lacking: Ints = np.where(needed > 0, needed - self._room[:, n], 0)
        return lacking

    def count(self, c: int, n: int) -> int:
        """Return how many pods of a class are on a node."""
        return self.placement.at(c, n)

    def arrived(self, c: int, n: int) -> int:
        """Return how many pods of a class are on a node beyond those that were there at the start."""
        return max(0, self.count(c, n) - self.problem.start.at(c, n))

    def costs_a_move(self, c: int, source: int, target: int) -> int:
        """Return by how much the number of moved pods rises, 1, 0 or -1."""
        start = self.problem.start
        leaves = source != NOWHERE and self.count(c, source) <= start.at(c, source)
        returns = target != NOWHERE and self.count(c, target) < start.at(c, target)
        return int(leaves) - int(returns)

    def legal(self, c: int, source: int, target: int) -> bool:
        """Whether a legal placement stays legal if a pod of the class comes from one node to another."""
        return self._in_budget(c, source, target) and self._broken(c, source, target) is None

    def forbidden(self, c: int, source: int, target: int) -> Ints:
        """Return a node to which a pod may not come, and others to which it may not for the same reason; or none.

        What a rule says of one node it says of all in the same domain of its topology.
        """
        if not self._in_budget(c, source, target):
            return np.array([target], dtype=np.int64)
        rule = self._broken(c, source, target)
        match rule:
            case None:
                return np.zeros(0, dtype=np.int64)
            case AtMost() | Occupy() | Repel() | Spread():
                topologies: tuple[Topology, ...] = (rule.topology,)
            case Attract():
                topologies = rule.topologies
            case _:
                return np.array([target], dtype=np.int64)
        alike = np.ones(self.nodes, dtype=np.bool_)
        for topology in topologies:
            alike &= topology.domain == topology.domain[target]
        return np.flatnonzero(alike)

    def _in_budget(self, c: int, source: int, target: int) -> bool:
        return self.costs_a_move(c, source, target) <= max(0, self.left)

    def _broken(self, c: int, source: int, target: int) -> Rule | None:
        """Return a rule that a move breaks, or ``None``."""
        if not self._naming[c]:
            return None
        after = self.placement.with_pod_moved(c, source, target)
        return next((self.problem.rules[i] for i in self._naming[c] if self.evaluator.breaks(after, i)), None)

    def tightest(self, c: int, source: int, among: Ints, trials: int) -> int | None:
        """Return the node with the least room that may take a pod of a class from another one, or ``None``.

        Parameters
        ----------
        among
            The nodes that count.
        trials
            How many nodes with room are tried at most.
        """
        others = among[among != source]
        fitting = others[self.fits(np.array([c]), others)[0]]
        order = fitting[np.argsort(self.room()[fitting], kind="stable")]
        return next((n for n in islice(order.tolist(), trials) if self.legal(c, source, n)), None)

    def shift(self, c: int, source: int, target: int) -> None:
        """Let a pod of a class come from one node to another."""
        self.moved += self.costs_a_move(c, source, target)
        self.placement = self.placement.with_pod_moved(c, source, target)
        for n, pods in ((source, -1), (target, 1)):
            if n != NOWHERE:
                self.pods[n] += pods
                self._room[:, n] -= pods * self._demand[:, c]


def named(rule: Rule) -> Ints:
    """Return the classes whose changes can violate a rule in a way that tables do not show."""
    match rule:
        case Allow() | MoveBudget():
            return np.zeros(0, dtype=np.int64)
        case Capacity():
            return np.flatnonzero(rule.demand != 0 if rule.held_on_source else rule.demand < 0)
        case AtMost() | Occupy() | GroupMoveBudget():
            return rule.group
        case Repel() | Attract():
            return np.union1d(rule.seekers, rule.targets)
        case Spread():
            return np.union1d(rule.seekers, rule.counted)
        case Distinct():
            return np.flatnonzero((rule.own > 0) | (rule.bundle >= 0))
        case Devices():
            return rule.asking
        case _:
            assert_never(rule)
