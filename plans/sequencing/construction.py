"""One construction of waves: each wave takes what it can; cycles are broken by parking."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from stowplan.plans.move import ONWARD, Move
from stowplan.plans.sequencing.allowances import Allowances
from stowplan.plans.sequencing.parking import Parking, find_parking, third_node
from stowplan.plans.sequencing.problem import SequencingProblem, StuckMove
from stowplan.plans.sequencing.urgency import Urgency
from stowplan.plans.sequencing.wave_state import NOWHERE, IndexedMove, WaveState

MOST_TARGETS = 16
"""Targets of pods that are alike which a pod is offered in one wave."""

INTERRUPTED = "interrupted before it was put in order"
NO_TIME = "no time was left to find an order for it"


@dataclass(frozen=True, slots=True)
class Variant:
    """How a construction differs from the plain one.

    Parameters
    ----------
    eager
        Keys of pods that are parked as soon as they can be, instead of when nothing else goes.
    seed
        Shuffles moves of like urgency; ``None`` takes them as they come.
    """

    eager: frozenset[str] = field(default_factory=frozenset)
    seed: int | None = None


class Construction:
    """A greedy construction that brings all of some moves into waves, as far as it can.

    Parameters
    ----------
    alone
        Keys of pods that need a wave to themselves.
    patient
        The problem that says when to stop parking pods; by default the same.

    Attributes
    ----------
    left
        The moves that are still to be made, from where their pods are by now. A move is known by its position in this
        list while a wave is filled: its target changes when two pods that are alike exchange theirs, its source when
        the pod is parked.
    """

    def __init__(
        self,
        problem: SequencingProblem,
        moves: Sequence[Move],
        alone: set[str],
        variant: Variant,
        patient: SequencingProblem | None = None,
    ) -> None:
        self.problem = problem
        self.patient = patient or problem
        self.alone = alone
        self.variant = variant
        self._random = random.Random(variant.seed) if variant.seed is not None else None
        self.wave_state = WaveState(problem)
        self.allowances = Allowances(problem.snapshot, problem.budgets, problem.limits)
        self.waves: list[list[Move]] = []
        self.stuck: list[StuckMove] = []
        self.left = [self.wave_state.indexed(move) for move in moves]
        self._closed: set[tuple[int, int, int]] = set()

    @property
    def parked(self) -> frozenset[str]:
        """Keys of the pods that were parked."""
        return frozenset(move.pod.key for wave in self.waves for move in wave if move.parks)

    @property
    def cost(self) -> tuple[int, int, int]:
        """The less the better: moves that are stuck, waves, moves."""
        return len(self.stuck), len(self.waves), sum(map(len, self.waves))

    def run(self) -> Construction:
        """Fill wave after wave, until nothing is left, nothing goes, or a stop is asked for."""
        while self.left:
            if self.problem.stopped():
                self.stuck = [StuckMove(move.pod.key, INTERRUPTED) for move in self.left]
                break
            wave = self._fill()
            if not wave:
                parking = find_parking(self.patient, self.wave_state, self.allowances, self.left)
                wave = self._park(parking)
                if self.patient.stopped() and not self.problem.stopped():
                    self.stuck = [StuckMove(move.pod.key, NO_TIME) for move in self.left]
                    break
                if not wave and not self.problem.stopped():
                    self.stuck = list(parking.stuck)
                    break
                if not wave:
                    continue
            self._end(wave)
        return self

    def _end(self, wave: list[Move]) -> None:
        """End a wave, and begin the next one."""
        self.waves.append(wave)
        self.wave_state.end_wave()
        self.allowances.end_wave(move.pod for move in wave if move.target)

    def _held(self, move: IndexedMove) -> str:
        """Return what keeps the pod of a move from being evicted in this wave; empty if nothing does."""
        return (move.source != NOWHERE and self.allowances.refusal(move.pod, move.source)) or ""

    # -- a wave -----------------------------------------------------------------------------------------------

    def _fill(self) -> list[Move]:
        """Offer every move to the wave, the most urgent first."""
        urgency = Urgency(self.wave_state, self.allowances, self.left, self._random)
        wave: list[Move] = []
        joined: set[int] = set()
        alike: defaultdict[Hashable, list[int]] = defaultdict(list)
        for i in urgency.order:
            alike[self.left[i].kind].append(i)
        self._closed.clear()
        for i in urgency.order:
            if self.problem.stopped():
                break
            move = self.left[i]
            alone = move.pod.key in self.alone
            if alone and wave:
                continue
            if self._held(move):
                continue
            others = [j for j in alike[move.kind] if j not in joined and j != i]
            waits = self._join_somewhere(i, others)
            if waits is None:
                continue
            joined.add(i)
            wave.append(self._made(i, urgency, waits))
            if alone:
                break
        self.left = [move for i, move in enumerate(self.left) if i not in joined]
        return wave + self._park_eagerly() if wave and not self.alone else wave

    def _park_eagerly(self) -> list[Move]:
        """Park pods that will have to be parked anyway and cannot go on in this wave."""
        parked = []
        for i, move in enumerate(self.left):
            if move.pod.key not in self.variant.eager or move.follows or move.source == NOWHERE:
                continue
            if self.allowances.refusal(move.pod, move.source):
                continue
            node = third_node(self.wave_state, move, self.left)
            if node is not None:
                parked += self._park_one(i, node, "")
        return parked

    def _join_somewhere(self, i: int, others: Sequence[int]) -> bool | None:
        """Let a move join the wave, with its own target or in exchange with that of a pod which is alike.

        Returns
        -------
        bool or None
            Whether its replacement waits for the pod to be gone; ``None`` if the move may not join.
        """
        tried: set[int] = set()
        move = self.left[i]
        for j in [i, *others]:
            other = self.left[j]
            place = (move.signature.index, move.source, other.target)
            if other.target in tried or place in self._closed or len(tried) >= MOST_TARGETS:
                continue
            if j != i and (other.target == move.source or move.target == other.source):
                continue
            tried.add(other.target)
            there = replace(move, target=other.target)
            status, waits = self.wave_state.refusal(there)
            if status is None:
                self.left[j] = replace(other, target=move.target)
                self.left[i] = there
                self._join(there)
                return waits
            self._closed.add(place)  # nothing that joins the wave later opens it again
        return None

    def _join(self, move: IndexedMove) -> None:
        self.wave_state.join(move)
        if move.source != NOWHERE:
            self.allowances.charge(move.pod, move.source)

    def _made(self, i: int, urgency: Urgency, waits: bool) -> Move:
        move = self.left[i]
        why, room_for = (ONWARD, "") if move.follows else urgency.why(i)
        source, target = self._name(move.source), self._name(move.target)
        return Move(move.pod, source, target, follows=move.follows, waits=waits, why=why, room_for=room_for)

    def _park(self, parking: Parking) -> list[Move]:
        """Begin a wave of parked pods: each goes on from its third node later."""
        return [
            move
            for parked in parking.parked
            if not self.allowances.refusal(self.left[parked.move].pod, self.left[parked.move].source)
            for move in self._park_one(parked.move, parked.node, parked.waiting)
        ]

    def _park_one(self, i: int, node: int, waiting: str) -> list[Move]:
        """Let a pod go to a third node in this wave, if it may."""
        move = self.left[i]
        third = replace(move, target=node)
        refused, waits = self.wave_state.refusal(third)
        if refused is not None:
            return []
        self._join(third)
        source = self._name(move.source)
        why = f"parked, so that {waiting or 'others'} can take its room on {source}"
        parked = Move(move.pod, source, self._name(node), parks=True, waits=waits, why=why, room_for=waiting)
        self.left[i] = replace(move, source=node, follows=parked)
        return [parked]

    def _name(self, node: int) -> str:
        return self.problem.snapshot.nodes[node].name if node != NOWHERE else ""
