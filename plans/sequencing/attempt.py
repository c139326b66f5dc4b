"""One try to bring moves into waves: each wave takes what it can; cycles are broken by parking."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from stowplan.plans.sequencing.allowances import Allowances
from stowplan.plans.sequencing.parking import Parking, find_parking, third_node
from stowplan.plans.sequencing.stage import NOWHERE, Part, Stage
from stowplan.plans.sequencing.task import Relocation, Step, Stuck, Task, keeps_name
from stowplan.plans.sequencing.urgency import Urgency

MOST_TARGETS = 16
"""Targets of pods that are alike which a pod is offered in one wave."""


@dataclass(frozen=True, slots=True)
class Variant:
    """How a try differs from the plain one.

    Parameters
    ----------
    eager
        Keys of pods that are parked as soon as they can be, instead of when nothing else goes.
    seed
        Shuffles moves of like urgency; ``None`` takes them as they come.
    """

    eager: frozenset[str] = field(default_factory=frozenset)
    seed: int | None = None


@dataclass(slots=True, eq=False)
class Pending:
    """A move that is still to be made, from where its pod stands by now."""

    part: Part
    kind: Hashable
    follows: Step | None = None


class Attempt:
    """One try to bring all of some moves into waves.

    Parameters
    ----------
    alone
        Keys of pods that need a wave to themselves.
    """

    def __init__(self, task: Task, moves: Sequence[Relocation], alone: set[str], variant: Variant) -> None:
        self.task = task
        self.alone = alone
        self.variant = variant
        self._random = random.Random(variant.seed) if variant.seed is not None else None
        self.stage = Stage(task)
        self.allowances = Allowances(task.snapshot, task.budgets, task.limits)
        self.waves: list[list[Step]] = []
        self.stuck: list[Stuck] = []
        self.left = [self._pending(move) for move in moves]
        self._closed: set[tuple[int, int, int]] = set()

    @property
    def parked(self) -> frozenset[str]:
        """Keys of the pods that were parked."""
        return frozenset(step.pod.key for wave in self.waves for step in wave if step.parks)

    @property
    def merit(self) -> tuple[int, int, int]:
        """The less the better: moves that are stuck, waves, steps."""
        return len(self.stuck), len(self.waves), sum(map(len, self.waves))

    def run(self) -> Attempt:
        """Fill wave after wave, until nothing is left or nothing goes."""
        while self.left:
            wave = self._fill()
            if not wave:
                parking = find_parking(self.task, self.stage, self.allowances, self.left)
                wave = self._park(parking)
                if not wave:
                    self.stuck = list(parking.stuck)
                    break
            self.waves.append(wave)
            self.stage.end_wave()
            self.allowances.end_wave(step.pod for step in wave if step.target)
        return self

    # -- a wave -----------------------------------------------------------------------------------------------

    def _fill(self) -> list[Step]:
        """Offer every move to the wave, the most urgent first."""
        urgency = Urgency(self.stage, self.allowances, self.left, self._random)
        wave: list[Step] = []
        joined: set[int] = set()
        alike: defaultdict[Hashable, list[Pending]] = defaultdict(list)
        for pending in urgency.order:
            alike[pending.kind].append(pending)
        self._closed.clear()
        for pending in urgency.order:
            part = pending.part
            lonely = part.pod.key in self.alone
            if lonely and wave:
                continue
            if part.source != NOWHERE and self.allowances.refusal(part.pod, part.source):
                continue
            others = [other for other in alike[pending.kind] if id(other) not in joined and other is not pending]
            waits = self._join_somewhere(pending, others)
            if waits is None:
                continue
            joined.add(id(pending))
            wave.append(self._step(pending, urgency, waits))
            if lonely:
                break
        self.left = [pending for pending in self.left if id(pending) not in joined]
        return wave + self._park_eagerly() if wave and not self.alone else wave

    def _park_eagerly(self) -> list[Step]:
        """Park pods that will have to be parked anyway and cannot go on in this wave."""
        steps = []
        for pending in self.left:
            part = pending.part
            if part.pod.key not in self.variant.eager or pending.follows or part.source == NOWHERE:
                continue
            if self.allowances.refusal(part.pod, part.source):
                continue
            node = third_node(self.stage, pending, self.left)
            if node is not None:
                steps += self._park_one(pending, node, "")
        return steps

    def _join_somewhere(self, pending: Pending, others: Sequence[Pending]) -> bool | None:
        """Let a move join the wave, with its own target or in exchange with that of a pod which is alike.

        Returns
        -------
        bool or None
            Whether its replacement waits for the pod to be gone; ``None`` if the move may not join.
        """
        tried: set[int] = set()
        for other in [pending, *others]:
            part, target = pending.part, other.part.target
            place = (part.signature.index, part.source, target)
            if target in tried or place in self._closed or len(tried) >= MOST_TARGETS:
                continue
            if other is not pending and (target == part.source or part.target == other.part.source):
                continue
            tried.add(target)
            there = replace(part, target=target)
            status, waits = self.stage.refusal(there)
            if status is None:
                other.part = replace(other.part, target=part.target)
                pending.part = there
                self._join(there)
                return waits
            self._closed.add(place)  # nothing that joins the wave later opens it again
        return None

    def _join(self, part: Part) -> None:
        self.stage.join(part)
        if part.source != NOWHERE:
            self.allowances.charge(part.pod, part.source)

    def _step(self, pending: Pending, urgency: Urgency, waits: bool) -> Step:
        part = pending.part
        why = "goes on from where it was parked" if pending.follows else urgency.why(pending)
        return Step(
            part.pod, self._name(part.source), self._name(part.target), follows=pending.follows, waits=waits, why=why
        )

    def _park(self, parking: Parking) -> list[Step]:
        """Begin a wave of parked pods: each goes on from its third node later."""
        return [
            step
            for parked in parking.parked
            if not self.allowances.refusal(parked.pending.part.pod, parked.pending.part.source)
            for step in self._park_one(parked.pending, parked.node, parked.waiting)
        ]

    def _park_one(self, pending: Pending, node: int, waiting: str) -> list[Step]:
        """Let a pod go to a third node in this wave, if it may."""
        part = pending.part
        third = replace(part, target=node)
        refused, waits = self.stage.refusal(third)
        if refused is not None:
            return []
        self._join(third)
        source = self._name(part.source)
        why = f"parked, so that {waiting or 'others'} can take its room on {source}"
        step = Step(part.pod, source, self._name(node), parks=True, waits=waits, why=why)
        pending.part = replace(part, source=node)
        pending.follows = step
        return [step]

    # -- nodes and names --------------------------------------------------------------------------------------

    def _pending(self, move: Relocation) -> Pending:
        index = self.task.snapshot.node_index
        source = index[move.source] if move.source else NOWHERE
        target = index[move.target] if move.target else NOWHERE
        part = self.stage.part(move.pod, source, target, gone_first=keeps_name(move))
        return Pending(part, self.task.alike(move.pod) if self.task.alike else part.signature.index)

    def _name(self, node: int) -> str:
        return self.task.snapshot.nodes[node].name if node != NOWHERE else ""
