"""From moves to waves: each wave takes what it can, the most urgent first; cycles are broken by parking."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from plans.rehearsal import Movement, Rehearsal, rehearse
from plans.sequencing.allowances import Allowances
from plans.sequencing.least import least_waves
from plans.sequencing.parking import Parking, find_parking
from plans.sequencing.stage import NOWHERE, Part, Stage
from plans.sequencing.task import Relocation, Sequencing, Step, Stuck, Task
from plans.sequencing.urgency import Urgency

ORDERS = 2
"""Random orders in which a finished sequence is played through."""
MOST_TARGETS = 16
"""Targets of pods that are alike which a pod is offered in one wave."""


def sequence(task: Task, *, orders: int = ORDERS, seed: int = 0) -> Sequencing:
    """Put moves in order; see `Task` and `Sequencing`.

    Moves that no order reaches are left out, and what depended on them with them. The result is played through in
    random orders; a move that the filters refuse there, which only a plugin of one's own can bring about, gets a wave
    to itself.
    """
    moves = list(task.moves)
    stuck: list[Stuck] = []
    alone: set[str] = set()
    while True:
        attempt = _Attempt(task, moves, alone)
        attempt.run()
        if attempt.stuck:
            stuck += attempt.stuck
            left_out = {one.key for one in attempt.stuck}
            moves = [move for move in moves if move.pod.key not in left_out]
            continue
        refused = _refused_in_random_orders(task, attempt.waves, orders, seed) - alone
        if not refused:
            least, because = least_waves(task, _reached(attempt.waves))
            return Sequencing(attempt.waves, stuck, least, because)
        alone |= refused


def _refused_in_random_orders(task: Task, waves: Sequence[Sequence[Step]], orders: int, seed: int) -> set[str]:
    refused: set[str] = set()
    for turn in range(orders):
        rng = random.Random(seed + turn)
        rehearsal = Rehearsal(task.snapshot, task.profile, where=task.where, shapes=task.shapes, budgets=task.budgets)
        rehearsal.expect(step.pod.key for wave in waves for step in wave if step.source)
        for wave in waves:
            refused |= {trouble.key for trouble in rehearse(rehearsal, [movement(step) for step in wave], rng)}
    return refused


def _reached(waves: Sequence[Sequence[Step]]) -> list[Relocation]:
    """Return the moves that waves come to, parked pods from where they first stood to where they stay."""
    first: dict[str, str] = {}
    moves: list[Relocation] = []
    for step in (step for wave in waves for step in wave):
        first.setdefault(step.pod.key, step.source)
        if not step.parks:
            moves.append(Relocation(step.pod, first[step.pod.key], step.target))
    return moves


def movement(step: Step) -> Movement:
    """Return a step as a rehearsal takes it."""
    return Movement(step.pod.key, step.source, step.target, same_name=keeps_name(step), waits=step.waits)


def keeps_name(step: Step | Relocation) -> bool:
    """Whether a pod's replacement has its name: a StatefulSet makes it only when the pod is gone."""
    controller = step.pod.metadata.controller
    return bool(step.source) and controller is not None and controller.kind == "StatefulSet"


@dataclass(slots=True, eq=False)
class Pending:
    """A move that is still to be made, from where its pod stands by now."""

    part: Part
    kind: Hashable
    follows: Step | None = None


class _Attempt:
    """One try to bring all of some moves into waves."""

    def __init__(self, task: Task, moves: Sequence[Relocation], alone: set[str]) -> None:
        self.task = task
        self.alone = alone
        self.stage = Stage(task)
        self.allowances = Allowances(task.snapshot, task.budgets, task.limits)
        self.waves: list[list[Step]] = []
        self.stuck: list[Stuck] = []
        self.left = [self._pending(move) for move in moves]
        self._closed: set[tuple[int, int, int]] = set()

    def run(self) -> None:
        """Fill wave after wave, until nothing is left or nothing goes."""
        while self.left:
            if self.task.stopped():
                self.stuck = [Stuck(p.part.pod.key, "there was no time to put it in order") for p in self.left]
                return
            wave = self._fill()
            if not wave:
                parking = find_parking(self.task, self.stage, self.allowances, self.left)
                wave = self._park(parking)
                if not wave:
                    self.stuck = list(parking.stuck)
                    return
            self.waves.append(wave)
            self.stage.end_wave()
            self.allowances.end_wave(step.pod for step in wave if step.target)

    # -- a wave -----------------------------------------------------------------------------------------------

    def _fill(self) -> list[Step]:
        """Offer every move to the wave, the most urgent first."""
        urgency = Urgency(self.stage, self.allowances, self.left)
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
        return wave

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
            place = (part.shape.index, part.source, target)
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
        wave: list[Step] = []
        for parked in parking.parked:
            part = parked.pending.part
            third = replace(part, target=parked.node)
            refused, waits = self.stage.refusal(third)
            if refused is not None or self.allowances.refusal(part.pod, part.source):
                continue
            self._join(third)
            source = self._name(part.source)
            why = f"parked, so that {parked.waiting} can take its room on {source}"
            step = Step(part.pod, source, self._name(parked.node), parks=True, waits=waits, why=why)
            wave.append(step)
            parked.pending.part = replace(part, source=parked.node)
            parked.pending.follows = step
        return wave

    # -- nodes and names --------------------------------------------------------------------------------------

    def _pending(self, move: Relocation) -> Pending:
        index = self.task.snapshot.node_index
        source = index[move.source] if move.source else NOWHERE
        target = index[move.target] if move.target else NOWHERE
        part = self.stage.part(move.pod, source, target, gone_first=keeps_name(move))
        return Pending(part, self.task.alike(move.pod) if self.task.alike else part.shape.index)

    def _name(self, node: int) -> str:
        return self.task.snapshot.nodes[node].name if node != NOWHERE else ""
