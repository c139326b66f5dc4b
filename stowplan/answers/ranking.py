"""Which moves of a placement matter most: an order in which the first ones bring as much as they can.

The order is greedy. Each step makes the move that lowers the objective most, among those that leave the placement
legal; gains are evaluated lazily, as in M. Minoux, "Accelerated greedy algorithms for maximizing submodular set
functions" (1978). Whatever the order, the value after each step is that of the evaluator, so what a report says of the
first moves is exact. It is not claimed that no other moves bring more; `stowplan.answers.frontier` searches for them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stowplan.answers.assessment import Assessment, Assessor
from stowplan.models.arrays import Ints
from stowplan.models.assignment import Assignment
from stowplan.models.problem import Placement, Problem
from stowplan.models.words import plural
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plans.move import Move

ENOUGH = 0.8
"""Share of an improvement that is worth naming."""

EVALUATIONS = 1500
"""Most placements that are evaluated; where they do not suffice, the moves that are left keep their order."""

FEW_EVALUATIONS = 200
"""The same where a stop was asked for."""

CELLS = 200_000_000
"""Most cells, of classes and nodes, in all placements that are evaluated."""


@dataclass(frozen=True, slots=True)
class RankedMove:
    """A move, and what it comes to once it and all before it are made.

    Parameters
    ----------
    moves
        How many pods have left their node by then.
    values
        Value of each tier by then; ``None`` if the placement would not be legal, since later moves belong to it.
    """

    move: Move
    moves: int
    values: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Worth:
    """How many of the ranked moves bring most of a tier's improvement.

    Parameters
    ----------
    tier
        Name of the tier.
    moves
        Pods that leave their node.
    share
        Share of the tier's improvement that these moves bring.
    """

    tier: str
    moves: int
    share: float


def rank(assessment: Assessment, *, evaluations: int | None = None) -> list[RankedMove]:
    """Return the moves from today's assignment to another one, those that bring most first.

    Parameters
    ----------
    evaluations
        Most placements that are evaluated; `EVALUATIONS` if not given.
    """
    final = assessment.evaluation.values
    ranked = _ranked(
        assessment.assessor, assessment.assessor.compiled.snapshot.assignment, assessment.assignment, evaluations
    )
    return [*ranked[:-1], replace(ranked[-1], values=final)] if ranked else []


def rank_further(assessor: Assessor, first: Assignment, then: Assignment, *, evaluations: int) -> list[RankedMove]:
    """Return the moves to another assignment of pods that a first one leaves where they are, as `rank` does.

    Their values, and the number of pods that have left, are those after the first assignment.
    """
    today = assessor.compiled.snapshot.assignment
    moved = first.moved_from(today)
    return _ranked(assessor, first, then.moved((key, first.get(key)) for key in moved), evaluations)


def _ranked(assessor: Assessor, begin: Assignment, end: Assignment, evaluations: int | None) -> list[RankedMove]:
    """Return the moves between two assignments, those that bring most first."""
    compiled = assessor.compiled
    index = compiled.snapshot.node_index
    changes = end.moved_from(begin)
    steps = [
        _Step(Move(pod, *changes[pod.key]), c, index.get(changes[pod.key][0], -1), index.get(changes[pod.key][1], -1))
        for pod, c in zip(compiled.pods, compiled.class_of.tolist(), strict=True)
        if pod.key in changes
    ]
    ranked: list[RankedMove] = []
    moves = 0
    greedy = _Greedy(assessor.evaluator, compiled.placement(begin), steps, evaluations or EVALUATIONS)
    for step, values in greedy.order():
        moves += bool(step.move.source)
        ranked.append(RankedMove(step.move, moves, values))
    return ranked


def worth(problem: Problem, before: Sequence[int], ranked: Sequence[RankedMove]) -> list[Worth]:
    """Return, for each tier that improves, how many of the first moves bring most of it.

    Parameters
    ----------
    before
        Value of each tier without any move.
    """
    if not ranked or ranked[-1].values is None:
        return []
    found = []
    for t, tier in enumerate(problem.tiers):
        gain = before[t] - ranked[-1].values[t]
        if gain <= 0:
            continue
        shares = [(one.moves, (before[t] - one.values[t]) / gain) for one in ranked if one.values is not None]
        moves, share = next((moves, share) for moves, share in shares if share >= ENOUGH)
        found.append(Worth(tier.name, moves, share))
    return found


def recommended(found: Sequence[Worth], total: int) -> int | None:
    """Return the number of moves that bring most of every improvement; ``None`` if that takes all of them.

    Parameters
    ----------
    total
        How many pods leave their node if all moves are made.
    """
    needed = max((one.moves for one in found), default=0)
    return needed if 0 < needed < total else None


def worth_words(found: Sequence[Worth], total: int) -> str:
    """Say how many of the moves bring most, and how many are recommended; empty where it takes all of them."""
    parts = [
        f"{plural(one.moves, 'move')} {'gives' if one.moves == 1 else 'give'} {one.share:.0%} "
        f"of the improvement in {one.tier}"
        for one in found
        if 0 < one.moves < total
    ]
    if not parts:
        return ""
    advice = f" Recommended: --max-moves {number}." if (number := recommended(found, total)) else ""
    return f"{'; '.join(parts)}.{advice}"


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """A move in the numbers of the problem; a node of -1 is none."""

    move: Move
    cls: int
    source: int
    target: int


class _Greedy:
    def __init__(self, evaluator: Evaluator, begin: Placement, steps: Sequence[_Step], evaluations: int) -> None:
        self.evaluator = evaluator
        self.steps = steps
        self.table: Ints = begin.table(*evaluator.problem.shape)
        self.values = evaluator.evaluate(begin).values
        self.left = min(evaluations, CELLS // max(1, self.table.size))

    def order(self) -> Iterator[tuple[_Step, tuple[int, ...] | None]]:
        """Yield every step, with the values after it where they are known."""
        known: list[tuple[tuple[int, ...], int]] = []
        rejected: set[int] = set()
        undone = set(range(len(self.steps)))

        def look(i: int) -> None:
            values = self._tried(self.steps[i])
            if values is None:
                rejected.add(i)
            else:
                gain = tuple(now - then for now, then in zip(values, self.values, strict=True))
                heapq.heappush(known, (gain, i))

        for i in undone:
            look(i)
        while known and self.left > 0:
            _, i = heapq.heappop(known)
            look(i)
            if i in rejected or known[0][1] != i:
                continue
            gain, _ = heapq.heappop(known)
            step = self.steps[i]
            self._make(step)
            self.values = tuple(then + change for then, change in zip(self.values, gain, strict=True))
            undone.remove(i)
            yield step, self.values
            for j in [j for j in rejected if self.steps[j].target == step.source or not known]:
                rejected.remove(j)
                look(j)
        for i in sorted(undone):
            yield self.steps[i], None

    def _tried(self, step: _Step) -> tuple[int, ...] | None:
        """Return the values after a step; ``None`` if it breaks a rule, or nothing more may be evaluated."""
        if self.left <= 0:
            return None
        self.left -= 1
        self._make(step)
        evaluation = self.evaluator.evaluate(Placement.from_table(self.table))
        self._make(step, -1)
        return evaluation.values if evaluation.legal else None

    def _make(self, step: _Step, times: int = 1) -> None:
        if step.source >= 0:
            self.table[step.cls, step.source] -= times
        if step.target >= 0:
            self.table[step.cls, step.target] += times
