"""Local search on the exact cost of a final state: moves, swaps, and moves that are taken back for better ones.

An estimate tells for all targets at once about what a move of one pod changes. The most promising targets are tried:
the move is made, its exact cost is measured, and it is kept or taken back by the rule of Metropolis. Where a target is
full, pods on it are tried in exchange. Where no move is left to spend, a pod that has moved goes home in the same step.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable

import numpy as np

from stowplan.models.problem import NOWHERE, Placement, Problem
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.cooling import Cooling
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.position import Moves, Position


class FinalStateSearch:
    """Search in one tier that has a cost of the final state.

    Parameters
    ----------
    evaluator
        Evaluator of the problem with surrogates, for legality and the tiers before.
    problem
        The problem itself.
    placement
        A legal placement.
    found
        Called now and then, and at the end, with the best placement so far if it is better than the one before.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        problem: Problem,
        tier: int,
        placement: Placement,
        found: Callable[[Placement], object],
        parameters: FinalStateParameters,
        seed: int = 0,
    ) -> None:
        self._evaluator, self._problem, self._tier = evaluator, problem, tier
        self._position = Position(evaluator, problem, tier, placement)
        self._start, self._nodes = problem.start, len(problem.nodes)
        self._parameters, self._found = parameters, found
        self._random = random.Random(seed)
        self._best, self._best_placement = self._position.cost, placement
        self._said = self._best
        self._changes: list[int] = []
        self._schedule: Cooling | None = None

    def run(self, deadline: Deadline, enough: Callable[[], bool] = lambda: False) -> None:
        """Search until time is up, cooling down; ``enough`` is asked now and then whether to end before."""
        parameters, rng = self._parameters, self._random
        limit = int(parameters.trials * deadline.seconds) if deadline.deterministic else 0
        tries, said, cooled = 0, time.monotonic(), 0
        # What was spent and tried when the first trial, which takes long, was over.
        first: tuple[float, int] | None = None
        self._changes, self._schedule = [], None
        while not deadline.over and not (deadline.deterministic and tries >= limit):
            spent = tries / max(1, limit) if deadline.deterministic else 1 - deadline.remaining / deadline.seconds
            if time.monotonic() - said > parameters.pause:
                self._say()
                said = time.monotonic()
                if enough():
                    return
            placement = self._position.placement
            if not len(placement.cls):
                return
            if tries and first is None:
                first = spent, tries
            if first is not None and self._schedule is None and parameters.knows_changes(len(self._changes), spent):
                pace = (tries - first[1]) / max(spent - first[0], 1e-3)
                # Under a limit, most of what is hot moves pods home and away again.
                trials = 0.0 if self._problem.limits_any_moves else pace * (1 - spent) / len(placement.cls)
                self._schedule = Cooling.of(parameters.temperatures, float(np.median(self._changes)), spent, trials)
            if self._schedule is not None and self._schedule.round(spent) > cooled:
                cooled = self._schedule.round(spent)
                self._position = Position(self._evaluator, self._problem, self._tier, self._best_placement)
                continue
            temperature = 0.0 if self._schedule is None else self._schedule.temperature(spent)
            e = rng.randrange(len(placement.cls))
            tries += 1 + self._improve(int(placement.cls[e]), int(placement.node[e]), temperature)
        self._say()

    def _say(self) -> None:
        if self._best < self._said:
            self._said = self._best
            self._found(self._best_placement)

    def _slack(self, temperature: float) -> float:
        """Return how much worse a move may promise to be that is tried: any, until it is known what moves cost."""
        return math.inf if self._schedule is None else 3 * temperature

    def _improve(self, c: int, source: int, temperature: float) -> int:
        """Try the best targets of a pod; return how many moves were measured."""
        change, feasible = self._position.promise(c, source)
        slack = self._slack(temperature)
        back: Moves = ()
        if self._position.left <= 0 and self._position.costs_a_move(c, source, NOWHERE) > 0:
            taken = self._taken_back()
            if taken is None:
                return 0
            back = (taken[0],)
            change = change + taken[1]
        order = np.argsort(change, kind="stable")
        measured = 0
        for target in order[: 4 * self._parameters.tried].tolist():
            if change[target] > slack or measured >= self._parameters.tried:
                break
            if target == source:
                continue
            if feasible[target]:
                measured += 1
                if self._try([*back, (c, source, target)], temperature):
                    break
            elif self._swap(back, c, source, target, int(change[target]), temperature):
                measured += 1
                break
        return measured

    def _taken_back(self) -> tuple[tuple[int, int, int], int] | None:
        """Return a pod's way home, drawn among those that have moved, and about what it changes."""
        placement = self._position.placement
        arrived = placement.beyond(self._start, self._nodes)
        if not len(arrived.cls):
            return None
        e = self._random.randrange(len(arrived.cls))
        c, node = int(arrived.cls[e]), int(arrived.node[e])
        left = self._start.beyond(placement, self._nodes)
        homes = left.node[left.cls == c]
        if not len(homes):
            return None
        home = int(homes[self._random.randrange(len(homes))])
        change, _ = self._position.promise(c, node)
        return (c, node, home), int(change[home])

    def _swap(self, back: Moves, c: int, source: int, target: int, change: int, temperature: float) -> bool:
        """Try to exchange a pod with one on a node that is full."""
        placement = self._position.placement
        others = np.unique(placement.cls[placement.node == target])
        others = others[others != c]
        if not len(others):
            return False
        some = (
            others
            if len(others) <= self._parameters.swapped
            else self._random.sample(others.tolist(), self._parameters.swapped)
        )
        for other in some:
            if back and self._position.costs_a_move(int(other), target, source) > 0:
                continue
            onward, _ = self._position.promise(int(other), target)
            if change + int(onward[source]) <= self._slack(temperature) and self._try(
                [*back, (int(other), target, source), (c, source, target)], temperature
            ):
                return True
        return False

    def _try(self, moves: Moves, temperature: float) -> bool:
        """Make moves if they are legal and good enough by the exact cost."""

        def accepts(change: int) -> bool:
            return change <= 0 or (temperature > 0 and self._random.random() < math.exp(-change / temperature))

        tried = self._position.attempt(moves, accepts)
        if tried is None:
            return False
        change, made = tried
        if change and self._schedule is None:
            self._changes.append(abs(change))
        if made and self._position.cost < self._best:
            self._best, self._best_placement = self._position.cost, self._position.placement
        return made
