"""Each rule as constraints.

A place that is not violated at the start gets its constraint unconditionally. A place that is gets a literal for
whether it still is: while it is, the violation is counted and no new pod may arrive. Frozen pods are constants; a place
where nothing is free is left out, since it stays as legal as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    NO_LIMIT,
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
)
from stowplan.optimizer.cpsat.affinity import post_attract, post_repel, post_spread
from stowplan.optimizer.cpsat.builder import Builder, Linear
from stowplan.optimizer.cpsat.devices import Shares
from stowplan.optimizer.cpsat.variables import Variables
from stowplan.optimizer.cpsat.violations import Places


def post(rule: Rule, builder: Builder, variables: Variables, places: Places) -> None:
    """Post one rule into a model; ``places`` collects its violations."""
    match rule:
        case Allow():
            _allow(rule, variables, places)
        case Capacity():
            _capacity(rule, builder, variables, places)
        case AtMost():
            _at_most(rule, builder, variables, places)
        case Repel():
            post_repel(rule, builder, variables, places)
        case Attract():
            post_attract(rule, builder, variables, places)
        case Spread():
            post_spread(rule, builder, variables, places)
        case Occupy():
            _occupy(rule, builder, variables, places)
        case Distinct():
            _distinct(rule, builder, variables, places)
        case Devices():
            _devices(rule, builder, variables, places)
        case GroupMoveBudget():
            _group_move_budget(rule, builder, variables)
        case MoveBudget():
            _move_budget(rule, builder, variables)
        case _:
            assert_never(rule)


def _allow(rule: Allow, variables: Variables, places: Places) -> None:
    # Pods on a forbidden node may stay or leave: the upper bounds of their variables are the counts at the start.
    scope = variables.scope
    wrong = ~rule.mask[np.ix_(rule.row[scope.classes], scope.nodes)] & (variables.index >= 0)
    for r, j in zip(*np.nonzero(wrong), strict=True):
        places.violation.add(int(variables.index[r, j]), places.penalty_weight_of(int(scope.nodes[j])))


def _capacity(rule: Capacity, builder: Builder, variables: Variables, places: Places) -> None:
    scope = variables.scope
    demand = rule.demand[scope.classes]
    asking, counting = np.flatnonzero(demand > 0), np.flatnonzero(demand)
    if rule.held_on_source:
        # Pods that leave still count: those that started on the node, and those that arrived.
        fixed = scope.index.start_load(rule)[scope.nodes] + scope.load(scope.frozen_new, rule.demand)
    else:
        fixed = scope.load(scope.frozen_here, rule.demand)
    for j, n in enumerate(scope.nodes.tolist()):
        load = _arrivals(variables, asking, demand, j) if rule.held_on_source else variables.at(counting, j, demand)
        load.constant = int(fixed[j])
        if load.vars:
            room = max(0, int(rule.free[n]))
            over = Linear(load.vars, load.coeffs, load.constant - room)
            builder.at_most(load, room, places.repaired(n, over, asking, np.array([j])))


def _arrivals(variables: Variables, asking: Ints, demand: Ints, j: int) -> Linear:
    load = Linear()
    for r in asking[variables.index[asking, j] >= 0].tolist():
        came = variables.entering(r, j)
        if came >= 0:
            load.add(came, int(demand[r]))
    return load


def _at_most(rule: AtMost, builder: Builder, variables: Variables, places: Places) -> None:
    scope = variables.scope
    rows = scope.rows(rule.group)
    fixed = rule.held + scope.frozen_in(rule.topology, rule.group)
    for d, columns in scope.domains(rule.topology):
        count = variables.on(rows, columns)
        if count.vars:
            count.constant = int(fixed[d])
            over = Linear(count.vars, count.coeffs, count.constant - rule.limit)
            builder.at_most(count, rule.limit, places.repaired(d, over, rows, columns))


def _occupy(rule: Occupy, builder: Builder, variables: Variables, places: Places) -> None:
    scope = variables.scope
    rows = scope.rows(rule.group)
    fixed = rule.held + scope.frozen_in(rule.topology, rule.group)
    used = Linear(constant=int((fixed > 0).sum()))
    for d, columns in scope.domains(rule.topology):
        if not fixed[d]:
            count = variables.on(rows, columns)
            if count.vars:
                used.add(builder.reaches(count, 1))
    if not used.vars:
        return
    if places.violated(0):
        used.add(places.amount(0))
    builder.at_least(used, rule.at_least)


def _distinct(rule: Distinct, builder: Builder, variables: Variables, places: Places) -> None:
    scope = variables.scope
    own, bundle = rule.own[scope.classes], rule.bundle[scope.classes]
    bringing = np.flatnonzero(own > 0)
    asking = np.flatnonzero((own > 0) | (bundle >= 0))
    sharing = np.flatnonzero(bundle >= 0)
    if not len(asking):
        return
    fixed = scope.load(scope.frozen_here, rule.own)
    held = rule.held[:, scope.nodes].copy()
    for c, n, _ in scope.frozen_here.entries():
        if rule.bundle[c] >= 0:
            held[rule.bundles[rule.bundle[c]], scope.column[n]] = True
    for j, n in enumerate(scope.nodes.tolist()):
        if rule.limit[n] >= NO_LIMIT:
            continue
        used = variables.at(bringing, j, own)
        used.constant = int(fixed[j]) + int(held[:, j].sum())
        users: dict[int, list[int]] = {}
        for r in sharing[variables.index[sharing, j] >= 0].tolist():
            for item in rule.bundles[bundle[r]].tolist():
                if not held[item, j]:
                    users.setdefault(item, []).append(r)
        for rows in users.values():
            there = builder.flag(bool(variables.now[rows, j].any()))
            used.add(there)
            for y in variables.index[rows, j].tolist():
                builder.at_most(Linear([y, there], [1, -builder.upper[y]]), 0)
        # What is there may be all that an arriving pod needs: it is refused all the same while there is too much.
        if used.vars or (places.violated(n) and (variables.index[asking, j] >= 0).any()):
            room = max(0, int(rule.limit[n]))
            over = Linear(used.vars, used.coeffs, used.constant - room)
            builder.at_most(used, room, places.repaired(n, over, asking, np.array([j])))


def _devices(rule: Devices, builder: Builder, variables: Variables, places: Places) -> None:
    scope = variables.scope
    shares = Shares(builder, variables, rule)
    whole = rule.whole[scope.classes]
    taking = np.flatnonzero(whole)
    fixed = rule.held_whole[scope.nodes] + scope.load(scope.frozen_here, rule.whole)
    # Redundant: they follow from the packing, but propagate at once.
    redundant = [
        (demand[scope.classes], free[scope.nodes] - scope.load(scope.frozen_here, demand))
        for _, demand, free in rule.sums
    ]
    asking = scope.rows(rule.asking)
    for j, n in enumerate(scope.nodes.tolist()):
        used = variables.at(taking, j, whole)
        used.constant = int(fixed[j])
        kinds = shares.kinds(j)
        if not used.vars and not any(number.vars for _, number in kinds):
            continue
        count = int(rule.count[n])
        most = count - used.constant + (int(places.before[n]) if places.before is not None else 0)
        used.extend(shares.opened(kinds, most))
        over = Linear(used.vars, used.coeffs, used.constant - count)
        when = places.repaired(n, over, asking, np.array([j]))
        builder.at_most(used, count, when)
        for demand, free in redundant:
            builder.at_most(variables.at(np.flatnonzero(demand), j, demand), int(free[j]), when)


def _move_budget(rule: MoveBudget, builder: Builder, variables: Variables) -> None:
    limit_moves(variables.scope.problem.start, variables.started(), rule.limit, builder, variables)


def _group_move_budget(rule: GroupMoveBudget, builder: Builder, variables: Variables) -> None:
    rows = set(variables.scope.rows(rule.group).tolist())
    started = [(r, j) for r, j in variables.started() if r in rows]
    limit_moves(variables.scope.problem.start.only(rule.group), started, rule.limit, builder, variables)


def limit_moves(
    start: Placement, started: Sequence[tuple[int, int]], limit: int, builder: Builder, variables: Variables
) -> None:
    """Limit the moves of some pods; what of them moved elsewhere is a constant."""
    moves = Linear([variables.leaving(r, j) for r, j in started], [1] * len(started))
    scope = variables.scope
    everywhere = start.moved(scope.incumbent, len(scope.problem.nodes))
    builder.at_most(moves, limit - everywhere + builder.value(moves))
