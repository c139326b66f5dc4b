"""A region as a problem of its own, and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    AtMost,
    GroupMoveBudget,
    Move,
    MoveBudget,
    Origin,
    Placement,
    Prefer,
    Problem,
    Restriction,
    Rule,
    Term,
    Tier,
    Topology,
    Weighted,
    class_sets,
    dense_columns,
)
from stowplan.optimizer.regions.borders import Borders, Others, Reader
from stowplan.optimizer.regions.drawing import Division

BACK = Origin("moves", "pods that come back")


class Region:
    """The pods on the nodes of one region; what is unscheduled stays so.

    It begins where pods are now. Those that are not where they were at the start are classes of their own: moving them
    on costs nothing, and going home, where that is in the region, gains what their move cost.

    Parameters
    ----------
    now
        A legal placement of the whole; that of the start where moves are limited.
    number
        Of the region.
    """

    def __init__(self, whole: Problem, now: Placement, division: Division, number: int) -> None:
        self._division, self._number = division, number
        self._nodes: Bools = division.region == number
        inside = self._nodes[now.node]
        here, others = now.where(inside), now.where(~inside)
        away = here.beyond(whole.start, len(whole.nodes))
        self._home = here.beyond(away, len(whole.nodes))
        at_home, gone = (part.placed(len(whole.classes)) for part in (self._home, away))
        self._kept: Bools = at_home + gone > 0
        self._to = to = Restriction(self._kept, self._nodes, (at_home > 0) & (gone > 0))
        # By class of the region's problem, whether its pods are away from home.
        self._away: Bools = np.arange(len(to.classes)) >= np.count_nonzero(self._kept)
        self._away[to.class_position[(gone > 0) & (at_home == 0)]] = True
        self._as_away = np.full(len(whole.classes), -1)
        self._as_away[to.classes[self._away]] = np.flatnonzero(self._away)
        self._here, self._others = here, Others(others, self._nodes)
        self._borders = Borders(division, now, whole.shape)
        vacant = whole.start.beyond(now, len(whole.nodes))
        self._vacant = vacant.where(self._nodes[vacant.node] & (gone > 0)[vacant.cls])
        placed = self._inside(self._home, away)
        rules = [each for i, rule in enumerate(whole.rules) for each in self._ruled(rule, i)]
        tiers = []
        for tier in whole.tiers:
            found, kept_still = self._tier(tier)
            tiers.append(found)
            rules += kept_still
        self.now = placed
        self.problem = Problem(
            nodes=tuple(whole.nodes[n] for n in to.nodes.tolist()),
            classes=tuple(whole.classes[c] for c in to.classes.tolist()),
            size=placed.placed(len(to.classes)),
            optional=np.zeros(len(to.classes), dtype=np.int64),
            start=placed,
            rules=(*rules, *self._one_home_each(gone)),
            tiers=tuple(tiers),
        )

    def outside(self, inner: Placement) -> Placement:
        """Return the pods of a placement of the region's problem as entries of one of the whole."""
        nodes = len(self._nodes)
        key = self._to.classes[inner.cls] * nodes + self._to.nodes[inner.node]
        return Placement.summed(key, inner.count, nodes)

    def _inside(self, home: Placement, away: Placement) -> Placement:
        """Return entries of the whole, of pods at home and of others, as a placement of the region's problem."""
        to = self._to
        cls = np.concatenate([to.class_position[home.cls], self._as_away[away.cls]])
        node = to.node_position[np.concatenate([home.node, away.node])]
        return Placement.summed(cls * len(to.nodes) + node, np.concatenate([home.count, away.count]), len(to.nodes))

    def _reads(self, reader: Reader) -> bool:
        """Whether a rule or term reads pods of the region, or no classes in particular."""
        sets = class_sets(reader)
        if not sets or dense_columns(reader):
            return True
        return any(self._kept[named].any() for named in sets)

    def _owns(self, reader: Reader) -> bool:
        """Whether the region may change what a rule or a term reads."""
        return not self._borders.crosses(reader) or self._borders.owner(reader) == self._number

    def _ruled(self, rule: Rule, i: int) -> Iterator[Rule]:
        """Yield what a rule is for the region."""
        if not self._reads(rule):
            return
        if isinstance(rule, MoveBudget | GroupMoveBudget):
            if i in self._division.budgets:
                yield self._to.of(replace(rule, limit=int(self._division.budgets[i][self._number])))
        elif self._owns(rule):
            yield self._to.of(self._others.beside(rule))
        elif i in self._division.violated:
            yield from map(self._to.of, self._borders.pins(rule, self._here))
        else:
            yield from map(self._to.of, self._borders.guards(rule, self._here))

    def _tier(self, tier: Tier) -> tuple[Tier, list[Rule]]:
        """Return a tier, and rules in place of terms that others may change."""
        terms: list[Weighted] = []
        rules: list[Rule] = []
        for weighted in tier.terms:
            term = weighted.term
            if not self._reads(term):
                continue
            if not self._owns(term):
                rules += map(self._to.of, self._borders.guards(term, self._here))
                continue
            restricted = self._to.of(self._others.beside(term))
            if isinstance(restricted, Move):
                terms += [Weighted(weighted.weight, part) for part in self._moves(restricted)]
            else:
                terms.append(replace(weighted, term=restricted))
        return replace(tier, terms=tuple(terms)), rules

    def _moves(self, term: Move) -> Iterator[Term]:
        """Yield the cost of moves: of pods at home that leave, and of others as long as they are not back."""
        yield replace(term, cost=np.where(self._away, 0, term.cost))
        cls, node = self._vacant_inside
        counted = term.cost[cls] > 0
        cls, node = cls[counted], node[counted]
        if not len(cls):
            return
        classes, row = np.unique(cls, return_inverse=True)
        table = np.zeros((len(classes) + 1, len(self._to.nodes)), dtype=np.int64)
        table[1:] = term.cost[classes][:, None]
        table[1 + row.reshape(-1), node] = 0
        of_class = np.zeros(len(self._away), dtype=np.int64)
        of_class[classes] = 1 + np.arange(len(classes))
        yield Prefer(term.origin, of_class, table)

    @property
    def _vacant_inside(self) -> tuple[Ints, Ints]:
        """Class and node of places that pods of the region have left, by the class that they have now."""
        return self._as_away[self._vacant.cls], self._to.node_position[self._vacant.node]

    def _one_home_each(self, gone: Ints) -> Iterator[AtMost]:
        """Yield rules by which no more pods of a class come back to a node than have left it.

        Parameters
        ----------
        gone
            ``[c]`` pods of the region that are not at home.
        """
        vacant = self._vacant
        cls, node = self._vacant_inside
        for c in np.unique(vacant.cls).tolist():
            own = vacant.cls == c
            most = int(vacant.count[own].max())
            if gone[c] <= int(vacant.count[own].min()):
                continue
            names = tuple(map(str, self._to.nodes[node[own]]))
            domain = np.full(len(self._to.nodes), -1)
            domain[node[own]] = np.arange(len(names))
            where = Topology("node", domain, names)
            yield AtMost(BACK, cls[own][:1], where, most, most - vacant.count[own])


def joined(now: Placement, region: Ints, answers: Mapping[int, Placement], nodes: int) -> Placement:
    """Return a placement with the pods of some regions where their answers have them.

    Parameters
    ----------
    answers
        By region, entries of the whole.
    """
    return Placement.together((now.where(~np.isin(region[now.node], list(answers))), *answers.values()), nodes)
