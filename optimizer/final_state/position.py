"""A placement with the exact cost of its final state, changed by moves that stay legal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import FinalCost, Placement, Problem, Unplaced, Violation
from stowplan.optimizer.constructive.marginal import marginals, total_rise
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import cost

Moves = Sequence[tuple[int, int, int]]
"""Class, source and target of pods that move one after the other."""


class Position:
    """A placement that a search changes, in one tier that has a cost of the final state.

    Parameters
    ----------
    evaluator
        Evaluator of the problem with surrogates, for legality and the tiers before.
    problem
        The problem itself.
    placement
        A legal placement.

    Attributes
    ----------
    cost
        Exact value of the tier.
    """

    def __init__(self, evaluator: Evaluator, problem: Problem, tier: int, placement: Placement) -> None:
        final = problem.tiers[tier].final
        if final is None:
            raise ValueError(f"tier {problem.tiers[tier].name} has no cost of the final state")
        self._final: FinalCost = final
        self.problem = problem
        # Neither surrogates nor later tiers are asked for.
        self._evaluator = Evaluator(replace(evaluator.problem, tiers=evaluator.problem.tiers[:tier]))
        self._earlier = self._evaluator.evaluate(placement).values
        counts = [w.term for earlier in problem.tiers[:tier] for w in earlier.terms]
        # What counts violations and unplaced pods stays 0, or as it is, as long as moves are legal.
        violated = any(
            value and any(isinstance(w.term, Violation) for w in earlier.terms)
            for earlier, value in zip(problem.tiers, self._earlier, strict=False)
        )
        self._safe = not violated and all(isinstance(term, Violation | Unplaced) for term in counts)
        self._terms = problem.tiers[tier].terms
        self._legal = State(self._evaluator, placement)
        self._state = final.state(placement)
        local, relational = marginals(problem, problem.tiers[tier], placement)
        self._marginals = [*local, *relational]
        self.cost = self._state.cost + self._others()

    @property
    def placement(self) -> Placement:
        """The placement."""
        return self._legal.placement

    @property
    def left(self) -> int:
        """How many more pods may leave the node they started on."""
        return self._legal.left

    def costs_a_move(self, c: int, source: int, target: int) -> int:
        """Return by how much the number of moved pods rises, 1, 0 or -1."""
        return self._legal.costs_a_move(c, source, target)

    def promise(self, c: int, source: int) -> tuple[Ints, Bools]:
        """``[n]`` about what a pod's move to each node changes, and the nodes that could take it as things are."""
        change, feasible = self._state.estimate(c, source)
        nodes = np.arange(len(self.problem.nodes))
        rise = total_rise(self._marginals, np.array([[c]]), nodes, 1)[0]
        left = total_rise(self._marginals, np.array([[c]]), np.array([source]), -1)[0, 0]
        change = change + rise + left
        change[source] = 0
        return change, feasible

    def attempt(self, moves: Moves, accepts: Callable[[int], bool]) -> tuple[int, bool] | None:
        """Make moves if they are legal, no tier before becomes worse, and the exact change of the cost is accepted.

        Returns
        -------
        change, made
            The exact change, and whether the moves were made; ``None`` if they are not legal.
        """
        if len(moves) == 1 and not self._legal.legal(*moves[0]):
            return None
        for i, (c, source, target) in enumerate(moves):
            if not self._legal.count(c, source):  # the same pod moves twice
                self._undo(moves[:i])
                return None
            self._legal.shift(c, source, target)
        if len(moves) > 1 and not self._evaluator.evaluate(self._legal.placement).legal:
            self._undo(moves)
            return None
        self._state.begin()
        for move in moves:
            self._state.shift(*move)
        change = self._state.cost + self._others() - self.cost
        if not (accepts(change) and (self._safe or self._keeps_earlier_tiers())):
            self._state.roll_back()
            self._undo(moves)
            return change, False
        self._state.keep()
        self.cost += change
        for c, source, target in moves:
            for term in self._marginals:
                term.shift(c, source, -1)
                term.shift(c, target, 1)
        return change, True

    def _undo(self, moves: Moves) -> None:
        for c, source, target in reversed(moves):
            self._legal.shift(c, target, source)

    def _others(self) -> int:
        """Return what the tier's terms cost."""
        placement = self._legal.placement
        return sum(w.weight * cost(w.term, self.problem, placement, 0) for w in self._terms)

    def _keeps_earlier_tiers(self) -> bool:
        evaluation = self._evaluator.evaluate(self._legal.placement)
        return evaluation.legal and evaluation.values <= self._earlier
