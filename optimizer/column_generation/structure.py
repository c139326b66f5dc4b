"""The structure for column generation: kinds of classes, groups of equal nodes, rows that constrain a single node.

Whatever is left out here (rules between nodes, shared things, budgets) only adds patterns, so a bound stays valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    DomainCurve,
    GroupMoveBudget,
    Move,
    MoveBudget,
    MovePeak,
    NodeCurve,
    NodeScore,
    Occupy,
    Open,
    Pair,
    Placement,
    Prefer,
    Problem,
    Repel,
    Rule,
    Spread,
    Unplaced,
    Violation,
    refine,
)
from stowplan.optimizer.column_generation.device_shares import Shares, packing_of, sums_of
from stowplan.optimizer.column_generation.parameters import ColumnGenerationParameters
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.violations import roles
from stowplan.optimizer.kinds import merged, pods_by_kind, reach

MOST_PODS = 30_000
"""Pods of a kind on a node, beyond which patterns do not fit into 16 bits."""

HIGHEST_COST = 1 << 34
"""Cost of a pod or node, beyond which duals do not fit into the integers of pricing."""


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """A problem as ``k`` kinds of classes, ``g`` groups of equal nodes, ``r`` rows and ``t`` tiers.

    Parameters
    ----------
    kind, group
        ``[c]`` and ``[n]``: to which kind a class belongs, and to which group a node.
    size, optional
        ``[k]`` pods of the kind, and how many of them may stay without a node.
    nodes
        ``[g]`` number of nodes.
    demand, residual
        ``[k, r]`` and ``[g, r]``: on every node of the group, ``Σ_k demand·pods ≤ residual`` holds in every row.
    upper
        ``[g, k]`` the most pods of a kind that a node holds.
    shares
        For each group, what pods of each kind take of a node's devices.
    missing, opening, constant
        ``[t, k]``, ``[t, g]``, ``[t]``: cost of an unplaced pod, of a node in use, and a constant, in each tier.
        Other terms are left out; they are never negative.
    step
        ``[t]`` values of a tier differ from its constant by multiples of it.
    """

    kind: Ints
    group: Ints
    size: Ints
    optional: Ints
    nodes: Ints
    demand: Ints
    residual: Ints
    upper: Ints
    shares: tuple[Shares, ...]
    missing: Ints
    opening: Ints
    constant: Ints
    step: Ints

    @property
    def kinds(self) -> int:
        """Number of kinds."""
        return len(self.size)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.nodes)

    def speaks_of(self, tier: int) -> bool:
        """Whether a tier has costs that are read here."""
        return bool(self.missing[tier].any() or self.opening[tier].any())

    def attainable(self, tier: int, value: int) -> int:
        """Return the least number that is not below a value, nor ruled out as a value of the tier by its step."""
        constant, step = int(self.constant[tier]), int(self.step[tier])
        return constant - (constant - value) // step * step

    def affordable(self, allowance: Ints, kinds: Ints) -> Ints:
        """Return how many pods of each of some kinds may be unplaced, if no others are.

        Parameters
        ----------
        allowance
            ``[s]`` upper limits of the cost in each of the first tiers.
        """
        cost, optional = self.missing[: len(allowance), kinds], self.optional[kinds]
        most = np.maximum(0, allowance)[:, None] // np.maximum(1, cost)
        found: Ints = np.where(cost > 0, np.minimum(most, optional), optional).min(axis=0)
        return found

    def patterns(self, placement: Placement) -> Ints:
        """``[n, k]`` how many pods of each kind a placement has on each node."""
        return pods_by_kind(placement, self.kind, self.kinds, len(self.group))


def structure_of(evaluator: Evaluator, parameters: ColumnGenerationParameters | None = None) -> Structure | None:
    """Read the structure, or return ``None`` if there are too many kinds and groups."""
    parameters = parameters or ColumnGenerationParameters()
    problem = evaluator.problem
    classes, nodes = problem.shape
    if not classes or not nodes:
        return None
    upper = upper_bounds(problem)
    missing, opening, constant, held, step = _costs(problem)
    packing = packing_of(evaluator)
    rows = list(_rows(evaluator, parameters))[: parameters.rows]
    demand = np.array([row for row, _ in rows], dtype=np.int64).reshape(len(rows), classes)
    residual = np.array([space for _, space in rows], dtype=np.int64).reshape(len(rows), nodes)

    kind = refine(classes, (), [reach(upper), *demand, *packing.asked, *missing])
    kinds = int(kind.max()) + 1
    first = np.unique(kind, return_index=True)[1]
    most, size, optional = (merged(part, kind) for part in (upper, problem.size, problem.optional))
    demand = demand[:, first]
    most = np.minimum(most, size[:, None])
    most, binding = _tighten(demand, residual, most, size)
    demand, residual = demand[binding], residual[binding]

    looks = np.vstack([residual, most, packing.offered, opening, held.astype(np.int64)])
    _, member, group = np.unique(looks, axis=1, return_index=True, return_inverse=True)
    group = group.reshape(-1).astype(np.int64)
    if (
        kinds * len(member) > parameters.largest_structure
        or most.max() > MOST_PODS
        or max(missing.max(), opening.max()) > HIGHEST_COST
    ):
        return None
    return Structure(
        kind=kind,
        group=group,
        size=size,
        optional=optional,
        nodes=np.bincount(group).astype(np.int64),
        demand=np.ascontiguousarray(demand.T),
        residual=np.ascontiguousarray(residual[:, member].T),
        upper=np.ascontiguousarray(most[:, member].T),
        shares=tuple(packing.on(n, first) for n in member.tolist()),
        missing=missing[:, first],
        opening=opening[:, member],
        constant=constant,
        step=step,
    )


def _costs(problem: Problem) -> tuple[Ints, Ints, Ints, NDArray[np.bool_], Ints]:
    """``[t, c]`` cost of a missing pod; ``[t, n]`` of opening a node; ``[t]`` of what is open; ``[t, n]`` what is.

    And ``[t]`` the step between values: the greatest common divisor of the costs, if there are no other terms.
    """
    classes, nodes = problem.shape
    missing = np.zeros((len(problem.tiers), classes), dtype=np.int64)
    opening = np.zeros((len(problem.tiers), nodes), dtype=np.int64)
    constant = np.zeros(len(problem.tiers), dtype=np.int64)
    held = np.zeros((len(problem.tiers), nodes), dtype=np.bool_)
    step = np.ones(len(problem.tiers), dtype=np.int64)
    for t, tier in enumerate(problem.tiers):
        for weighted in tier.terms:
            match weighted.term:
                case Unplaced() as term:
                    missing[t] += weighted.weight * term.cost
                case Open() as term:
                    shut = term.held == 0
                    opening[t] += np.where(shut, weighted.weight * term.cost, 0)
                    constant[t] += weighted.weight * int(term.cost[~shut].sum())
                    held[t] |= ~shut
                case Violation() | Move() | MovePeak() | Prefer() | NodeCurve() | DomainCurve() | NodeScore() | Pair():
                    pass  # never negative, so leaving it out only lowers the bound
                case term:
                    assert_never(term)
        if all(isinstance(weighted.term, Unplaced | Open) for weighted in tier.terms):
            step[t] = max(1, int(np.gcd.reduce(np.concatenate([missing[t], opening[t]]))))
    return missing, opening, constant, held, step


def _rows(evaluator: Evaluator, parameters: ColumnGenerationParameters) -> Iterator[tuple[Ints, Ints]]:
    """Yield ``[c]`` demands and ``[n]`` capacities of inequalities that every legal placement satisfies on every node.

    A place that is violated at the start may stay so, by no more than at the start.
    """
    problem = evaluator.problem
    pairs = list(zip(problem.rules, evaluator.start_violations, strict=True))
    for rule, before in pairs:
        if isinstance(rule, Capacity) and rule.demand.any():
            yield rule.demand, np.maximum(0, rule.free) + before
    for rule, before in pairs:
        yield from _other_rows(problem, rule, before, parameters)


def _other_rows(
    problem: Problem, rule: Rule, before: Ints, parameters: ColumnGenerationParameters
) -> Iterator[tuple[Ints, Ints]]:
    """Yield inequalities of rules other than capacities."""
    classes = len(problem.classes)
    match rule:
        case AtMost():
            residual = np.maximum(0, rule.limit + before - rule.held)
            yield _indicator(classes, rule.group), _at(rule.topology.domain, residual, problem.pods)
        case Distinct() if rule.own.any():
            yield rule.own, np.maximum(0, np.maximum(0, rule.limit) + before - rule.held.sum(axis=0))
        case Devices():
            for limit, demand, free in sums_of(problem, rule, parameters):
                yield demand, np.maximum(0, free) + limit * before
        case Repel():
            both, seekers, targets = roles(rule.seekers, rule.targets)
            held = [rule.topology.total(h) for h in (rule.held.both, rule.held.seekers, rule.held.targets)]
            if not len(both):
                return
            # One pod of both roles excludes all others: its demand is that of all the others together.
            for others, mine, theirs in ((seekers, held[1], held[2]), (targets, held[2], held[1])):
                alone = int(problem.size[others].sum()) + 1
                residual = np.where((held[0] > 0) | (theirs > 0), 0, np.where(mine > 0, alone - 1, alone))
                anything = alone * problem.pods
                demand = alone * _indicator(classes, both) + _indicator(classes, others)
                yield demand, _at(rule.topology.domain, np.where(before > 0, anything, residual), anything)
        case Capacity() | Distinct() | Allow() | Attract() | Spread() | Occupy() | MoveBudget() | GroupMoveBudget():
            return
        case _:
            assert_never(rule)


def _indicator(classes: int, chosen: Ints) -> Ints:
    row = np.zeros(classes, dtype=np.int64)
    row[chosen] = 1
    return row


def _at(domain: Ints, per_domain: Ints, elsewhere: int) -> Ints:
    """``[n]`` a domain's number on each of its nodes."""
    if not len(per_domain):
        return np.full(len(domain), elsewhere, dtype=np.int64)
    here: Ints = np.where(domain >= 0, per_domain[domain], elsewhere)
    return here


def _tighten(demand: Ints, residual: Ints, upper: Ints, size: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Tighten upper bounds of single kinds by every row; return which rows still constrain several kinds.

    Negative demands free capacity: at most that of all pods of such kinds.
    """
    keep = np.zeros(len(demand), dtype=np.bool_)
    made = np.maximum(0, -demand) @ size
    for row, space, more in zip(demand, residual, made, strict=True):
        asking = np.flatnonzero(row > 0)
        upper[asking] = np.minimum(upper[asking], (space[None, :] + more) // row[asking, None])
    for r, (row, space) in enumerate(zip(demand, residual, strict=True)):
        asking = np.flatnonzero(row > 0)
        # In floating point, since a sum of demands far beyond the capacity may exceed 64 bits.
        load = row[asking].astype(np.float64) @ upper[asking].astype(np.float64)
        keep[r] = bool(np.any(load > space * (1 - 1e-9)))
    return upper, keep
