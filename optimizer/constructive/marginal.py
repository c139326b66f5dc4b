"""Marginal costs: what one more pod of a class costs a term on a node, and what one pod less saves.

A term is either *local*, the sum of one function for each node, or *relational*: it counts the pods of a few classes
in domains of nodes. `marginals` splits the terms of a tier accordingly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, assert_never

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    Curves,
    DomainCurve,
    Load,
    Move,
    MovePeak,
    NodeCurve,
    NodeScore,
    Open,
    Pair,
    Placement,
    Prefer,
    Problem,
    Tier,
    Unplaced,
    Violation,
)
from stowplan.optimizer.evaluate.cost import missed_points, usage
from stowplan.optimizer.evaluate.violations import pods_by_role, roles


class Marginal(Protocol):
    """Marginal costs of a weighted term at the current placement.

    Attributes
    ----------
    classes
        Classes whose pods the term reads, or ``None`` if it may read all of them.
    """

    classes: Ints | None

    def rise(self, cls: Ints, node: Ints, pods: int) -> Ints:
        """``[..., n]`` change of the term if ``pods`` pods, 1 or -1, of a class come to a node.

        Parameters
        ----------
        cls, node
            ``[c, 1]`` and ``[n]`` for a table, or ``[n]`` and ``[n]`` for pairs.
        """

    def shift(self, c: int, n: int, pods: int) -> None:
        """Update the placement: so many pods of a class have come to a node."""


def marginals(problem: Problem, tier: Tier, placement: Placement) -> tuple[list[Marginal], list[Marginal]]:
    """Return the marginal costs of a tier's local terms, and of its relational ones.

    Violations are left out, since a legal change never adds to them; so are unplaced pods, which no move changes, and
    the greatest number of leavers of a group, which depends on all nodes.
    """
    local: list[Marginal] = []
    relational: list[Marginal] = []
    for weighted in tier.terms:
        weight = weighted.weight
        match weighted.term:
            case NodeCurve() as term:
                local.append(_NodeCurve(weight, term, placement))
            case NodeScore() as term:
                local.append(_NodeScore(weight, term, placement, len(problem.nodes)))
            case Open() as term:
                local.append(_Open(weight, term, placement))
            case Move() as term:
                local.append(_Move(weight, term, problem, placement))
            case Prefer() as term:
                local.append(_Prefer(weight, term))
            case DomainCurve() as term:
                relational.append(_DomainCurve(weight, term, placement))
            case Pair() as term:
                relational.append(_Pair(weight, term, placement))
            case Violation() | Unplaced() | MovePeak():
                pass
            case other:
                assert_never(other)
    return local, relational


class _NodeCurve:
    classes: Ints | None = None

    def __init__(self, weight: int, term: NodeCurve, placement: Placement) -> None:
        self._weight, self._term = weight, term
        self._load = placement.per_node(len(term.held), term.demand) + term.held

    def rise(self, cls: Ints, node: Ints, pods: int) -> Ints:
        before = self._load[node]
        after = before + pods * self._term.demand[cls]
        curve = self._term.curve[node]
        change: Ints = self._weight * (
            curve_values(self._term.curves, curve, after) - curve_values(self._term.curves, curve, before)
        )
        return change

    def shift(self, c: int, n: int, pods: int) -> None:
        self._load[n] += pods * self._term.demand[c]


class _NodeScore:
    classes: Ints | None = None

    def __init__(self, weight: int, term: NodeScore, placement: Placement, nodes: int) -> None:
        self._weight, self._term = weight * term.cost, term
        self._usage = usage(term, placement, nodes)
        self._scored = placement.per_node(nodes, term.scored)

    def rise(self, cls: Ints, node: Ints, pods: int) -> Ints:
        term = self._term
        wide = np.broadcast_shapes(cls.shape, node.shape)
        scored = np.broadcast_to(self._scored[node], wide)
        before = np.broadcast_to(self._missed(node, self._usage[:, node]), wide)
        where = np.broadcast_to(node, wide).ravel()
        added = [np.broadcast_to(pods * load.demand[cls], wide).ravel() for load in term.loads]
        after = self._missed(where, self._usage[:, where] + np.array(added)).reshape(wide)
        change: Ints = self._weight * ((scored + pods * term.scored[cls]) * after - scored * before)
        return change

    def _missed(self, node: Ints, used: Ints) -> Ints:
        """Return the points that a pod misses on ``node[i]`` with the usage ``[r, i]``."""
        loads = tuple(Load(load.demand, load.held[node], load.capacity[node], load.weight) for load in self._term.loads)
        part = NodeScore(self._term.origin, self._term.kind, loads, self._term.cost, self._term.scored)
        return missed_points(part, used)

    def shift(self, c: int, n: int, pods: int) -> None:
        self._scored[n] += pods * self._term.scored[c]
        for r, load in enumerate(self._term.loads):
            self._usage[r, n] += pods * load.demand[c]


class _Open:
    classes: Ints | None = None

    def __init__(self, weight: int, term: Open, placement: Placement) -> None:
        self._cost = weight * term.cost
        self._pods = placement.per_node(len(term.held)) + term.held

    def rise(self, cls: Ints, node: Ints, pods: int) -> Ints:
        used = (self._pods[node] + pods > 0).astype(np.int64) - (self._pods[node] > 0)
        return np.broadcast_to(self._cost[node] * used, np.broadcast_shapes(cls.shape, node.shape))

    def shift(self, c: int, n: int, pods: int) -> None:
        self._pods[n] += pods


class _Move:
    """Only on nodes where pods of a class were at the start does it matter whether they still are."""

    classes: Ints | None = None

    def __init__(self, weight: int, term: Move, problem: Problem, placement: Placement) -> None:
        start, self._nodes = problem.start, len(problem.nodes)
        self._cost = weight * term.cost
        self._key = start.cls * self._nodes + start.node
        self._left = start.count.copy()
        self._by_node = np.argsort(start.node, kind="stable")
        self._first = np.searchsorted(start.node[self._by_node], np.arange(self._nodes + 1))
        self._cls, self._node = start.cls, start.node
        now = placement.cls * self._nodes + placement.node
        if len(now):
            at = np.minimum(np.searchsorted(now, self._key), len(now) - 1)
            self._left -= np.where(now[at] == self._key, placement.count[at], 0)

    def rise(self, cls: Ints, node: Ints, pods: int) -> Ints:
        change = np.zeros(np.broadcast_shapes(cls.shape, node.shape), dtype=np.int64)
        if not len(self._key):
            return change
        if cls.size == 1:
            first, last = np.searchsorted(self._cls, (cls.flat[0], cls.flat[0] + 1))
            of_class = np.zeros(self._nodes, dtype=np.int64)
            of_class[self._node[first:last]] = self._change(np.arange(first, last), pods)
            change += of_class[node]
            return change
        if cls.ndim == 1:
            key = cls * self._nodes + node
            at = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
            return np.where(self._key[at] == key, self._change(at, pods), 0)
        row = np.full(len(self._cost), -1, dtype=np.int64)
        row[cls[:, 0]] = np.arange(len(cls))
        for column, n in enumerate(node.tolist()):
            here = self._by_node[self._first[n] : self._first[n + 1]]
            here = here[row[self._cls[here]] >= 0]
            change[row[self._cls[here]], column] = self._change(here, pods)
        return change

    def _change(self, at: Ints, pods: int) -> Ints:
        left = self._left[at]
        change: Ints = self._cost[self._cls[at]] * (np.maximum(0, left - pods) - np.maximum(0, left))
        return change

    def shift(self, c: int, n: int, pods: int) -> None:
        key = c * self._nodes + n
        at = int(np.searchsorted(self._key, key))
        if at < len(self._key) and self._key[at] == key:
            self._left[at] -= pods


class _Prefer:
    classes: Ints | None = None

    def __init__(self, weight: int, term: Prefer) -> None:
        self._weight, self._term = weight, term

    def rise(self, cls: Ints, node: Ints, pods: int) -> Ints:
        change: Ints = self._weight * pods * self._term.table[self._term.row[cls], node]
        return change

    def shift(self, c: int, n: int, pods: int) -> None:
        pass


class _DomainCurve:
    def __init__(self, weight: int, term: DomainCurve, placement: Placement) -> None:
        self._weight, self._curves, self._domain = weight, term.curves, term.topology.domain
        self._members, self._group = term.group, set(term.group.tolist())
        self._count = term.topology.pods(placement.only(term.group)) + term.held
        self.classes: Ints | None = term.group
        self._steps = np.zeros(0, dtype=np.int64)

    def rise(self, cls: Ints, node: Ints, pods: int) -> Ints:
        domain = self._domain[node]
        if not len(self._count):
            return np.zeros(np.broadcast_shapes(cls.shape, node.shape), dtype=np.int64)
        change = self._changes(pods)[domain]
        change[domain < 0] = 0
        if cls.size == 1 and int(cls.flat[0]) in self._group:
            return np.broadcast_to(change, np.broadcast_shapes(cls.shape, node.shape))
        return np.where(np.isin(cls, self._members), change, 0)

    def _changes(self, pods: int) -> Ints:
        """``[d]`` what one more or one less in a domain changes; read off a table, since domains hold few pods each."""
        most = int(self._count.max()) + 2
        if len(self._steps) < most + 1:
            count = np.arange(-1, most + 1)
            values = self._curves.at(np.zeros(len(count), dtype=np.int64), count)
            self._steps = self._weight * np.diff(values)  # from -1 to 0 pods, and so on
        changes: Ints = self._steps[self._count + 1] if pods > 0 else -self._steps[self._count]
        return changes

    def shift(self, c: int, n: int, pods: int) -> None:
        if c in self._group and self._domain[n] >= 0:
            self._count[self._domain[n]] += pods


class _Pair:
    def __init__(self, weight: int, term: Pair, placement: Placement) -> None:
        self._cost = weight * term.cost * (1 if term.together else -1)
        self._domain = term.topology.domain
        groups = roles(term.seekers, term.targets)
        self._count = pods_by_role(term, placement)
        self._role = {c: role for role, group in enumerate(groups) for c in group.tolist()}
        self.classes: Ints | None = np.union1d(term.seekers, term.targets)

    def rise(self, cls: Ints, node: Ints, pods: int) -> Ints:
        role = np.array([self._role.get(c, -1) for c in cls.ravel().tolist()], dtype=np.int64).reshape(cls.shape)
        domain = self._domain[node]
        change = np.zeros(np.broadcast_shapes(cls.shape, node.shape), dtype=np.int64)
        if not self._count.shape[1]:
            return change
        count = self._count[:, np.maximum(0, domain)]
        for which in range(3):
            more = count.copy()
            more[which] += pods
            rise = np.where(domain >= 0, self._cost * (_together(more) - _together(count)), 0)
            change = np.where(role == which, rise, change)
        return change

    def shift(self, c: int, n: int, pods: int) -> None:
        if c in self._role and self._domain[n] >= 0:
            self._count[self._role[c], self._domain[n]] += pods


def _together(count: Ints) -> Ints:
    """Return the pairs (seeker, other target) among ``[3, ...]`` pods that are both, seekers and targets."""
    both, seekers, targets = count
    pairs: Ints = (both + seekers) * (both + targets) - both
    return pairs


def curve_values(curves: Curves, curve: Ints, x: Ints) -> Ints:
    """``[..., n]`` evaluate ``curves[curve[n]]`` at each ``x[..., n]``; 0 where ``curve[n]`` is -1."""
    values = np.zeros_like(x)
    for k in np.unique(curve[curve >= 0]).tolist():
        here = curve == k
        at = x[..., here]
        piece = np.maximum(0, np.searchsorted(curves.start[k], at, side="right") - 1)
        values[..., here] = curves.value[k, piece] + curves.slope[k, piece] * (at - curves.start[k, piece])
    return values


def total_rise(terms: Sequence[Marginal], cls: Ints, node: Ints, pods: int) -> Ints:
    """``[..., n]`` sum of the changes of all terms."""
    total = np.zeros(np.broadcast_shapes(cls.shape, node.shape), dtype=np.int64)
    for term in terms:
        total += term.rise(cls, node, pods)
    return total
