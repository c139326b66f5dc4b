"""Constraints between pods: affinity, anti-affinity and topology spread.

Where a pod may be depends here on where others are, so a frozen pod can be bound by a rule, too: a seeker that stays
needs its target, and a domain in which nothing changes must not become uneven because another one empties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Attract, Repel, Spread
from stowplan.optimizer.cpsat.builder import FALSE, TRUE, Builder, Linear, negated
from stowplan.optimizer.cpsat.variables import Variables
from stowplan.optimizer.cpsat.violations import Places

# -- repel ----------------------------------------------------------------------------------------------------


def post_repel(rule: Repel, builder: Builder, variables: Variables, places: Places) -> None:
    """Post that no seeker is in a domain that holds a target other than itself."""
    scope = variables.scope
    groups = scope.index.roles(rule)
    rows = [scope.rows(group) for group in groups]
    everyone = np.concatenate(rows)
    fixed = [
        rule.topology.total(held) + scope.frozen_in(rule.topology, group)
        for held, group in zip((rule.held.both, rule.held.seekers, rule.held.targets), groups, strict=True)
    ]
    for d, columns in scope.domains(rule.topology):
        kinds = [variables.on(row, columns) for row in rows]
        if not any(kind.vars for kind in kinds):
            continue
        over = Linear()
        for kind, there in zip(kinds, fixed, strict=True):
            kind.constant = int(there[d])
            over.extend(kind)
        when = places.repaired(d, over, everyone, columns)
        builder.at_most(kinds[0], 1, when)
        _at_most_one_kind(builder, kinds, when)


def _at_most_one_kind(builder: Builder, kinds: Sequence[Linear], when: Sequence[int]) -> None:
    """Post that at most one of the expressions is positive."""
    fixed = [kind for kind in kinds if kind.constant]
    loose = [kind for kind in kinds if not kind.constant and kind.vars]
    if len(fixed) > 1:
        builder.any_of([negated(literal) for literal in when])  # pods that cannot leave conflict among themselves
    elif fixed:
        for kind in loose:
            builder.at_most(kind, 0, when)
    elif len(loose) > 1:
        present = [builder.present(kind) for kind in loose]
        builder.at_most(Linear(present, [1] * len(present)), 1, when)


# -- attract --------------------------------------------------------------------------------------------------


def post_attract(rule: Attract, builder: Builder, variables: Variables, places: Places) -> None:
    """Post that every seeker is, for each topology, in a domain with a target other than itself."""
    scope = variables.scope
    both, seekers, _ = scope.index.roles(rule)
    affinity = _AffinityGroup(rule, builder, variables)
    nodes = len(affinity.stays)
    if len(both) or rule.held.both.any():
        role = _Role(0, scope.rows(both), scope.frozen_on(both) + rule.held.both, 2)
        unmatched = affinity.unmatched(role)
        if len(unmatched) and (first := affinity.first()) != TRUE:
            for n in unmatched.tolist():
                _post_affinity_group(builder, variables, places, affinity, role, n, first)
    role = _Role(nodes, scope.rows(seekers), scope.frozen_on(seekers) + rule.held.seekers, 1)
    for n in affinity.unmatched(role).tolist():
        _post_affinity_group(builder, variables, places, affinity, role, n, FALSE)


@dataclass(frozen=True)
class _Role:
    """Seekers of one role: those that are targets too, or the others.

    Parameters
    ----------
    base
        Number of the role's place on node 0.
    rows
        Free classes of the role.
    stays
        ``[n]`` pods of the role that are frozen or outside the problem.
    number
        Targets that a domain needs: one more for a seeker that counts itself.
    """

    base: int
    rows: Ints
    stays: Ints
    number: int


class _AffinityGroup:
    """Targets by domain, and literals that hold only if there are enough; created on demand.

    Attributes
    ----------
    stays
        ``[n]`` targets that are frozen or outside the problem.
    """

    def __init__(self, rule: Attract, builder: Builder, variables: Variables) -> None:
        self.builder = builder
        self.variables = variables
        self.topologies = rule.topologies
        self.rows = variables.scope.rows(rule.targets)
        self.stays = variables.scope.frozen_on(rule.targets) + rule.held.both + rule.held.targets
        self._fixed = [topology.total(self.stays) for topology in rule.topologies]
        self._known: dict[tuple[int, int, int], int] = {}

    def unmatched(self, role: _Role) -> Ints:
        """Return the nodes with seekers, now or possibly, that may lack targets."""
        scope = self.variables.scope
        there = role.stays > 0
        if len(role.rows):
            there[scope.nodes[(self.variables.index[role.rows] >= 0).any(axis=0)]] = True
        if not there.any():
            return np.flatnonzero(there)
        enough = np.ones(len(there), dtype=np.bool_)
        for topology, fixed in zip(self.topologies, self._fixed, strict=True):
            if topology.size:
                enough &= (topology.domain >= 0) & (fixed[topology.domain] >= role.number)
            else:
                enough[:] = False
        return np.flatnonzero(there & ~enough)

    def near(self, t: int, d: int, number: int) -> int:
        """Return the literal that domain ``d`` of topology ``t`` holds so many targets."""
        if d < 0:
            return FALSE
        if (t, d, number) not in self._known:
            columns = dict(self.variables.scope.domains(self.topologies[t])).get(d)
            count = Linear() if columns is None else self.variables.on(self.rows, columns)
            count.constant = int(self._fixed[t][d])
            self._known[t, d, number] = self.builder.reaches(count, number)
        return self._known[t, d, number]

    def first(self) -> int:
        """Return the literal that there is at most one target on the nodes of all topologies."""
        covered = np.zeros(len(self.stays), dtype=np.bool_)
        for topology in self.topologies:
            covered |= topology.domain >= 0
        everywhere = self.variables.on(self.rows, np.flatnonzero(covered[self.variables.scope.nodes]))
        everywhere.constant = int(self.stays[covered].sum())
        return self.builder.within(everywhere, 1)


def _post_affinity_group(
    builder: Builder, variables: Variables, places: Places, affinity: _AffinityGroup, role: _Role, n: int, excuse: int
) -> None:
    """Post that seekers of one role on a node have targets in every topology, or that the excuse holds."""
    column = int(variables.scope.column[n])
    count = variables.at(role.rows, column) if column >= 0 else Linear()
    count.constant = int(role.stays[n])
    near = [affinity.near(t, int(topology.domain[n]), role.number) for t, topology in enumerate(affinity.topologies)]
    if not count.vars and all(literal in (TRUE, FALSE) for literal in (*near, excuse)):
        return  # nothing about the place can change
    columns = np.array([column] if column >= 0 else [], dtype=np.int64)
    when = [negated(literal) for literal in places.repaired(role.base + n, count, role.rows, columns)]
    here = negated(builder.present(count))
    for literal in near:
        builder.any_of([literal, excuse, here, *when])


# -- spread ---------------------------------------------------------------------------------------------------


def post_spread(rule: Spread, builder: Builder, variables: Variables, places: Places) -> None:
    """Post that no domain with a seeker exceeds the emptiest one by more than the skew."""
    scope = variables.scope
    counted, seeking = scope.rows(rule.counted), scope.rows(rule.seekers)
    fixed = rule.held_counted + scope.frozen_in(rule.topology, rule.counted)
    fixed_seekers = rule.held_seekers + scope.frozen_in(rule.topology, rule.seekers)
    counts: dict[int, Linear] = {}
    seekers: dict[int, Linear] = {}
    columns_of = dict(scope.domains(rule.topology))
    for d, columns in columns_of.items():
        count, seeker = variables.on(counted, columns), variables.on(seeking, columns)
        if count.vars:
            count.constant = int(fixed[d])
            counts[d] = Linear.of(builder.total(count))
        if seeker.vars:
            seekers[d] = seeker
    if not counts and not seekers:
        return
    least = _least(rule, builder, fixed, counts)
    counted_are_bound = bool(np.isin(rule.counted, rule.seekers).all())
    for d in sorted(counts.keys() | seekers.keys()):
        skew = counts.get(d, Linear(constant=int(fixed[d]))).plus_all(least, -1)
        over = Linear(skew.vars, skew.coeffs, skew.constant - rule.max_skew)
        when = places.repaired(d, over, seeking, columns_of[d])
        if not fixed_seekers[d]:
            if d not in seekers:
                continue
            # A domain without any counted pod is never uneven, so no literal is needed where all counted are bound.
            if fixed[d] or not counted_are_bound:
                when = [*when, builder.present(seekers[d])]
        builder.at_most(skew, rule.max_skew, when)
    if least.vars:
        closed = [d for d in np.flatnonzero(fixed_seekers).tolist() if d not in counts and d not in seekers]
        _keep_even(rule, builder, places, least, fixed, closed)


def _least(rule: Spread, builder: Builder, fixed: Ints, counts: dict[int, Linear]) -> Linear:
    """Return the smallest count of all domains, or less."""
    if rule.floor_is_zero:
        return Linear()
    closed = np.delete(fixed, list(counts))
    floor = int(closed.min()) if len(closed) else None
    lowest = min((builder.lowest(count) for count in counts.values()), default=None)
    if floor is not None and (lowest is None or floor <= lowest):
        return Linear(constant=floor)
    highest = min(builder.highest(count) for count in counts.values())
    hint = min(builder.value(count) for count in counts.values())
    if floor is not None:
        highest, hint = min(highest, floor), min(hint, floor)
    least = builder.var(lowest or 0, highest, hint)
    for count in counts.values():
        builder.at_least(count.plus(least, -1), 0)
    return Linear.of(least)


def _keep_even(
    rule: Spread, builder: Builder, places: Places, least: Linear, fixed: Ints, closed: Sequence[int]
) -> None:
    """Post that domains with seekers, in which nothing changes, do not become uneven either."""
    nobody = np.zeros(0, dtype=np.int64)
    plain = [int(fixed[d]) for d in closed if not places.violated(d)]
    if plain:
        builder.at_least(least, max(plain) - rule.max_skew)
    for d in closed:
        if places.violated(d):
            skew = Linear(constant=int(fixed[d])).plus_all(least, -1)
            over = Linear(skew.vars, skew.coeffs, skew.constant - rule.max_skew)
            builder.at_most(skew, rule.max_skew, places.repaired(d, over, nobody, nobody))
