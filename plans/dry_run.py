"""A cluster on which moves are carried out one event at a time, by the real filters and the budgets' maths.

This is what a plan is checked against: it shares with the sequencing of moves nothing but the scheduler framework and
the budgets, and it knows no waves. Four things can happen to a move: its pod is evicted (`DryRun.evict`) and then
terminates while it still holds its room, its pod is gone (`DryRun.vanish`), its replacement or the pod that waited
is bound (`DryRun.bind`), and it becomes ready (`DryRun.become_ready`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import BudgetLedger, Budgets, EvictionResponse
from stowplan.plans.cordons import cordon
from stowplan.plans.move import Move
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures
from stowplan.plugins_compat.framework.status import Code, Status

GONE = "1970-01-01T00:00:00Z"
"""Deletion timestamp of a pod that was evicted in a dry run; only its presence is read."""


class DryRun:
    """A cluster in motion.

    A pod is named by its key throughout; its replacement goes by the same key, whatever its name will be. While both
    are there, the old one is ``terminating``.

    Parameters
    ----------
    start
        The assignment at the beginning; by default that of the snapshot.

    Attributes
    ----------
    framework
        The profile's plugins on the cluster as it is now, terminating pods included. For callers that need to know
        where the scheduler would put a pod: ``examine(run.framework, pod)``.
    ledger
        The budgets as they are now.
    node_of
        Node name by pod key of the pods that are bound and not terminating.
    terminating
        Node name by pod key of the pods that were evicted and are not gone yet.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        profile: Profile,
        *,
        start: Assignment | None = None,
        signatures: Signatures | None = None,
        budgets: Budgets | None = None,
    ) -> None:
        self.snapshot = self._uncordoned = snapshot
        self.profile = profile
        self._closed: frozenset[str] = frozenset()
        self.pods: dict[str, Pod] = {pod.key: pod for pod in snapshot.pods if not pod.finished}
        self.node_of: dict[str, str] = dict(snapshot.assignment if start is None else start)
        self.terminating: dict[str, str] = {}
        self._leaving: dict[str, Pod] = {}
        self.framework: Framework = populated(snapshot, profile, Assignment(self.node_of), signatures)
        self.ledger: BudgetLedger = (budgets or Budgets(snapshot)).ledger()

    def expect(self, keys: Iterable[str]) -> None:
        """Get to know pods that are to be evicted, as they will be while they terminate; it is quicker at once."""
        for key in keys:
            self._leaving[key] = leaving(self.pods[key])
            self.framework.state.signatures.of(self._leaving[key])

    def cordon(self, nodes: Iterable[str]) -> None:
        """Cordon these nodes and no others of those that the snapshot has open; nothing may be under way.

        Raises
        ------
        InputError
            If the snapshot has no node of a name.
        """
        closed = frozenset(nodes)
        if closed != self._closed:
            self._closed = closed
            self.snapshot = cordon(self._uncordoned, closed)
            self.framework = populated(
                self.snapshot, self.profile, Assignment(self.node_of), self.framework.state.signatures
            )

    # -- events -----------------------------------------------------------------------------------------------

    def evict(self, key: str) -> EvictionResponse:
        """Ask the Eviction API; if it grants, the pod terminates, and still holds its room."""
        pod = self.pods[key]
        response = self.ledger.evict(pod)
        if response.granted:
            self._terminate(key)
        return response

    def force(self, key: str) -> None:
        """Delete a pod without asking any budget."""
        self.ledger.lose(self.pods[key])
        self._terminate(key)

    def _terminate(self, key: str) -> None:
        pod, node = self.pods[key], self.node_of.pop(key)
        self.terminating[key] = node
        state, index = self.framework.state, self.snapshot.node_index[node]
        state.take(pod, index)
        if key not in self._leaving:
            self._leaving[key] = leaving(pod)
        state.put(self._leaving[key], index)

    def vanish(self, key: str) -> None:
        """Let a terminating pod be gone: its room is free."""
        node = self.terminating.pop(key)
        self.framework.state.take(self._leaving[key], self.snapshot.node_index[node])

    def refusal(self, key: str, node: str) -> Status | None:
        """Return why the filters would not admit a pod on a node now, or ``None`` if they would."""
        return refusal(self.framework, self.pods[key], self.snapshot.node_index[node])

    def bind(self, key: str, node: str) -> None:
        """Put a pod, or the replacement that goes by its key, on a node, whatever the filters say of it."""
        self.framework.state.put(self.pods[key], self.snapshot.node_index[node], new=True)
        self.node_of[key] = node

    def become_ready(self, key: str) -> None:
        """Let a pod that was bound become ready: budgets count it."""
        self.ledger.restore(self.pods[key])

    # -- waves ------------------------------------------------------------------------------------------------

    def carry_out(self, wave: Sequence[Move], rng: random.Random) -> list[Failure]:
        """Carry out a wave in a random order of all its events, and wait until it is over.

        A replacement is offered to the filters as soon as it exists: while the pod it replaces may still be there, and
        others of the wave may have come, gone, both or neither. Where the filters refuse it, or the Eviction API its
        pod, that is a failure; the move is then made all the same, so that what follows can be looked at.
        """
        failures: list[Failure] = []
        under_way = [_UnderWay(move) for move in wave]
        while under_way:
            position = rng.randrange(len(under_way))
            chosen = under_way[position]
            failures += chosen.advance(self, rng)
            if chosen.over:
                under_way[position] = under_way[-1]
                under_way.pop()
        for move in wave:
            if move.target:
                self.become_ready(move.pod.key)
        return failures


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong in a dry run: the pod it happened to, and what."""

    key: str
    problem: str


class _UnderWay:
    """One move of a wave: what has happened, and what may happen next."""

    def __init__(self, move: Move) -> None:
        self.move = move
        self.evicted = self.gone = not move.source
        self.bound = not move.target

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.evicted and self.gone and self.bound

    def advance(self, run: DryRun, rng: random.Random) -> list[Failure]:
        """Let one of the next events happen."""
        move, key = self.move, self.move.pod.key
        if not self.evicted:
            self.evicted = True
            response = run.evict(key)
            if response.granted:
                return []
            run.force(key)
            return [Failure(key, f"the eviction is refused: {response}")]
        may_bind = not self.bound and (self.gone or not (move.same_name or move.waits))
        if may_bind and (self.gone or rng.random() < 0.5):
            self.bound = True
            status = run.refusal(key, move.target)
            run.bind(key, move.target)
            if status is None:
                return []
            return [Failure(key, f"{status.plugin} refuses it on {move.target}: {', '.join(status.reasons)}")]
        if not self.gone:
            self.gone = True
            run.vanish(key)
        return []


def refusal(framework: Framework, pod: Pod, node: int) -> Status | None:
    """Return why the filters would not admit a pod on a node, by its index, or ``None`` if they would."""
    response = framework.run_filters(framework.cycle(pod), np.array([node]))
    if response.rejected is not None:
        return response.rejected
    return None if response.codes[0] == Code.SUCCESS else response.why(0)


def leaving(pod: Pod) -> Pod:
    """Return a pod as it is while it terminates."""
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=GONE))
