"""The cluster while a wave is under way, and whether one more move may join the wave.

What has to hold for a wave is a statement about every order of its events. It is checked without trying orders, from
what is known of the filters; see "What a wave promises" in ``docs/plans.md``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import Pod
from stowplan.plans.dry_run import refusal
from stowplan.plans.move import Move
from stowplan.plans.sequencing.problem import SequencingProblem
from stowplan.plugins_compat.admission import standing
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.status import Code, Status
from stowplan.plugins_compat.plugins.inter_pod_affinity import InterPodAffinity
from stowplan.plugins_compat.plugins.pod_topology_spread import PodTopologySpread

NOWHERE = -1
VOLUME_ON_ITS_WAY = "another pod is on its way to the node with the same volume"
FIRST_OF_ITS_KIND = "the first pod of its affinity is under way, and this one would have to be with it"


@dataclass(frozen=True, slots=True, eq=False)
class IndexedMove:
    """A move in the numbers of a cluster state; nodes are indices, or `NOWHERE`.

    Parameters
    ----------
    gone_first
        Whether the replacement comes up only after the pod is gone.
    kind
        Equal for pods that may take each other's targets.
    follows
        The move that parked the pod.
    """

    pod: Pod
    signature: Signature
    source: int
    target: int
    gone_first: bool
    kind: Hashable
    follows: Move | None = None

    @property
    def ends(self) -> list[int]:
        """The nodes at which the move counts while it is under way."""
        return [node for node in (self.source, self.target) if node != NOWHERE]


class WaveState:
    """A cluster state in which every move of the wave under way counts at both of its ends."""

    def __init__(self, problem: SequencingProblem) -> None:
        self.state = ClusterState(problem.snapshot, problem.profile.release, problem.signatures)
        for pod, node in standing(problem.snapshot, problem.start):
            self.state.assume(self.state.signatures.of(pod), node)
        self.framework = Framework(problem.profile, self.state)
        plugins = self.framework.filters
        self._spread = next((plugin for plugin in plugins if isinstance(plugin, PodTopologySpread)), None)
        self._affinity = next((plugin for plugin in plugins if isinstance(plugin, InterPodAffinity)), None)
        # Spreading is asked about arrangements of its own: pods count at both ends only where more is stricter.
        self._monotone = Framework(problem.profile, self.state)
        self._monotone.filters = [p for p in self._monotone.filters if not isinstance(p, PodTopologySpread)]
        self._alike = problem.alike
        self.wave: list[IndexedMove] = []
        self._counting: list[IndexedMove] = []  # those of the wave whose filters count other pods
        self._by_signature: defaultdict[int, list[IndexedMove]] = defaultdict(list)

    def indexed(self, move: Move) -> IndexedMove:
        """Return a move in the numbers of this state."""
        index, signature = self.state.snapshot.node_index, self.state.signatures.of(move.pod)
        source = index[move.source] if move.source else NOWHERE
        target = index[move.target] if move.target else NOWHERE
        kind = self._alike(move.pod) if self._alike else signature.index
        return IndexedMove(move.pod, signature, source, target, move.same_name, kind)

    # -- the wave ---------------------------------------------------------------------------------------------

    def refusal(self, move: IndexedMove) -> tuple[Status | None, bool]:
        """Say why a move may not join the wave, or ``None``; and whether its replacement has to wait.

        Returns
        -------
        tuple
            The status of the filter that refuses, and whether the filters refuse the replacement only for as long as
            the pod is there.
        """
        if move.target == NOWHERE:
            return self._disturbs(move), False
        if self._shares_a_volume(move):
            return Status(Code.UNSCHEDULABLE, (VOLUME_ON_ITS_WAY,), "NodeVolumeLimits"), False
        status, waits = self._refused_among_all(move)
        if status is None:
            with self.without(move.signature, move.source):
                status = self._refused_by_spread(move) or self._refused_by_affinity(move)
        return status or self._disturbs(move), waits

    def refused(self, move: IndexedMove) -> str:
        """Say in words what refuses a move; empty if nothing does."""
        status, _ = self.refusal(move)
        if status is None:
            return ""
        target = self.state.nodes[move.target].name if move.target != NOWHERE else "no node"
        return f"{status.plugin} refuses it on {target}: {', '.join(status.reasons)}"

    def join(self, move: IndexedMove) -> None:
        """Let a move be under way."""
        if move.target != NOWHERE:
            self.state.assume(move.signature, move.target)
        self.wave.append(move)
        if move.target != NOWHERE and self._counts_others(move):
            self._counting.append(move)
        self._by_signature[move.signature.index].append(move)

    def end_wave(self) -> None:
        """End the moves under way: the old pods are gone from their sources."""
        for move in self.wave:
            if move.source != NOWHERE:
                self.state.forget(move.signature, move.source)
        self.wave, self._counting = [], []
        self._by_signature.clear()

    def open_nodes(self, move: IndexedMove) -> Ints:
        """Return the nodes that would admit the pod of a move now, while it is still there."""
        return self.framework.run_filters(self.framework.cycle(move.pod)).feasible

    # -- what a wave promises ---------------------------------------------------------------------------------

    def _refused_among_all(self, move: IndexedMove) -> tuple[Status | None, bool]:
        """Ask the filters with every other move at both ends: where more pods are stricter, nothing is stricter."""
        if not move.gone_first:
            status = refusal(self._monotone, move.pod, move.target)
            if status is None or move.source == NOWHERE:
                return status, False
        with self.without(move.signature, move.source):
            return refusal(self._monotone, move.pod, move.target), not move.gone_first

    def _shares_a_volume(self, move: IndexedMove) -> bool:
        """Whether another move of the wave brings one of the pod's volumes to the same node.

        Attach limits refuse neither of two such pods in the presence of the other, even where they refuse either alone.
        """
        brought = self._volumes(move.signature)
        return bool(brought) and any(
            other.target == move.target and not brought.isdisjoint(self._volumes(other.signature))
            for other in self.wave
        )

    def _volumes(self, signature: Signature) -> frozenset[Hashable]:
        def make() -> frozenset[Hashable]:
            disks = (
                disk
                for volume in signature.pod.spec.volumes
                for disk in (
                    volume.gce_persistent_disk,
                    volume.aws_elastic_block_store,
                    volume.azure_disk,
                    volume.cinder,
                )
                if disk is not None
            )
            return frozenset([*signature.claims, *disks])

        return self.state.memo(("waves", "volumes", signature), make)

    def _refused_by_spread(self, move: IndexedMove) -> Status | None:
        """Ask PodTopologySpread, for each constraint, with the moves that touch the domain in it, the others nowhere.

        Both ends of the move itself must be off the state.
        """
        plugin = self._spread
        if plugin is None or not (constraints := plugin.balanced(move.signature)):
            return None
        others = self._others(move, [counts for _, counts in constraints])
        here = np.array([move.target])
        for constraint, _ in constraints:
            domain, eligible = constraint.topology.domain, constraint.eligible.mask
            kept = {node for other in others for node in other.ends if domain[node] == domain[move.target]}
            with self._arranged(others, {node for node in kept if eligible[node]}):
                cycle = self.framework.cycle(move.pod)
                code = int(plugin.filter(cycle, here)[0])
                if code != Code.SUCCESS:
                    return Status(Code(code), tuple(plugin.reasons(cycle, move.target)), plugin.name)
        return None

    def _refused_by_affinity(self, move: IndexedMove) -> Status | None:
        """Ask InterPodAffinity with no other move there at all: company that is only on its way is no company.

        A pod that is the first of its kind may be anywhere, but only until another is there: then both must be
        together. So each other move that it seeks must begin and end in the domains of the target.
        """
        plugin = self._affinity
        if plugin is None:
            return None
        topologies, seeks = plugin.sought(move.signature)
        if not topologies:
            return None
        others = self._others(move, [seeks])
        with self._arranged(others, set()):
            cycle = self.framework.cycle(move.pod)
            code = int(plugin.filter(cycle, np.array([move.target]))[0])
            refused = Status(Code(code), tuple(plugin.reasons(cycle, move.target)), plugin.name) if code else None
            if refused is not None or plugin.finds_company(move.signature):
                return refused
        apart = any(
            topology.domain[node] != topology.domain[move.target]
            for other in others
            for node in other.ends
            for topology in topologies
        )
        return Status(Code.UNRESOLVABLE, (FIRST_OF_ITS_KIND,), plugin.name) if apart else None

    def _disturbs(self, move: IndexedMove) -> Status | None:
        """Ask again for the moves of the wave that count this one: with it under way, do they still hold?

        Capacity, ports, volumes and anti-affinity need no second question: they refuse either of two pods in the
        presence of the other, or neither.
        """
        touched = [other for other in self._counting if self._counts(other, move)]
        if not touched:
            return None
        self.join(move)
        try:
            for other in touched:
                with self.without(other.signature, other.source), self.without(other.signature, other.target):
                    if status := self._refused_by_spread(other) or self._refused_by_affinity(other):
                        return status
            return None
        finally:
            self._leave(move)

    def _counts_others(self, move: IndexedMove) -> bool:
        """Whether the filters count any other pods when they look at this one."""
        balanced = bool(self._spread and self._spread.balanced(move.signature))
        return balanced or bool(self._affinity and self._affinity.sought(move.signature)[0])

    def _counts(self, move: IndexedMove, other: IndexedMove) -> bool:
        """Whether the filters count the pods of another move when they look at this one."""

        def counts() -> bool:
            balanced = self._spread.balanced(move.signature) if self._spread else ()
            topologies, seeks = self._affinity.sought(move.signature) if self._affinity else ((), None)
            return any(counted(other.signature) for _, counted in balanced) or bool(
                topologies and seeks and seeks(other.signature)
            )

        return self.state.memo(("waves", move.signature, other.signature), counts)

    # -- arrangements -----------------------------------------------------------------------------------------

    def _others(self, move: IndexedMove, counted: Sequence[Callable[[Signature], bool]]) -> list[IndexedMove]:
        """Return the other moves under way whose pods are counted."""
        signatures = self.state.signatures.all
        return [
            other
            for index, moves in self._by_signature.items()
            if any(counts(signatures[index]) for counts in counted)
            for other in moves
            if other is not move
        ]

    @contextmanager
    def _arranged(self, others: Sequence[IndexedMove], kept: set[int]) -> Iterator[None]:
        """Count other moves under way once, on a node of ``kept`` if they touch one, or nowhere."""
        off = []
        for other in others:
            here = next((node for node in other.ends if node in kept), NOWHERE)
            off += [(other.signature, node) for node in other.ends if node != here]
        for signature, node in off:
            self.state.forget(signature, node)
        try:
            yield
        finally:
            for signature, node in off:
                self.state.assume(signature, node)

    @contextmanager
    def without(self, signature: Signature, node: int) -> Iterator[None]:
        """Take a pod of a signature off a node for a while."""
        if node == NOWHERE:
            yield
            return
        self.state.forget(signature, node)
        try:
            yield
        finally:
            self.state.assume(signature, node)

    def _leave(self, move: IndexedMove) -> None:
        self.wave.pop()
        if self._counting and self._counting[-1] is move:
            self._counting.pop()
        self._by_signature[move.signature.index].pop()
        if move.target != NOWHERE:
            self.state.forget(move.signature, move.target)
