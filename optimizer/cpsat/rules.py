"""Each rule as constraints.

A place that is not exceeded at the start gets its constraint plainly. A place that is gets a literal that says
whether it still is: while it is, the excess is counted and nobody new may come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

import numpy as np

from models.arrays import Ints
from models.problem import (
    NO_LIMIT,
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    MoveBudget,
    Occupy,
    Repel,
    Rule,
    Spread,
    Topology,
)
from optimizer.cpsat.builder import Builder, Linear, negated
from optimizer.cpsat.devices import Shares
from optimizer.cpsat.variables import Variables
from optimizer.evaluate.excess import roles


class Rules:
    """Posts rules into a model and collects what exceeds them.

    Attributes
    ----------
    excess
        What exceeds all rules, each unit at its severity.
    """

    def __init__(self, builder: Builder, variables: Variables) -> None:
        self.builder = builder
        self.variables = variables
        self.excess = Linear()

    def post(self, rule: Rule, place: Place) -> None:
        """Post one rule; ``place`` knows what it exceeds at the start and in the incumbent."""
        match rule:
            case Allow():
                self._allow(rule, place)
            case Capacity():
                self._capacity(rule, place)
            case AtMost():
                self._at_most(rule, place)
            case Repel():
                self._repel(rule, place)
            case Attract():
                self._attract(rule, place)
            case Spread():
                self._spread(rule, place)
            case Occupy():
                self._occupy(rule, place)
            case Distinct():
                self._distinct(rule, place)
            case Devices():
                self._devices(rule, place)
            case MoveBudget():
                self.builder.at_most(self.variables.moves(), rule.limit)
            case _:
                assert_never(rule)

    # -- places that are exceeded at the start ----------------------------------------------------------------

    def _mended(
        self, place: Place, p: int, over: Linear, classes: Iterable[int] = (), nodes: Iterable[int] = ()
    ) -> list[int]:
        """Let a place that is exceeded at the start stay so; return the literals under which it is mended.

        Parameters
        ----------
        over
            A lower bound of the excess, exact while the place is exceeded.
        classes, nodes
            Who may not come while it is.
        """
        if not place.before[p]:
            return []
        builder, before = self.builder, int(place.before[p])
        still = builder.flag(bool(place.now[p]))
        amount = builder.var(0, before, int(place.now[p]))
        builder.at_most(over.plus(amount, -1), 0, [still])
        columns = list(nodes)
        for c in classes:
            for n in columns:
                if self.variables.index[c, n] >= 0:
                    builder.at_most(self.variables.on([c], [n]), int(self.variables.start[c, n]), [still])
        self.excess.add(amount, int(place.severity[p]))
        return [negated(still)]

    def _settled(self, place: Place, p: int) -> None:
        """Count what exceeds a place whatever anybody does."""
        self.excess.constant += int(place.before[p]) * int(place.severity[p])

    # -- rules ------------------------------------------------------------------------------------------------

    def _allow(self, rule: Allow, place: Place) -> None:
        # Pods on a forbidden node may stay or go: their variables end at the start's count.
        for c, n in self.variables.started():
            if not rule.mask[rule.row[c], n]:
                self.builder.at_most(self.variables.on([c], [n]), int(self.variables.start[c, n]))
                self.excess.extend(self.variables.on([c], [n]), int(place.severity[n]))

    def _capacity(self, rule: Capacity, place: Place) -> None:
        asking = np.flatnonzero(rule.demand > 0)
        for n, free in enumerate(rule.free.tolist()):
            load = self.variables.on(np.flatnonzero(rule.demand), [n], rule.demand)
            if rule.held_on_source:
                load = self._with_leavers(rule, asking, n)
            room = max(0, free)
            over = Linear(load.vars, load.coeffs, load.constant - room)
            self.builder.at_most(load, room, self._mended(place, n, over, asking, [n]))

    def _with_leavers(self, rule: Capacity, asking: Ints, n: int) -> Linear:
        """Return the load of a node where pods that leave still count: what started there, and what came."""
        load = Linear()
        for c in asking.tolist():
            if self.variables.index[c, n] >= 0:
                load.add(self.variables.entering(c, n), int(rule.demand[c]))
                load.constant += int(rule.demand[c] * self.variables.start[c, n])
        return load

    def _at_most(self, rule: AtMost, place: Place) -> None:
        for d, nodes in domains_of(rule.topology):
            count = self.variables.on(rule.group, nodes)
            room = rule.limit - int(rule.held[d])
            over = Linear(count.vars, count.coeffs, count.constant - room)
            if count.vars:
                self.builder.at_most(count, room, self._mended(place, d, over, rule.group, nodes))
            elif place.before[d]:
                self._settled(place, d)

    def _repel(self, rule: Repel, place: Place) -> None:
        groups = roles(rule.seekers, rule.targets)
        held = [rule.topology.total(h) for h in (rule.held.both, rule.held.seekers, rule.held.targets)]
        everyone = np.union1d(rule.seekers, rule.targets)
        for d, nodes in domains_of(rule.topology):
            a, b, t = (self.variables.on(group, nodes) for group in groups)
            for expression, here in zip((a, b, t), held, strict=True):
                expression.constant = int(here[d])
            if not (a.vars or b.vars or t.vars):
                if place.before[d]:
                    self._settled(place, d)
                continue
            over = Linear()
            for expression in (a, b, t):
                over.extend(expression)
            when = self._mended(place, d, over, everyone, nodes)
            self.builder.at_most(a, 1, when)
            self._at_most_one_kind([a, b, t], when)

    def _at_most_one_kind(self, kinds: Sequence[Linear], when: Sequence[int]) -> None:
        """Post that at most one of the expressions is positive."""
        fixed = [kind for kind in kinds if kind.constant]
        loose = [kind for kind in kinds if not kind.constant and kind.vars]
        if len(fixed) > 1:
            self.builder.any_of([negated(literal) for literal in when])  # fixed pods clash among themselves
        elif fixed:
            for kind in loose:
                self.builder.at_most(kind, 0, when)
        elif len(loose) > 1:
            present = [self._present(kind) for kind in loose]
            self.builder.at_most(Linear(present, [1] * len(present)), 1, when)

    def _present(self, count: Linear) -> int:
        """Return a literal that holds whenever the count is positive."""
        literal = self.builder.flag(self.builder.value(count) > 0)
        self.builder.at_most(count.plus(literal, -self.builder.highest(count)), 0)
        return literal

    def _attract(self, rule: Attract, place: Place) -> None:
        both, seekers, targets = roles(rule.seekers, rule.targets)
        company_classes, company_held = np.union1d(both, targets), rule.held.both + rule.held.targets
        near_one: list[dict[int, int]] = []
        near_two: list[dict[int, int]] = []
        covered = np.zeros(len(self.variables.problem.nodes), dtype=np.bool_)
        for topology in rule.topologies:
            covered |= topology.domain >= 0
            held = topology.total(company_held)
            counts = {d: self.variables.on(company_classes, nodes) for d, nodes in domains_of(topology)}
            for d, count in counts.items():
                count.constant = int(held[d])
            near_one.append({d: self._reaches(count, 1) for d, count in counts.items()})
            near_two.append({d: self._reaches(count, 2) for d, count in counts.items()})
        everywhere = self.variables.on(company_classes, np.flatnonzero(covered))
        everywhere.constant = int(company_held[covered].sum())
        first = self.builder.flag(self.builder.value(everywhere) <= 1)
        self.builder.at_most(everywhere, 1, [first])
        nodes = len(covered)
        for n in range(nodes):
            self._company(rule, place, n, n, both, int(rule.held.both[n]), near_two, [first])
            self._company(rule, place, nodes + n, n, seekers, int(rule.held.seekers[n]), near_one, [])

    def _company(
        self,
        rule: Attract,
        place: Place,
        p: int,
        n: int,
        classes: Ints,
        held: int,
        near: Sequence[dict[int, int]],
        excuse: Sequence[int],
    ) -> None:
        """Post that seekers of one role on a node have company in every topology, or an excuse."""
        count = self.variables.on(classes, [n])
        count.constant = held
        if not count.vars and not held:
            return
        when = [negated(literal) for literal in self._mended(place, p, count, classes, [n])]
        here = [] if held else [negated(self._present(count))]
        for topology, reached in zip(rule.topologies, near, strict=True):
            domain = int(topology.domain[n])
            enough = [reached[domain]] if domain >= 0 else []
            self.builder.any_of([*enough, *excuse, *here, *when])

    def _reaches(self, count: Linear, number: int) -> int:
        """Return a literal that holds only if the count is at least a number."""
        literal = self.builder.flag(self.builder.value(count) >= number)
        self.builder.at_least(count, number, [literal])
        return literal

    def _spread(self, rule: Spread, place: Place) -> None:
        builder = self.builder
        domains = domains_of(rule.topology)
        counts = {}
        for d, nodes in domains:
            count = self.variables.on(rule.counted, nodes)
            count.constant = int(rule.held_counted[d])
            counts[d] = builder.total(count)
        if not counts:
            return
        least = Linear()
        if not rule.floor_is_zero:
            highest = min(builder.upper[var] for var in counts.values())
            lowest = builder.var(0, highest, min(builder.hints[var] for var in counts.values()))
            least = Linear.of(lowest)
            for var in counts.values():
                builder.at_least(Linear([var, lowest], [1, -1]), 0)
        counted_are_bound = bool(np.isin(rule.counted, rule.seekers).all())
        for d, nodes in domains:
            seekers = self.variables.on(rule.seekers, nodes)
            skew = Linear.of(counts[d])
            skew.extend(least, -1)
            over = Linear(skew.vars, skew.coeffs, -rule.max_skew)
            when = self._mended(place, d, over, rule.seekers, nodes)
            if not rule.held_seekers[d]:
                if not seekers.vars:
                    continue
                # A domain without any counted pod is never uneven, so no literal is needed where all counted are bound.
                if rule.held_counted[d] or not counted_are_bound:
                    when = [*when, self._present(seekers)]
            builder.at_most(skew, rule.max_skew, when)

    def _occupy(self, rule: Occupy, place: Place) -> None:
        builder = self.builder
        used = Linear()
        for d, nodes in domains_of(rule.topology):
            if rule.held[d]:
                used.constant += 1
            else:
                used.add(self._reaches(self.variables.on(rule.group, nodes), 1))
        if place.before[0]:
            missing = builder.var(0, int(place.before[0]), int(place.now[0]))
            self.excess.add(missing, int(place.severity[0]))
            used.add(missing)
        builder.at_least(used, rule.at_least)

    def _distinct(self, rule: Distinct, place: Place) -> None:
        builder, variables = self.builder, self.variables
        asking = np.flatnonzero((rule.own > 0) | (rule.bundle >= 0))
        sharing = np.flatnonzero(rule.bundle >= 0)
        for n, limit in enumerate(rule.limit.tolist()):
            if limit >= NO_LIMIT:
                continue
            used = variables.on(np.flatnonzero(rule.own > 0), [n], rule.own)
            there: dict[int, int] = {}
            for c in sharing.tolist():
                y = int(variables.index[c, n])
                for item in rule.bundles[rule.bundle[c]].tolist() if y >= 0 else ():
                    if rule.held[item, n]:
                        continue
                    if item not in there:
                        users = [o for o in sharing.tolist() if item in rule.bundles[rule.bundle[o]]]
                        there[item] = builder.flag(bool(variables.now[users, n].any()))
                        used.add(there[item])
                    builder.at_most(Linear([y, there[item]], [1, -builder.upper[y]]), 0)
            used.constant += int(rule.held[:, n].sum())
            room = max(0, limit)
            over = Linear(used.vars, used.coeffs, used.constant - room)
            if used.vars:
                builder.at_most(used, room, self._mended(place, n, over, asking, [n]))
            elif place.before[n]:
                self._settled(place, n)

    def _devices(self, rule: Devices, place: Place) -> None:
        builder, variables = self.builder, self.variables
        shares = Shares(builder, variables, rule)
        # These follow from the packing, but say at once what it says only in the end.
        redundant = [(demand, free.tolist()) for _, demand, free in rule.sums]
        for n, count in enumerate(rule.count.tolist()):
            used = variables.on(np.flatnonzero(rule.whole), [n], rule.whole)
            used.constant = int(rule.held_whole[n])
            kinds = shares.kinds(n)
            if not used.vars and not any(number.vars for _, number in kinds):
                if place.before[n]:
                    self._settled(place, n)
                continue
            used.extend(shares.opened(kinds, count + int(place.before[n] - rule.held_whole[n])))
            over = Linear(used.vars, used.coeffs, used.constant - count)
            when = self._mended(place, n, over, rule.asking, [n])
            builder.at_most(used, count, when)
            for demand, free in redundant:
                builder.at_most(variables.on(np.flatnonzero(demand), [n], demand), free[n], when)


class Place:
    """What a rule exceeds, by place.

    Parameters
    ----------
    before, now
        Excess at the start and in the incumbent.
    severity
        Repair cost of one unit.
    """

    def __init__(self, before: Ints, now: Ints, severity: Ints) -> None:
        self.before = before
        self.now = now
        self.severity = severity


def domains_of(topology: Topology) -> list[tuple[int, Ints]]:
    """Return each domain with its nodes."""
    order = np.argsort(topology.domain, kind="stable")
    domain = topology.domain[order]
    first = np.searchsorted(domain, np.arange(topology.size), "left")
    last = np.searchsorted(domain, np.arange(topology.size), "right")
    return [(d, order[first[d] : last[d]]) for d in range(topology.size)]
