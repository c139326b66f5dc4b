"""The Lagrangian sub-problems: one small integer program for each node, after the linking equations are relaxed.

Classes that no capacity, no term of the tier and no mask distinguishes are one *kind*; nodes whose programs are equal
are one program with a multiplicity. Both lose nothing: the multiplier is the same for all pods of a kind, so a node's
optimum does not depend on which of them it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, assert_never

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    FAR,
    PENALTY_WEIGHT,
    Allow,
    DomainCurve,
    GroupMoveBudget,
    Move,
    MoveBudget,
    MovePeak,
    NodeCurve,
    NodeScore,
    Open,
    Pair,
    Prefer,
    Problem,
    Term,
    Tier,
    Unplaced,
    Violation,
    refine,
)
from stowplan.optimizer.bounds.node_loads import Row, implied_capacities, is_load, load_rows, matters, pods_row
from stowplan.optimizer.evaluate.evaluation import Evaluator
from stowplan.optimizer.kinds import alike, merged, pods_by_kind, reach

LARGEST_NUMBER = 1 << 56
"""Largest scaled cost of one node, so that sums and differences stay far inside 64 bits."""

FINEST_SCALE = 1 << 20
"""Largest fixed-point scale: integer steps that one unit of the tier is divided into."""


class Tables(NamedTuple):
    """The programs of all nodes, as arrays that compiled code reads. Costs are integers on the fixed-point scale.

    Node ``m`` minimizes, over integers ``0 ≤ y[k] ≤ upper[m,k]``, the sum of ``f_r(base[m,r] + Σ_k demand[r,k]·y[k])``
    over its rows ``r``, of ``linear[m,k]·y[k]`` and ``move[k]·max(0, start[m,k] − y[k])`` over the kinds, and
    ``opening[m]`` if it holds any pod; no load may be above ``capacity[m,r]``. Each ``f_r`` is the convex curve number
    ``curve[m,r]`` of the family ``first``, ``slope``, ``value`` (``[f,j]``, of which ``pieces[f]`` are used).

    ``floor[m,r]`` is the least load that there can be, below ``base`` only where a demand is negative.
    """

    demand: Ints
    curve: Ints
    base: Ints
    floor: Ints
    capacity: Ints
    upper: Ints
    start: Ints
    linear: Ints
    move: Ints
    opening: Ints
    first: Ints
    slope: Ints
    value: Ints
    pieces: Ints


class SideConstraints(NamedTuple):
    """The side constraints ``[e]``: upper limits of earlier tiers and move budgets, in their own units.

    ``Σ_k move[e,k]·(pods that left) + Σ_k unplaced[e,k]·(unplaced pods) + Σ_m opening[m,e]·[m is open] ≤ most[e]``.
    """

    move: Ints
    unplaced: Ints
    opening: Ints
    most: Ints

    @property
    def largest_use(self) -> Ints:
        """``[e]`` the most that one pod or one node uses, at least 1."""
        largest: Ints = np.hstack([self.move, self.unplaced, self.opening.T]).max(axis=1, initial=1)
        return largest


@dataclass(frozen=True, slots=True)
class Programs:
    """The sub-problems of all nodes, and the constraints that link them.

    Parameters
    ----------
    tables
        The programs.
    times
        ``[m]`` multiplicity: how many nodes have the program.
    size, optional
        ``[k]`` pods of each kind, and how many of them may stay without a node.
    unplaced
        ``[k]`` scaled cost of a pod without a node.
    constant
        Scaled cost of every placement.
    scale
        Fixed-point scale: scaled units per unit of the tier.
    limits
        The side constraints.
    kind, program
        ``[c]`` the kind of each class, ``[n]`` the program of each node.
    """

    tables: Tables
    times: Ints
    size: Ints
    optional: Ints
    unplaced: Ints
    constant: int
    scale: int
    limits: SideConstraints
    kind: Ints
    program: Ints

    def penalized(self, side_duals: Ints) -> Programs:
        """Return the programs with the side constraints relaxed at duals ``[e]``, in scaled units."""
        limits, tables = self.limits, self.tables
        return replace(
            self,
            tables=tables._replace(
                move=tables.move + side_duals @ limits.move, opening=tables.opening + limits.opening @ side_duals
            ),
            unplaced=self.unplaced + side_duals @ limits.unplaced,
            constant=self.constant - sum(f * v for f, v in zip(side_duals.tolist(), limits.most.tolist(), strict=True)),
        )

    def without_moves(self) -> tuple[Programs, Ints]:
        """Return the programs if no move costs or uses anything, and ``[m]`` which of them each program becomes.

        Nodes that differ only in the pods that they start with are one program then.
        """
        tables, limits = self.tables, self.limits
        start, move, use = np.zeros_like(tables.start), np.zeros_like(tables.move), np.zeros_like(limits.move)
        free = tables._replace(start=start, move=move)
        chosen, _, program = _distinct(free, limits.opening, np.zeros(len(move), dtype=np.bool_))
        merged = replace(
            self,
            tables=_on_nodes(free, chosen),
            times=np.bincount(program, self.times, minlength=len(chosen)).astype(np.int64),
            limits=limits._replace(move=use, opening=limits.opening[chosen]),
            program=program[self.program],
        )
        return merged, program

    def of_some(self, chosen: Bools) -> Programs:
        """Return the programs ``[m]`` that are chosen, for relaxations alone; pods on other nodes stay there.

        What other nodes use of side constraints is not counted, and which node has which program is lost.
        """
        staying = self.times[~chosen] @ self.tables.start[~chosen]
        return replace(
            self,
            tables=_on_nodes(self.tables, chosen),
            times=self.times[chosen],
            size=self.size - staying,
            limits=self.limits._replace(opening=self.limits.opening[chosen]),
            program=np.zeros(0, dtype=np.int64),
        )

    def coarser(self, factor: int) -> Programs:
        """Return the same programs with the scale divided by a power of two that is at most the scale."""
        scaled = {part: getattr(self.tables, part) // factor for part in _COSTS}
        return replace(
            self,
            tables=self.tables._replace(**scaled),
            unplaced=self.unplaced // factor,
            constant=self.constant // factor,
            scale=self.scale // factor,
        )


def node_programs(
    evaluator: Evaluator, upper: NDArray[np.int32], tier: int, reached: Sequence[int], largest: int, kinds: int
) -> Programs | None:
    """Decompose one tier by nodes; ``None`` above ``kinds`` kinds of pods, or above ``largest`` kinds times nodes.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold; see `stowplan.optimizer.domains.upper_bounds`.
    reached
        Values of the earlier tiers, which must not get worse.
    """
    problem, terms = evaluator.problem, separable_terms(evaluator.problem.tiers[tier])
    charges = _charges(problem, tier, reached)
    charged = [term for part, _ in charges for _, term in part]
    kind = _kinds(problem, terms, charged, upper)
    representative = np.unique(kind, return_index=True)[1]
    if len(representative) > kinds or len(representative) * len(problem.nodes) > largest:
        return None
    # From here on, arrays run over kinds k, and nodes are rows: [n, k].
    most = merged(upper, kind).T
    start = pods_by_kind(problem.start, kind, len(representative), len(problem.nodes))
    rows = [row._replace(demand=row.demand[representative]) for row in load_rows(evaluator, terms, tier, reached)]
    if any(isinstance(term, Open) for term in [*(t for _, t in terms), *charged]):
        rows.append(pods_row(most))
    else:
        rows = [row for row in rows if matters(row, most)]
    linear = np.zeros_like(most)
    move, unplaced = np.zeros(most.shape[1], dtype=np.int64), np.zeros(most.shape[1], dtype=np.int64)
    opening, constant = np.zeros(len(problem.nodes), dtype=np.int64), 0
    for weight, term in terms:
        match term:
            case Move():
                move += weight * term.cost[representative]
            case Unplaced():
                unplaced += weight * term.cost[representative]
            case Prefer():
                linear += weight * term.table[term.row[representative]].T
            case Open():
                constant += weight * int(term.cost[term.held > 0].sum())
                opening += weight * np.where(term.held > 0, 0, term.cost)
            case Violation():
                for rule in problem.rules:
                    if isinstance(rule, Allow):
                        linear += weight * PENALTY_WEIGHT * ~rule.mask[rule.row[representative]].T
            case _:
                pass  # a load: see `load_rows`
    optional = _optional(problem, tier, reached, merged(problem.optional, kind), representative)
    size = merged(problem.size, kind)
    tables = _tables(rows, most, start, linear, move, opening)
    scale = _scale(tables, unplaced)
    if not scale:
        return None
    limits = _limits(charges, representative, len(problem.nodes))
    chosen, times, program = _distinct(tables, limits.opening, (move > 0) | (limits.move > 0).any(axis=0))
    scaled = _on_nodes(tables, chosen)
    scaled = scaled._replace(**{part: getattr(scaled, part) * scale for part in _COSTS})
    limits = limits._replace(opening=limits.opening[chosen])
    return Programs(scaled, times, size, optional, unplaced * scale, constant * scale, scale, limits, kind, program)


_COSTS = ("linear", "move", "opening", "slope", "value")
_BY_NODE = ("curve", "base", "floor", "capacity", "upper", "start", "linear", "opening")


def _on_nodes(tables: Tables, chosen: Ints | Bools) -> Tables:
    """Return the tables of some nodes."""
    return tables._replace(**{part: np.ascontiguousarray(getattr(tables, part)[chosen]) for part in _BY_NODE})


def separable_terms(tier: Tier) -> list[tuple[int, Term]]:
    """Return the terms of a tier that are sums over nodes; those left out are never negative."""
    found: list[tuple[int, Term]] = []
    for weighted in tier.terms:
        match weighted.term:
            case NodeCurve() as term if not term.curves.convex:
                pass
            case Move() | Unplaced() | Prefer() | Open() | NodeCurve() | Violation() as term:
                found.append((weighted.weight, term))
            case MovePeak() | DomainCurve() | NodeScore() | Pair():
                pass
            case term:
                assert_never(term)
    return found


def _kinds(problem: Problem, terms: list[tuple[int, Term]], charged: list[Term], upper: NDArray[np.int32]) -> Ints:
    """``[c]`` the kind of each class: classes are merged if all that is read of them is equal.

    What is read are the given terms, and the rules that are loads; only a violation reads more, the masks of `Allow`.
    """
    masks = any(isinstance(term, Violation) for _, term in terms)
    read = [rule for rule in problem.rules if is_load(rule) or (masks and isinstance(rule, Allow))]
    return refine(len(problem.classes), [*read, *(term for _, term in terms), *charged], [reach(upper)])


def _charges(problem: Problem, tier: int, reached: Sequence[int]) -> list[tuple[list[tuple[int, Term]], int]]:
    """Return the side constraints: terms of earlier tiers, as far as they are read here, and budgets of moves."""
    found: list[tuple[list[tuple[int, Term]], int]] = []
    for earlier, value in zip(problem.tiers[:tier], reached, strict=False):
        part: list[tuple[int, Term]] = [
            (weight, term) for weight, term in separable_terms(earlier) if isinstance(term, Move | Unplaced | Open)
        ]
        if part:
            found.append((part, value))
    each = np.ones(len(problem.classes), dtype=np.int64)
    for rule in problem.rules:
        if isinstance(rule, GroupMoveBudget):
            members = np.zeros_like(each)
            members[rule.group] = 1
            found.append(([(1, Move(rule.origin, members))], rule.limit))
    # The decomposition over changes of nodes expects the limit on all moves to be the last one.
    for rule in problem.rules:
        if isinstance(rule, MoveBudget):
            found.append(([(1, Move(rule.origin, each))], rule.limit))
    return found


def _limits(charges: list[tuple[list[tuple[int, Term]], int]], representative: Ints, nodes: int) -> SideConstraints:
    move = np.zeros((len(charges), len(representative)), dtype=np.int64)
    unplaced, opening = move.copy(), np.zeros((nodes, len(charges)), dtype=np.int64)
    most = np.array([value for _, value in charges], dtype=np.int64)
    for e, (part, _) in enumerate(charges):
        for weight, term in part:
            match term:
                case Move():
                    move[e] += weight * term.cost[representative]
                case Unplaced():
                    unplaced[e] += weight * term.cost[representative]
                case Open():
                    opening[:, e] += weight * np.where(term.held > 0, 0, term.cost)
                    most[e] -= weight * int(term.cost[term.held > 0].sum())
                case _:
                    pass
    return SideConstraints(move, unplaced, opening, most)


def _optional(problem: Problem, tier: int, reached: Sequence[int], optional: Ints, representative: Ints) -> Ints:
    """``[k]`` how many pods may stay without a node if no earlier tier gets worse."""
    for earlier, value in zip(problem.tiers[:tier], reached, strict=False):
        for weighted in earlier.terms:
            if isinstance(weighted.term, Unplaced):
                cost = weighted.weight * weighted.term.cost[representative]
                optional = np.where(cost > 0, np.minimum(optional, value // np.maximum(1, cost)), optional)
    return optional


def _tables(rows: list[Row], most: Ints, start: Ints, linear: Ints, move: Ints, opening: Ints) -> Tables:
    nodes, kinds = most.shape
    width = max((row.first.shape[1] for row in rows), default=1)

    def family(parts: list[Ints], fill: int) -> Ints:
        padded = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=fill) for part in parts]
        return np.vstack(padded) if padded else np.zeros((1, 1), dtype=np.int64)

    def by_node(parts: list[Ints]) -> Ints:
        return np.ascontiguousarray(np.array(parts, dtype=np.int64).reshape(len(rows), nodes).T)

    demand = np.array([row.demand for row in rows], dtype=np.int64).reshape(len(rows), kinds)
    above = np.cumsum([0] + [len(row.first) for row in rows])
    base = by_node([row.base for row in rows])
    first = family([row.first for row in rows], FAR)
    highest = base + most @ np.maximum(0, demand).T
    lowest = base + most @ np.minimum(0, demand).T
    return Tables(
        demand=demand,
        curve=by_node([row.curve + above[r] for r, row in enumerate(rows)]),
        base=base,
        floor=lowest,
        capacity=np.maximum(
            lowest, implied_capacities(demand, base, np.minimum(highest, by_node([row.capacity for row in rows])))
        ),
        upper=np.ascontiguousarray(most),
        start=np.ascontiguousarray(start),
        linear=linear,
        move=move,
        opening=opening,
        first=first,
        slope=family([row.slope for row in rows], 0),
        value=family([row.value for row in rows], 0),
        pieces=(first < FAR).sum(axis=1),
    )


def _scale(tables: Tables, unplaced: Ints) -> int:
    """Return the largest fixed-point scale at which no cost overflows, 0 if there is none."""
    ends = [np.abs(end).astype(np.float64) for end in (tables.floor, tables.capacity)]
    steepest = np.abs(tables.slope).max(axis=1, initial=0).astype(np.float64)
    highest = np.abs(tables.value).max(axis=1, initial=0).astype(np.float64)
    corner = np.abs(np.where(tables.first < FAR, tables.first, 0)).max(axis=1, initial=0).astype(np.float64)
    curve = sum((steepest[tables.curve] * (end + corner[tables.curve]) + highest[tables.curve] for end in ends), 0.0)
    pods = tables.upper.astype(np.float64).sum(axis=1)
    heaviest = np.abs(tables.demand).max(axis=1, initial=0).astype(np.float64)
    # A pod cannot gain more by the curves than the steepest of them costs.
    priced = float((steepest[tables.curve] * heaviest).sum(axis=1).max(initial=0.0))
    unit = max(priced, *(float(part.max(initial=0)) for part in (tables.linear, tables.move, unplaced)))
    worst = float(np.max(np.sum(curve, axis=1) + pods * unit + tables.opening, initial=1.0))
    scale = FINEST_SCALE
    while scale and worst * scale > LARGEST_NUMBER:
        scale //= 2
    return scale


def _distinct(tables: Tables, charged: Ints, moving: Bools) -> tuple[Ints, Ints, Ints]:
    """Return one node of each program, the multiplicity, and the program of each node."""
    # Where moves cost nothing, it does not matter which pods are there at the start.
    start = tables.start * moving
    parts = (start if part == "start" else getattr(tables, part) for part in _BY_NODE)
    key = np.hstack([*(part.reshape(len(charged), -1) for part in parts), charged])
    number = alike(key)
    chosen = np.unique(number, return_index=True)[1]
    return chosen, np.bincount(number, minlength=len(chosen)).astype(np.int64), number
