"""What a plugin sees when it is asked for rules and for terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from stowplan.plugins_compat.curves import convex
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState


@dataclass(frozen=True, eq=False)
class View:
    """The signatures whose pods the solver places, before classes are derived, and the fixed pods around them.

    This is what `Plugin.rules` reads. It is not changed by being read: rules do not depend on who is asked first.

    Parameters
    ----------
    state
        Holds the fixed pods, and nothing else.
    signatures
        ``[s]`` the signatures of the pods to place.
    counts
        ``[s]`` number of pods to place of each.
    waiting
        ``[s]`` how many of them have no node today.
    today
        ``[r, n]`` what all pods on each node request today.
    kept
        By signature, how many pods only the user or the executor keeps on each node: by its number.
    """

    state: ClusterState
    signatures: Sequence[Signature]
    counts: Ints
    waiting: Ints
    today: Ints
    kept: Mapping[Signature, Mapping[int, int]] = field(default_factory=dict)

    def scoring(self, rules: Iterable[Rule], point: int = 1) -> ScoreView:
        """Return what `Plugin.terms` reads.

        Parameters
        ----------
        rules
            Those of all plugins, over signatures.
        point
            Cost of one score point missed by one pod.
        """
        allowed = np.ones((len(self.signatures), self.state.size), dtype=np.bool_)
        for rule in rules:
            if isinstance(rule, Allow):
                allowed &= rule.mask[rule.row]
        allowed.flags.writeable = False
        return ScoreView(
            self.state, self.signatures, self.counts, self.waiting, self.today, self.kept, point=point, allowed=allowed
        )

    # -- sets and counts --------------------------------------------------------------------------------------

    def select(self, signatures: Iterable[Signature]) -> Ints:
        """Return the positions of those signatures whose pods are to be placed, sorted."""
        found = {self._position[signature.index] for signature in signatures if signature.index in self._position}
        return np.array(sorted(found), dtype=np.int64)

    def held(self, signatures: Iterable[Signature]) -> Ints:
        """``[n]`` the fixed pods of those signatures on each node."""
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

    # -- what many plugins need -------------------------------------------------------------------------------

    def allow(self, plugin: str, mask: Callable[[Signature], Bools]) -> Rule | None:
        """Return the masks as one `Allow`, or ``None`` if the pods of every signature may use every node."""
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
        return Allow(Origin(plugin, "pods not allowed"), row, np.array(masks))

    def unit(self, demand: Callable[[Signature], int]) -> int:
        """Return the largest unit of which every demand is a multiple, at least 1.

        Demands of kept pods count too: the cost of an overcommitted node is rounded to units, and must not depend on
        which pods may move.
        """
        return math.gcd(*(demand(signature) for signature in (*self.signatures, *self.kept))) or 1

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


@dataclass(frozen=True, eq=False)
class ScoreView(View):
    """What `Plugin.terms` reads: the view with what all rules allow, and what a point is worth.

    Parameters
    ----------
    point
        Cost of one score point missed by one pod.
    allowed
        ``[s, n]`` whether the `Allow` rules of all plugins let pods of a signature use a node.
    """

    point: int = field(kw_only=True)
    allowed: Bools = field(kw_only=True)

    @property
    def placeable(self) -> Bools:
        """``[s]`` whether some node is allowed and could hold one pod if it were empty."""
        offered = self.state.allocatable
        found = np.zeros(len(self.signatures), dtype=np.bool_)
        for s, signature in enumerate(self.signatures):
            vector = self.state.vector(signature)
            asked = vector > 0
            fits = (vector[asked, None] <= offered[asked]).all(axis=0)
            found[s] = bool((fits & self.allowed[s]).any())
        return found

    def prefer_score(
        self,
        plugin: str,
        raw: Callable[[Signature], Ints],
        normalize: Callable[[Ints], Ints],
        applies: Callable[[Signature], object] = lambda signature: True,
    ) -> Iterator[Weighted]:
        """Yield a score that depends on pod and node alone as a `Prefer`, if it tells any two nodes apart.

        Scores are normalized over all nodes that the pod may use, since which of them have capacity left at the moment
        of placement has no final-state meaning.
        """
        rows: dict[bytes, int] = {}
        tables: list[Ints] = []
        row = np.zeros(len(self.signatures), dtype=np.int64)
        for s, signature in enumerate(self.signatures):
            allowed = self.allowed[s]
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

    def even(
        self, origin: Origin, topology: Topology, counted: Sequence[Signature], share: float
    ) -> Iterator[Weighted]:
        """Yield a term that makes each pod of a group cost the share of the group that is in its domain."""
        group = self.select(counted)
        held = topology.total(self.held(counted))
        size = int(self.counts[group].sum() + held.sum())
        if len(group) and size > 1 and topology.size > 1:
            scale = self.point * POINTS * share / size
            curve = convex(lambda x: scale * x * x, range(size + 1), 0)
            yield Weighted(1, DomainCurve(origin, group, topology, held, curve))

    def affinity(
        self,
        origin: Origin,
        topology: Topology,
        seeking: Sequence[Signature],
        sought: Sequence[Signature],
        weight: int,
        together: bool,
    ) -> Iterator[Weighted]:
        """Yield a term that makes each seeker cost ``weight`` times the share of its targets that are misplaced.

        Parameters
        ----------
        together
            Whether targets in the seeker's own domain are the misplaced ones, as for anti-affinity.
        """
        seekers, targets = self.select(seeking), self.select(sought)
        held = self.relation(seeking, sought)
        both = int(self.counts[np.intersect1d(seekers, targets)].sum() + held.both.sum())
        all_seekers = int(self.counts[seekers].sum() + (held.both + held.seekers).sum())
        all_targets = int(self.counts[targets].sum() + (held.both + held.targets).sum())
        pairs = all_seekers * all_targets - both
        if pairs and topology.size and (len(seekers) or len(targets)):
            cost = max(1, round(self.point * weight / all_targets))
            yield Weighted(1, Pair(origin, seekers, targets, topology, held, cost, together, pairs))
