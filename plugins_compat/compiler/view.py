"""What a plugin sees when it is asked for rules and terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from models.arrays import Bools, Ints
from models.problem import POINTS, Allow, DomainCurve, Held, Load, Origin, Pair, Prefer, Rule, Topology, Weighted
from plugins_compat.compiler.curves import convex
from plugins_compat.framework.shapes import Shape
from plugins_compat.framework.state import ClusterState

Predicate = Callable[[Shape], bool]


class View:
    """The shapes that are free to move, before classes are derived, and the fixed pods around them.

    Parameters
    ----------
    state
        Holds the fixed pods, and nothing else.
    shapes
        ``[s]`` the shapes of the pods to place.
    counts
        ``[s]`` number of pods to place of each.
    point
        Cost of one score point missed by one pod.
    """

    def __init__(self, state: ClusterState, shapes: Sequence[Shape], counts: Ints, point: int = 1) -> None:
        self.state = state
        self.shapes = shapes
        self.counts = counts
        self.point = point
        self.notes: list[str] = []
        self._allowed = np.ones((len(shapes), state.size), dtype=np.bool_)

    def note(self, text: str) -> None:
        """Put on record what of a plugin is not in the model."""
        self.notes.append(text)

    # -- sets and counts --------------------------------------------------------------------------------------

    def select(self, predicate: Predicate) -> Ints:
        """Return the positions of the shapes to place for which ``predicate`` holds."""
        return np.array([s for s, shape in enumerate(self.shapes) if predicate(shape)], dtype=np.int64)

    def held(self, predicate: Predicate) -> Ints:
        """``[n]`` the fixed pods on each node for whose shape ``predicate`` holds."""
        total = np.zeros(self.state.size, dtype=np.int64)
        for shape in self._fixed:
            if predicate(shape):
                for node, count in self.state.placed[shape.index].items():
                    total[node] += count
        return total

    def relation(self, seeks: Predicate, matches: Predicate) -> Held:
        """Count the fixed pods by their part in a relation."""
        return Held(
            both=self.held(lambda shape: seeks(shape) and matches(shape)),
            seekers=self.held(lambda shape: seeks(shape) and not matches(shape)),
            targets=self.held(lambda shape: matches(shape) and not seeks(shape)),
        )

    @cached_property
    def _fixed(self) -> list[Shape]:
        return [shape for shape in self.state.shapes.all if self.state.placed[shape.index]]

    @cached_property
    def by_node(self) -> Topology:
        """Every node a domain of its own."""
        names = tuple(node.name for node in self.state.nodes)
        return Topology("node", np.arange(self.state.size), names)

    @cached_property
    def cluster(self) -> Topology:
        """All nodes one domain."""
        return Topology("cluster", np.zeros(self.state.size, dtype=np.int64), ("cluster",))

    # -- common rules and terms -------------------------------------------------------------------------------

    def allow(self, plugin: str, mask: Callable[[Shape], Bools]) -> Rule | None:
        """Return the masks as one `Allow`, or ``None`` if every shape may go everywhere."""
        rows: dict[bytes, int] = {}
        masks: list[Bools] = []
        row = np.zeros(len(self.shapes), dtype=np.int64)
        for s, shape in enumerate(self.shapes):
            allowed = mask(shape)
            key = allowed.tobytes()
            if key not in rows:
                rows[key] = len(masks)
                masks.append(allowed)
            row[s] = rows[key]
        if all(m.all() for m in masks):
            return None
        table = np.array(masks)
        self._allowed &= table[row]
        return Allow(Origin(plugin), row, table)

    def prefer_score(
        self,
        plugin: str,
        raw: Callable[[Shape], Ints],
        normalize: Callable[[Ints], Ints],
        applies: Callable[[Shape], object] = lambda shape: True,
    ) -> Iterator[Weighted]:
        """Yield a score that depends on pod and node alone as a `Prefer`, if it tells any two nodes apart.

        Scores are normalised over all nodes that the shape may use, since which of them have room at the moment of
        placement has no final-state meaning.
        """
        rows: dict[bytes, int] = {}
        tables: list[Ints] = []
        row = np.zeros(len(self.shapes), dtype=np.int64)
        for s, shape in enumerate(self.shapes):
            allowed = self._allowed[s]
            missed = np.zeros(self.state.size, dtype=np.int64)
            if applies(shape) and allowed.any():
                missed[allowed] = (POINTS - normalize(raw(shape)[allowed])) * self.point
            key = missed.tobytes()
            if key not in rows:
                rows[key] = len(tables)
                tables.append(missed)
            row[s] = rows[key]
        if any(np.ptp(table) for table in tables):
            yield Weighted(1, Prefer(Origin(plugin), row, np.array(tables)))

    def load(self, demand: Ints, held: Ints, capacity: Ints, weight: int, finest: int | None = None) -> Load:
        """Return a resource as a score sees it, in the largest unit that keeps every number whole.

        Parameters
        ----------
        finest
            The largest capacity that may result; numbers are rounded to keep it.
        """
        unit = math.gcd(*demand.tolist(), *held.tolist(), *capacity.tolist()) or 1
        if finest is not None:
            unit = max(unit, -(-int(capacity.max(initial=0)) // finest))

        def rounded(amount: Ints) -> Ints:
            return (amount + unit // 2) // unit

        return Load(rounded(demand), rounded(held), rounded(capacity), weight)

    def even(self, origin: Origin, topology: Topology, counts: Predicate, share: float) -> Iterator[Weighted]:
        """Yield a term that makes each pod of a group cost the share of the group that stands in its domain."""
        group = self.select(counts)
        held = topology.total(self.held(counts))
        size = int(self.counts[group].sum() + held.sum())
        if len(group) and size > 1 and topology.size > 1:
            scale = self.point * POINTS * share / size
            curve = convex(lambda x: scale * x * x, range(size + 1), 0)
            yield Weighted(1, DomainCurve(origin, group, topology, held, curve))

    def company(
        self, origin: Origin, topology: Topology, seeks: Predicate, matches: Predicate, weight: int, together: bool
    ) -> Iterator[Weighted]:
        """Yield a term that makes each seeker cost ``weight`` times the share of its company that is misplaced."""
        seekers, targets = self.select(seeks), self.select(matches)
        held = self.relation(seeks, matches)
        both = int(self.counts[np.intersect1d(seekers, targets)].sum() + held.both.sum())
        seeking = int(self.counts[seekers].sum() + (held.both + held.seekers).sum())
        sought = int(self.counts[targets].sum() + (held.both + held.targets).sum())
        pairs = seeking * sought - both
        if pairs and topology.size and (len(seekers) or len(targets)):
            cost = max(1, round(self.point * weight / sought))
            yield Weighted(1, Pair(origin, seekers, targets, topology, held, cost, together, pairs))
