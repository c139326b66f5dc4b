"""By how much a placement violates a rule, place by place."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.bin_packing import pack
from stowplan.models.problem import (
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    GroupMoveBudget,
    MoveBudget,
    Occupy,
    Pair,
    Placement,
    Problem,
    Repel,
    Rule,
    Spread,
    Topology,
)


def violation(rule: Rule, problem: Problem, placement: Placement) -> Ints:
    """``[places]`` violation of the rule at each place; 0 where the rule holds.

    A place is a node for `Allow`, `Capacity`, `Distinct` and `Devices`, a domain for `AtMost`, `Repel` and `Spread`,
    the whole cluster for `Occupy` and the budgets of moves. `Attract` has two places a node: seekers that are targets
    too, and others.
    """
    match rule:
        case Allow():
            return _counts(problem, _disallowed(rule, placement))
        case Capacity():
            return _overload(rule, problem, placement)
        case AtMost():
            count = rule.topology.pods(placement.only(rule.group)) + rule.held
            over: Ints = np.maximum(0, count - rule.limit)
            return over
        case Repel():
            return _conflicts(rule, placement)
        case Attract():
            return _alone(rule, problem, placement)
        case Spread():
            return _skew(rule, placement)
        case Occupy():
            used = rule.topology.pods(placement.only(rule.group)) + rule.held > 0
            return np.array([max(0, rule.at_least - int(used.sum()))], dtype=np.int64)
        case Distinct():
            return _too_many(rule, problem, placement)
        case Devices():
            return _short_of_devices(rule, problem, placement)
        case MoveBudget():
            return _over_budget(problem.start, problem, placement, rule.limit)
        case GroupMoveBudget():
            return _over_budget(problem.start.only(rule.group), problem, placement, rule.limit)
        case _:
            assert_never(rule)


def arrivals(rule: Rule, problem: Problem, new: Placement) -> Ints:
    """``[places]`` pods bound by the rule that are at a place and were not at the start.

    Parameters
    ----------
    new
        What a placement has more than the start.
    """
    match rule:
        case Allow():
            return _counts(problem, _disallowed(rule, new))
        case Capacity():
            return _counts(problem, new.only(np.flatnonzero(rule.demand > 0)))
        case AtMost():
            return rule.topology.pods(new.only(rule.group))
        case Repel():
            return rule.topology.pods(new.only(np.union1d(rule.seekers, rule.targets)))
        case Attract():
            both, seekers, _ = roles(rule.seekers, rule.targets)
            return np.concatenate([_counts(problem, new.only(both)), _counts(problem, new.only(seekers))])
        case Spread():
            return rule.topology.pods(new.only(rule.seekers))
        case Distinct():
            return _counts(problem, new.only(np.flatnonzero((rule.own > 0) | (rule.bundle >= 0))))
        case Devices():
            return _counts(problem, new.only(rule.asking))
        case Occupy() | MoveBudget() | GroupMoveBudget():
            return np.zeros(1, dtype=np.int64)
        case _:
            assert_never(rule)


def place_names(rule: Rule, problem: Problem) -> tuple[str, ...]:
    """``[places]`` names of the places for reports."""
    match rule:
        case Allow() | Capacity() | Distinct() | Devices():
            return problem.nodes
        case Attract():
            return problem.nodes * 2
        case AtMost() | Repel() | Spread():
            return rule.topology.names
        case Occupy() | MoveBudget() | GroupMoveBudget():
            return ("cluster",)
        case _:
            assert_never(rule)


def places(rule: Rule, problem: Problem) -> int:
    """Return how many places the rule has."""
    match rule:
        case Allow() | Capacity() | Distinct() | Devices():
            return len(problem.nodes)
        case Attract():
            return 2 * len(problem.nodes)
        case AtMost() | Repel() | Spread():
            return rule.topology.size
        case Occupy() | MoveBudget() | GroupMoveBudget():
            return 1
        case _:
            assert_never(rule)


def _over_budget(start: Placement, problem: Problem, placement: Placement, limit: int) -> Ints:
    return np.array([max(0, start.moved(placement, len(problem.nodes)) - limit)], dtype=np.int64)


def roles(seekers: Ints, targets: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the classes that are seeker and target, seeker only, target only.

    Parameters
    ----------
    seekers, targets
        Sets of classes, sorted.
    """
    if not len(seekers) or not len(targets):
        return seekers[:0], seekers, targets
    at = np.minimum(np.searchsorted(targets, seekers), len(targets) - 1)
    shared = targets[at] == seekers
    others = np.ones(len(targets), dtype=np.bool_)
    others[at[shared]] = False
    return seekers[shared], seekers[~shared], targets[others]


def _counts(problem: Problem, placement: Placement) -> Ints:
    return placement.per_node(len(problem.nodes))


def _disallowed(rule: Allow, placement: Placement) -> Placement:
    wrong = ~rule.mask[rule.row[placement.cls], placement.node]
    return placement.where(wrong)


def _overload(rule: Capacity, problem: Problem, placement: Placement) -> Ints:
    nodes = len(problem.nodes)
    load = placement.per_node(nodes, rule.demand)
    if rule.held_on_source:
        load += problem.start.beyond(placement, nodes).per_node(nodes, rule.demand)
    over: Ints = np.maximum(0, load - np.maximum(0, rule.free))
    return over


def pods_by_role(relation: Repel | Pair, placement: Placement) -> Ints:
    """``[3, d]`` pods in each domain by role, fixed ones included: both, seekers only, targets only."""
    topology, held = relation.topology, (relation.held.both, relation.held.seekers, relation.held.targets)
    groups = roles(relation.seekers, relation.targets)
    return np.array(
        [
            topology.pods(placement.only(group)) + topology.total(fixed)
            for group, fixed in zip(groups, held, strict=True)
        ]
    )


def _conflicts(rule: Repel, placement: Placement) -> Ints:
    """Count every pod of a conflict: the filters would reject each of them where it is."""
    a, b, t = pods_by_role(rule, placement)
    conflict = (a >= 2) | ((a >= 1) & (b + t >= 1)) | ((b >= 1) & (t >= 1))
    pods: Ints = np.where(conflict, a + b + t, 0)
    return pods


def _alone(rule: Attract, problem: Problem, placement: Placement) -> Ints:
    both, seekers, targets = roles(rule.seekers, rule.targets)
    a = _counts(problem, placement.only(both)) + rule.held.both
    b = _counts(problem, placement.only(seekers)) + rule.held.seekers
    t = _counts(problem, placement.only(targets)) + rule.held.targets
    matching = a + t
    near_one, near_two = np.ones(len(a), dtype=np.bool_), np.ones(len(a), dtype=np.bool_)
    covered = np.zeros(len(a), dtype=np.bool_)
    for topology in rule.topologies:
        there = _at(topology, topology.total(matching))
        near_one &= there >= 1
        near_two &= there >= 2
        covered |= topology.domain >= 0
    first_of_its_kind = int(matching[covered].sum()) <= 1
    alone_a = np.zeros_like(a) if first_of_its_kind else np.where(near_two, 0, a)
    return np.concatenate([alone_a, np.where(near_one, 0, b)])


def _at(topology: Topology, totals: Ints) -> Ints:
    """``[n]`` a domain's total on each of its nodes, 0 outside all domains."""
    if not topology.size:
        return np.zeros(len(topology.domain), dtype=np.int64)
    here: Ints = np.where(topology.domain >= 0, totals[topology.domain], 0)
    return here


def _skew(rule: Spread, placement: Placement) -> Ints:
    count = rule.topology.pods(placement.only(rule.counted)) + rule.held_counted
    bound: Bools = rule.topology.pods(placement.only(rule.seekers)) + rule.held_seekers > 0
    if not len(count):
        return count
    least = 0 if rule.floor_is_zero else int(count.min())
    over: Ints = np.where(bound, np.maximum(0, count - least - rule.max_skew), 0)
    return over


def _too_many(rule: Distinct, problem: Problem, placement: Placement) -> Ints:
    nodes = len(problem.nodes)
    used = placement.per_node(nodes, rule.own)
    there = rule.held.copy()
    for c, n, _ in placement.entries():
        if rule.bundle[c] >= 0:
            there[rule.bundles[rule.bundle[c]], n] = True
    over: Ints = np.maximum(0, used + there.sum(axis=0) - np.maximum(0, rule.limit))
    return over


def shares(rule: Devices, placement: Placement) -> dict[int, tuple[int, ...]]:
    """Return the shares on each node that has any, those of pods outside the problem included, in decreasing order."""
    found: dict[int, list[int]] = {}
    for n, part in zip(rule.held_node.tolist(), rule.held_part.tolist(), strict=True):
        found.setdefault(n, []).append(part)
    for c, n, k in placement.only(np.flatnonzero(rule.part > 0)).entries():
        found.setdefault(n, []).extend([int(rule.part[c])] * k)
    return {n: tuple(sorted(parts, reverse=True)) for n, parts in found.items()}


def _short_of_devices(rule: Devices, problem: Problem, placement: Placement) -> Ints:
    used = placement.per_node(len(problem.nodes), rule.whole) + rule.held_whole
    for n, parts in shares(rule, placement).items():
        used[n] += pack(parts, rule.size)[0]
    over: Ints = np.maximum(0, used - rule.count)
    return over
