"""Features of the incumbent by which destroy operators choose which part of it to free."""

from __future__ import annotations

from functools import cached_property
from typing import assert_never

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import (
    CURVES,
    DomainCurve,
    Move,
    MovePeak,
    NodeCurve,
    NodeScore,
    Open,
    Pair,
    Placement,
    Prefer,
    Term,
    Topology,
    Unplaced,
    Violation,
    topologies_of,
)
from stowplan.optimizer.evaluate.cost import missed_points, usage
from stowplan.optimizer.evaluate.violations import violation
from stowplan.optimizer.lns.parameters import LnsParameters
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.mentions import ranges


class Shared:
    """What does not change with the incumbent: groups, topologies and terms of a tier.

    Attributes
    ----------
    capacities
        All of them.
    groups
        Sets of classes that some rule or term names.
    topologies
        Partitions into at least two domains, of which one has several nodes.
    waiting_costs
        Whether pods without a node cost something in the tier.
    counts_nodes
        Whether nodes in use do.
    weighs_moves
        Whether moves do, beside curves.
    nothing_else
        Whether nothing does but moves, preferences for nodes, and curves of single nodes.
    curves
        The curves of node loads.
    """

    def __init__(self, index: Index, tier: int, parameters: LnsParameters | None = None) -> None:
        self.index, self.parameters = index, parameters or LnsParameters()
        self.problem = problem = index.problem
        self.tier = problem.tiers[tier]
        self.curves = index.evaluator.curves(tier)
        terms: list[Term] = [weighted.term for weighted in self.tier.terms]
        parts = [*problem.rules, *terms]
        self.capacities = [rule for _, rule in index.capacities]
        self.groups = [*index.rules_of.groups, *index.terms_of[tier].groups]
        found: dict[int, Topology] = {}
        for part in parts:
            for topology in topologies_of(part):
                if 1 < topology.size < int((topology.domain >= 0).sum()):
                    found.setdefault(id(topology), topology)
        self.topologies = list(found.values())
        self.waiting_costs = any(isinstance(term, Unplaced) for term in terms)
        self.counts_nodes = any(isinstance(term, Open) for term in terms)
        curves = any(isinstance(term, CURVES) for term in terms)
        self.weighs_moves = curves and any(isinstance(term, Move | MovePeak) for term in terms)
        self.nothing_else = all(isinstance(term, NodeCurve | Move | MovePeak | Prefer) for term in terms)


class Features:
    """Features of a placement with respect to one tier.

    Attributes
    ----------
    missing
        ``[c]`` pods without a node.
    """

    def __init__(self, shared: Shared, placement: Placement) -> None:
        self.shared = shared
        self.problem = shared.problem
        self.placement = placement
        self._order = np.argsort(placement.node, kind="stable")
        self._first = np.searchsorted(placement.node[self._order], np.arange(len(self.problem.nodes) + 1))
        self.missing: Ints = self.problem.size - placement.placed(len(self.problem.classes))

    def classes_on(self, n: int) -> Ints:
        """Return the classes that have pods on a node."""
        return self.placement.cls[self._order[self._first[n] : self._first[n + 1]]]

    def holders(self, classes: Ints) -> Ints:
        """Return the nodes that hold pods of any of the classes."""
        first = np.searchsorted(self.placement.cls, classes, "left")
        last = np.searchsorted(self.placement.cls, classes, "right")
        return np.unique(self.placement.node[ranges(first, last)])

    @cached_property
    def pods(self) -> Ints:
        """``[n]`` how many pods are on each node."""
        return self.placement.per_node(len(self.problem.nodes))

    @cached_property
    def fill(self) -> Floats:
        """``[r, n]`` how full each node is of each capacity; 1 is full."""
        nodes = len(self.problem.nodes)
        capacities = self.shared.capacities
        shares = [
            np.minimum(2.0, self.placement.per_node(nodes, rule.demand) / np.maximum(1, rule.free))
            for rule in capacities
        ]
        return np.array(shares).reshape(len(capacities), nodes)

    @cached_property
    def fullness(self) -> Floats:
        """``[n]`` the mean of `fill` over the capacities."""
        if not len(self.fill):
            return self.pods.astype(np.float64)
        mean: Floats = self.fill.mean(axis=0)
        return mean

    @cached_property
    def came(self) -> Placement:
        """Pods that are where they were not at the start."""
        return self.placement.beyond(self.problem.start, len(self.problem.nodes))

    @cached_property
    def left(self) -> Placement:
        """Pods that were at the start where they are not now."""
        return self.problem.start.beyond(self.placement, len(self.problem.nodes))

    @property
    def only_moves_are_left(self) -> bool:
        """Whether no load has a reduced cost, so that only other nodes for moved pods can improve the tier."""
        return self.shared.weighs_moves and self.shared.nothing_else and not self.reduced_cost.any()

    @cached_property
    def node_cost(self) -> Floats:
        """``[n]`` what each node costs in the tier, as far as single nodes tell; its loads count by reduced cost."""
        node_cost = self.reduced_cost.copy()
        for weighted in self.shared.tier.terms:
            node_cost += weighted.weight * self._node_cost(weighted.term)
        return node_cost

    @cached_property
    def loads(self) -> list[Ints]:
        """``[n]`` for each curve of the tier, the loads of its nodes."""
        nodes = len(self.problem.nodes)
        return [self.placement.per_node(nodes, curve.term.demand) + curve.term.held for curve in self.shared.curves]

    @cached_property
    def reduced_cost(self) -> Floats:
        """``[n]`` reduced cost of each node's loads, in the surrogate relaxation."""
        nodes = np.arange(len(self.problem.nodes))
        reduced_cost = np.zeros(len(nodes))
        for curve, load in zip(self.shared.curves, self.loads, strict=True):
            reduced_cost += curve.reduced_cost(nodes, load)
        return reduced_cost

    def _node_cost(self, term: Term) -> Floats:
        nodes = len(self.problem.nodes)
        node_cost = np.zeros(nodes)
        placement = self.placement
        match term:
            case NodeScore():
                node_cost += (
                    term.cost
                    * placement.per_node(nodes, term.scored)
                    * missed_points(term, usage(term, placement, nodes))
                )
            case Prefer():
                np.add.at(
                    node_cost, placement.node, term.table[term.row[placement.cls], placement.node] * placement.count
                )
            case Move():
                new = placement.beyond(self.problem.start, nodes)
                np.add.at(node_cost, new.node, term.cost[new.cls] * new.count)
            case Open():
                node_cost += term.cost * (self.pods > 0)
            case Violation():
                for i in self.shared.index.before:
                    rule = self.problem.rules[i]
                    now = violation(rule, self.problem, placement)
                    topology = getattr(rule, "topology", None)
                    if topology is not None and len(now) == topology.size:
                        node_cost += np.where(topology.domain >= 0, now[topology.domain], 0)
                    elif len(now) % nodes == 0:
                        node_cost += now.reshape(-1, nodes).sum(axis=0)
            case NodeCurve():
                pass  # counts by reduced cost
            case Unplaced() | MovePeak() | DomainCurve() | Pair():
                pass  # no cost of a single node; they have operators of their own
            case _:
                assert_never(term)
        return node_cost
