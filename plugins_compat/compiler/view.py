"""What a plugin sees when it is asked for rules and terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    POINTS,
    Allow,
    DomainCurve,
    Held,
    Load,
    Origin,
    Pair,
    Prefer,
    Rule,
    Topology,
    Weighted,
)
from stowplan.plugins_compat.compiler.curves import convex
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState


class View:
    """The shapes that are free to move, before classes are derived, and the fixed pods around them.

    Parameters
    ----------
    state
        Holds the fixed pods, and nothing else.
    signatures
        ``[s]`` the shapes of the pods to place.
    counts
        ``[s]`` number of pods to place of each.
    waiting
        ``[s]`` how many of them have no node today.
    today
        ``[r, n]`` what all pods on each node request today.
    point
        Cost of one score point missed by one pod.
    """

    def __init__(
        self,
        state: ClusterState,
        signatures: Sequence[Signature],
        counts: Ints,
        waiting: Ints,
        today: Ints,
        point: int = 1,
    ) -> None:
        self.state = state
        self.signatures = signatures
        self.counts = counts
        self.waiting = waiting
        self.today = today
        self.point = point
        self.notes: list[str] = []
        self._allowed = np.ones((len(signatures), state.size), dtype=np.bool_)

    def note(self, text: str) -> None:
        """Put on record what of a plugin is not in the model."""
        self.notes.append(text)

    @property
    def placeable(self) -> Bools:
        """``[s]`` whether some node is allowed and would have room for one pod, with no other there but fixed ones."""
        free = self.state.allocatable - self.state.requested
        found = np.zeros(len(self.signatures), dtype=np.bool_)
        for s, signature in enumerate(self.signatures):
            vector = self.state.vector(signature)
            asked = vector > 0
            fits = (vector[asked, None] <= free[asked]).all(axis=0)
            found[s] = bool((fits & self._allowed[s]).any())
        return found

    # -- sets and counts --------------------------------------------------------------------------------------

    def select(self, signatures: Iterable[Signature]) -> Ints:
        """Return the positions of those shapes that are to be placed, sorted."""
        found = {self._position[signature.index] for signature in signatures if signature.index in self._position}
        return np.array(sorted(found), dtype=np.int64)

    def held(self, signatures: Iterable[Signature]) -> Ints:
        """``[n]`` the fixed pods of those shapes on each node."""
        placed = [self.state.placed[signature.index] for signature in signatures if self.state.placed[signature.index]]
        if not placed:
            return self._none
        total = np.zeros(self.state.size, dtype=np.int64)
        for nodes in placed:
            for node, count in nodes.items():
                total[node] += count
        return total

    def relation(self, seekers: Sequence[Signature], targets: Sequence[Signature]) -> Held:
        """Count the fixed pods by their part in a relation."""
        seek, match = {signature.index for signature in seekers}, {signature.index for signature in targets}
        return Held(
            both=self.held(signature for signature in seekers if signature.index in match),
            seekers=self.held(signature for signature in seekers if signature.index not in match),
            targets=self.held(signature for signature in targets if signature.index not in seek),
        )

    @cached_property
    def _position(self) -> dict[int, int]:
        return {signature.index: s for s, signature in enumerate(self.signatures)}

    @cached_property
    def _none(self) -> Ints:
        """``[n]`` zeros, shared by the many rules in which no fixed pod has a part."""
        return np.zeros(self.state.size, dtype=np.int64)

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

    def allow(self, plugin: str, mask: Callable[[Signature], Bools]) -> Rule | None:
        """Return the masks as one `Allow`, or ``None`` if every shape may go everywhere."""
        rows: dict[bytes, int] = {}
        masks: list[Bools] = []
        row = np.zeros(len(self.signatures), dtype=np.int64)
        for s, signature in enumerate(self.signatures):
            allowed = mask(signature)
            key = allowed.tobytes()
            if key not in rows:
                rows[key] = len(masks)
                masks.append(allowed)
            row[s] = rows[key]
        if all(m.all() for m in masks):
            return None
        table = np.array(masks)
        self._allowed &= table[row]
        return Allow(Origin(plugin, "pods not allowed"), row, table)

    def prefer_score(
        self,
        plugin: str,
        raw: Callable[[Signature], Ints],
        normalize: Callable[[Ints], Ints],
        applies: Callable[[Signature], object] = lambda signature: True,
    ) -> Iterator[Weighted]:
        """Yield a score that depends on pod and node alone as a `Prefer`, if it tells any two nodes apart.

        Scores are normalised over all nodes that the shape may use, since which of them have room at the moment of
        placement has no final-state meaning.
        """
        rows: dict[bytes, int] = {}
        tables: list[Ints] = []
        row = np.zeros(len(self.signatures), dtype=np.int64)
        for s, signature in enumerate(self.signatures):
            allowed = self._allowed[s]
            missed = np.zeros(self.state.size, dtype=np.int64)
            if applies(signature) and allowed.any():
                missed[allowed] = (POINTS - normalize(raw(signature)[allowed])) * self.point
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

    def even(
        self, origin: Origin, topology: Topology, counted: Sequence[Signature], share: float
    ) -> Iterator[Weighted]:
        """Yield a term that makes each pod of a group cost the share of the group that stands in its domain."""
        group = self.select(counted)
        held = topology.total(self.held(counted))
        size = int(self.counts[group].sum() + held.sum())
        if len(group) and size > 1 and topology.size > 1:
            scale = self.point * POINTS * share / size
            curve = convex(lambda x: scale * x * x, range(size + 1), 0)
            yield Weighted(1, DomainCurve(origin, group, topology, held, curve))

    def company(
        self,
        origin: Origin,
        topology: Topology,
        seeking: Sequence[Signature],
        sought: Sequence[Signature],
        weight: int,
        together: bool,
    ) -> Iterator[Weighted]:
        """Yield a term that makes each seeker cost ``weight`` times the share of its company that is misplaced."""
        seekers, targets = self.select(seeking), self.select(sought)
        held = self.relation(seeking, sought)
        both = int(self.counts[np.intersect1d(seekers, targets)].sum() + held.both.sum())
        all_seekers = int(self.counts[seekers].sum() + (held.both + held.seekers).sum())
        all_targets = int(self.counts[targets].sum() + (held.both + held.targets).sum())
        pairs = all_seekers * all_targets - both
        if pairs and topology.size and (len(seekers) or len(targets)):
            cost = max(1, round(self.point * weight / all_targets))
            yield Weighted(1, Pair(origin, seekers, targets, topology, held, cost, together, pairs))
