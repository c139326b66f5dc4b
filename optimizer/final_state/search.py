"""Local search on the exact cost of a final state: moves and swaps.

An estimate tells for all targets at once about what a move of one pod changes. The most promising targets are tried:
the move is made, its exact cost is measured, and it is kept or taken back by the rule of Metropolis. Where a target is
full, pods on it are tried in exchange.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import FinalCost, Placement, Problem, Unplaced, Violation
from stowplan.optimizer.constructive.marginal import marginals, total_rise
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import cost
from stowplan.optimizer.final_state.parameters import FinalStateParameters


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
        Called with every placement that is better than all before.
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
        final = problem.tiers[tier].final
        if final is None:
            raise ValueError(f"tier {problem.tiers[tier].name} has no cost of the final state")
        self._final: FinalCost = final
        self._problem, self._tier = problem, tier
        # Neither surrogates nor later tiers are asked for.
        self._evaluator = Evaluator(replace(evaluator.problem, tiers=evaluator.problem.tiers[:tier]))
        self._parameters, self._found = parameters, found
        self._random = random.Random(seed)
        self._earlier = self._evaluator.evaluate(placement).values
        counts = [w.term for earlier in problem.tiers[:tier] for w in earlier.terms]
        # What counts violations and unplaced pods stays 0, or as it is, as long as moves are legal.
        violated = any(
            value and any(isinstance(w.term, Violation) for w in earlier.terms)
            for earlier, value in zip(problem.tiers, self._earlier, strict=False)
        )
        self._safe = not violated and all(isinstance(term, Violation | Unplaced) for term in counts)
        self._terms = problem.tiers[tier].terms
        self._at(placement)
        self._best = self._cost
        self._changes: list[int] = []

    def _at(self, placement: Placement) -> None:
        self._legal = State(self._evaluator, placement)
        self._state = self._final.state(placement)
        local, relational = marginals(self._problem, self._problem.tiers[self._tier], placement)
        self._marginals = [*local, *relational]
        self._cost = self._state.cost + self._others()

    def _others(self) -> int:
        """Return what the tier's terms cost."""
        placement = self._legal.placement
        return sum(w.weight * cost(w.term, self._problem, placement, 0) for w in self._terms)

    def run(self, deadline: Deadline) -> None:
        """Search until time is up, cooling down."""
        parameters, rng = self._parameters, self._random
        limit = int(parameters.trials * deadline.seconds) if deadline.deterministic else 0
        tries = 0
        while not deadline.over and not (deadline.deterministic and tries >= limit):
            spent = tries / max(1, limit) if deadline.deterministic else 1 - deadline.remaining / deadline.seconds
            placement = self._legal.placement
            if not len(placement.cls):
                return
            e = rng.randrange(len(placement.cls))
            tries += 1 + self._improve(int(placement.cls[e]), int(placement.node[e]), self._temperature(spent))

    def _temperature(self, spent: float) -> float:
        if len(self._changes) < 20:
            return 0.0
        mean = sum(self._changes) / len(self._changes)
        hottest, coolest = self._parameters.hottest, self._parameters.coolest
        return float(mean * hottest * (coolest / hottest) ** spent)

    def _improve(self, c: int, source: int, temperature: float) -> int:
        """Try the best targets of a pod; return how many moves were measured."""
        change, feasible = self._state.estimate(c, source)
        change = change + self._marginal(c, source)
        slack = 3 * temperature
        order = np.argsort(change, kind="stable")
        measured = 0
        for target in order[: 4 * self._parameters.tried].tolist():
            if change[target] > slack or measured >= self._parameters.tried:
                break
            if target == source:
                continue
            if feasible[target]:
                measured += 1
                if self._try([(c, source, target)], temperature):
                    break
            elif self._swap(c, source, target, int(change[target]), temperature):
                measured += 1
                break
        return measured

    def _marginal(self, c: int, source: int) -> Ints:
        """``[n]`` what the terms of the tier change if a pod goes to each node."""
        nodes = np.arange(len(self._problem.nodes))
        rise = total_rise(self._marginals, np.array([[c]]), nodes, 1)[0]
        left = total_rise(self._marginals, np.array([[c]]), np.array([source]), -1)[0, 0]
        change: Ints = rise + left
        change[source] = 0
        return change

    def _swap(self, c: int, source: int, target: int, change: int, temperature: float) -> bool:
        """Try to exchange a pod with one on a node that is full."""
        placement = self._legal.placement
        others = np.unique(placement.cls[placement.node == target])
        others = others[others != c]
        if not len(others):
            return False
        some = others if len(others) <= self._parameters.swapped else self._random.sample(others.tolist(), 3)
        for other in some:
            back, _ = self._state.estimate(int(other), target)
            if change + int(back[source]) <= 3 * temperature and self._try(
                [(int(other), target, source), (c, source, target)], temperature
            ):
                return True
        return False

    def _try(self, moves: list[tuple[int, int, int]], temperature: float) -> bool:
        """Make moves if they are legal and good enough by the exact cost."""
        if len(moves) == 1 and not self._legal.legal(*moves[0]):
            return False
        for move in moves:
            self._legal.shift(*move)
        if len(moves) > 1 and not self._evaluator.evaluate(self._legal.placement).legal:
            self._undo(moves)
            return False
        self._state.begin()
        for move in moves:
            self._state.shift(*move)
        now = self._state.cost + self._others()
        change = now - self._cost
        if len(self._changes) < 200 and change:
            self._changes.append(abs(change))
        accepted = change <= 0 or (temperature > 0 and self._random.random() < math.exp(-change / temperature))
        if not (accepted and (self._safe or self._keeps_earlier_tiers())):
            self._state.roll_back()
            self._undo(moves)
            return False
        self._state.keep()
        self._cost = now
        for c, source, target in moves:
            for term in self._marginals:
                term.shift(c, source, -1)
                term.shift(c, target, 1)
        if now < self._best:
            self._best = now
            self._found(self._legal.placement)
        return True

    def _undo(self, moves: list[tuple[int, int, int]]) -> None:
        for c, source, target in reversed(moves):
            self._legal.shift(c, target, source)

    def _keeps_earlier_tiers(self) -> bool:
        evaluation = self._evaluator.evaluate(self._legal.placement)
        return evaluation.legal and evaluation.values <= self._earlier
