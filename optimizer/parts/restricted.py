"""A part of a problem as a problem of its own, and the way back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import (
    Devices,
    Held,
    Placement,
    Problem,
    Restriction,
    Rule,
    Term,
    class_sets,
    dense_columns,
)
from stowplan.optimizer.parts.partition import Part


class RestrictedProblem:
    """The problem of one part.

    Nodes on which only pods outside the problem are count for its rules, too, so they belong to it; no class may use
    them. The values of its tiers differ from what the part contributes to the whole by what pods elsewhere cost.
    """

    def __init__(self, whole: Problem, part: Part) -> None:
        self._classes = part.classes
        rules = [rule for rule in whole.rules if self._reads(rule)]
        terms = [[w for w in tier.terms if self._reads(w.term)] for tier in whole.tiers]
        nodes = part.nodes.copy()
        for reader in (*rules, *(w.term for tier in terms for w in tier)):
            for listed in _nodes_with_pods(reader):
                nodes[listed] = True
        self._to = to = Restriction(part.classes, nodes)
        self.problem = Problem(
            nodes=tuple(whole.nodes[n] for n in to.nodes.tolist()),
            classes=tuple(whole.classes[c] for c in to.classes.tolist()),
            size=whole.size[part.classes],
            optional=whole.optional[part.classes],
            start=self.inside(whole.start),
            rules=tuple(to.of(rule) for rule in rules),
            tiers=tuple(
                replace(tier, terms=tuple(replace(w, term=to.of(w.term)) for w in kept))
                for tier, kept in zip(whole.tiers, terms, strict=True)
            ),
        )

    def _reads(self, reader: Rule | Term) -> bool:
        """Whether a rule or term reads classes of this part, or no classes in particular."""
        sets = class_sets(reader)
        if not sets or dense_columns(reader):
            return True
        return any(self._classes[named].any() for named in sets)

    def inside(self, placement: Placement) -> Placement:
        """Return the pods of this part in a placement of the whole."""
        here = placement.only(self._to.classes)
        return Placement(self._to.class_position[here.cls], self._to.node_position[here.node], here.count)

    def outside(self, placement: Placement, inner: Placement) -> Placement:
        """Return a placement of the whole, with the pods of this part where ``inner`` has them."""
        rest = placement.where(~self._classes[placement.cls])
        mine = Placement(self._to.classes[inner.cls], self._to.nodes[inner.node], inner.count)
        return Placement.together((rest, mine), len(self._to.node_position))


def _nodes_with_pods(reader: Rule | Term) -> Iterable[Ints]:
    """Return the nodes with pods outside the problem that a rule or term over several nodes reads."""
    if isinstance(reader, Devices):
        yield reader.held_node
    held = getattr(reader, "held", None)
    if isinstance(held, Held):
        yield np.flatnonzero(held.both + held.seekers + held.targets)
