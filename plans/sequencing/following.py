"""A construction of waves from moves that are known to be possible one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from stowplan.plans.move import ONWARD, PARKED, Move
from stowplan.plans.sequencing.construction import INTERRUPTED, Construction, Variant
from stowplan.plans.sequencing.problem import SequencingProblem, StuckMove
from stowplan.plans.sequencing.wave_state import NOWHERE, IndexedMove


class Following(Construction):
    """Brings moves that come one after the other into waves, with as many under way together as can be.

    What comes to a node comes there in the order given: then there is never less room than if all moves were made one
    by one. A move that the filters refuse although nothing is under way is left out, and what its pod would do next.

    Parameters
    ----------
    steps
        The moves, each from where the pod is by then; a pod that has several goes over third nodes.
    """

    def __init__(self, problem: SequencingProblem, steps: Sequence[Move], alone: set[str]) -> None:
        super().__init__(problem, steps, alone, Variant())
        self._waits = False
        self._several = Counter(move.pod.key for move in steps)
        self._made_before: dict[str, Move] = {}

    def run(self) -> Construction:
        """Fill wave after wave, until nothing is left, or a stop is asked for."""
        while self.left:
            wave = self._fill() or self._fill(in_order=False)
            if self.problem.stopped():
                self.stuck += [StuckMove(move.pod.key, INTERRUPTED) for move in self.left]
                break
            if not wave:
                self._leave_out()
                continue
            self._end(wave)
        if not self.problem.stopped():
            self.waves = _ending(self.waves)
        return self

    def _fill(self, in_order: bool = True) -> list[Move]:
        """Offer the moves to the wave; in their order, none goes to a node before one that is refused there.

        A budget may allow a move only once another pod has come to the same node, which is then the first to go.
        """
        wave: list[Move] = []
        kept: list[IndexedMove] = []
        closed: set[int] = set()
        waiting: set[str] = set()
        for move in self.left:
            key = move.pod.key
            alone = key in self.alone
            if move.target in closed or key in waiting or (wave and alone) or not self._joins(move):
                kept.append(move)
                if in_order:
                    closed.add(move.target)
                waiting.add(key)
                continue
            waiting.add(key)  # the next one starts where this one ends
            wave.append(self._told(move))
            if alone:
                closed.update(other.target for other in self.left)
        self.left = kept
        return wave

    def _joins(self, move: IndexedMove) -> bool:
        """Let a move join the wave, if it may."""
        if self.problem.stopped() or self._held(move):
            return False
        refused, self._waits = self.wave_state.refusal(move)
        if refused is None:
            self._join(move)
        return refused is None

    def _told(self, move: IndexedMove) -> Move:
        """Return a move with what it follows, and whether another one follows it."""
        key = move.pod.key
        self._several[key] -= 1
        before = self._made_before.get(key)
        made = Move(
            move.pod,
            self._name(move.source),
            self._name(move.target),
            parks=self._several[key] > 0,
            follows=before,
            waits=self._waits,
            why="pending" if move.source == NOWHERE else ONWARD if before else PARKED if self._several[key] else "",
        )
        self._made_before[key] = made
        return made

    def _leave_out(self) -> None:
        """Leave out the first move, which is refused although no other is under way, and what its pod would do next."""
        move = self.left[0]
        reason = self._held(move) or self.wave_state.refused(move) or INTERRUPTED
        self.stuck.append(StuckMove(move.pod.key, reason))
        self.left = [other for other in self.left if other.pod.key != move.pod.key]


def _ending(waves: Sequence[Sequence[Move]]) -> list[list[Move]]:
    """Return the waves with no pod that is parked and goes nowhere from there: it stays."""
    followed = {id(move.follows) for wave in waves for move in wave if move.follows is not None}
    changed: dict[int, Move] = {}
    ended: list[list[Move]] = []
    for wave in waves:
        told = []
        for move in wave:
            before = changed.get(id(move.follows), move.follows)
            one = replace(move, follows=before, parks=move.parks and id(move) in followed)
            changed[id(move)] = one
            told.append(one)
        ended.append(told)
    return ended
