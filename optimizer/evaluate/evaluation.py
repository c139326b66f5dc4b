"""Evaluation of placements: values of all tiers, constraint violations, legality."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import PENALTY_WEIGHT, Capacity, NodeCurve, Origin, Placement, Problem, Rule
from stowplan.optimizer.evaluate.cost import cost
from stowplan.optimizer.evaluate.screening import ViolationScreen
from stowplan.optimizer.evaluate.surrogate import Curve, convolve
from stowplan.optimizer.evaluate.violations import arrivals, place_names, places, violation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConstraintViolation:
    """A place where a rule is violated.

    Parameters
    ----------
    amount, before
        Violation now and at the start: of a capacity in the resource's own units, else in pods or what else is counted.
    arrivals
        Pods bound by the rule that arrived at the place.
    """

    origin: Origin
    place: str
    amount: int
    before: int
    arrivals: int

    @property
    def legal(self) -> bool:
        """Whether the violation was there before, is not worse, and no pod arrived at the place."""
        return self.amount <= self.before and not self.arrivals


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Values, violations and legality of a placement.

    Parameters
    ----------
    values
        Value of each tier, in its whole units.
    violations
        Places where rules are violated.
    moves
        Pods that left the node they started on.
    unplaced
        Pods without a node.
    legal
        Whether no rule is violated that was not at the start, or more than at the start, and no class has more
        unplaced pods than it may have.
    """

    values: tuple[int, ...]
    violations: Sequence[ConstraintViolation]
    moves: int
    unplaced: int
    legal: bool


class Evaluator:
    """Evaluates placements of one problem; what depends on the start is computed once."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._known: dict[Hashable, Any] = {}

    @cached_property
    def start_violations(self) -> list[Ints]:
        """Violation of every rule at the start, by place; read-only, since rules share the arrays of zeros."""
        problem = self.problem
        sizes = [places(rule, problem) for rule in problem.rules]
        nothing = {size: np.zeros(size, dtype=np.int64) for size in set(sizes)}
        found = [nothing[size] for size in sizes]
        for i in self._screen.of(problem.start).tolist():
            found[i] = violation(problem.rules[i], problem, problem.start)
        return found

    def once(self, what: Hashable, compute: Callable[[], T]) -> T:
        """Return what depends on the problem alone, computed when it is asked for the first time."""
        if what not in self._known:
            self._known[what] = compute()
        known: T = self._known[what]
        return known

    def curves(self, tier: int) -> list[Curve]:
        """Return each `NodeCurve` of a tier, in their order, with its surrogate relaxation."""
        return self.once(
            ("curves", tier),
            lambda: [
                Curve(weighted.weight, weighted.term, convolve(self.problem, weighted.term))
                for weighted in self.problem.tiers[tier].terms
                if isinstance(weighted.term, NodeCurve)
            ],
        )

    @cached_property
    def _screen(self) -> ViolationScreen:
        return ViolationScreen(self.problem)

    def evaluate(self, placement: Placement) -> Evaluation:
        """Evaluate a placement.

        Raises
        ------
        ValueError
            If the placement names classes, nodes or numbers of pods that the problem does not have.
        """
        problem = self.problem
        missing = self._missing(placement)
        arrived: Placement | None = None
        violations: list[ConstraintViolation] = []
        weighted = 0
        for i in self._screen.of(placement).tolist():
            rule, before = problem.rules[i], self.start_violations[i]
            now = violation(rule, problem, placement)
            weighted += int((now * penalty_weight(rule, len(now))).sum())
            if now.any():
                arrived = arrived or placement.beyond(problem.start, len(problem.nodes))
                new = arrivals(rule, problem, arrived)
                names = place_names(rule, problem)
                unit = rule.unit if isinstance(rule, Capacity) else 1
                violations += [
                    ConstraintViolation(rule.origin, names[p], int(now[p]) * unit, int(before[p]) * unit, int(new[p]))
                    for p in np.flatnonzero(now)
                ]
        values = tuple(
            sum(w.weight * cost(w.term, problem, placement, weighted) for w in tier.terms)
            + (tier.final.cost(placement) if tier.final is not None else 0)
            for tier in problem.tiers
        )
        left = problem.start.beyond(placement, len(problem.nodes))
        legal = all(violation.legal for violation in violations) and bool(np.all(missing <= problem.optional))
        return Evaluation(values, violations, int(left.count.sum()), int(missing.sum()), legal)

    def violated(self, placement: Placement) -> list[int]:
        """Return the indices of the rules that a placement violates, as the start may have."""
        return [
            i
            for i in self._screen.of(placement).tolist()
            if violation(self.problem.rules[i], self.problem, placement).any()
        ]

    def broken(self, placement: Placement) -> list[int]:
        """Return the indices of the rules that a placement breaks: it violates them more than the start, or anew."""
        new = placement.beyond(self.problem.start, len(self.problem.nodes))
        return [i for i in self._screen.of(placement).tolist() if self.breaks(placement, i, new)]

    def breaks(self, placement: Placement, i: int, new: Placement | None = None) -> bool:
        """Whether a placement violates a rule more than the start does, or by a pod that was elsewhere then.

        Parameters
        ----------
        new
            The pods that were elsewhere, if they are known.
        """
        problem, rule = self.problem, self.problem.rules[i]
        now = violation(rule, problem, placement)
        if not now.any():
            return False
        if (now > self.start_violations[i]).any():
            return True
        new = placement.beyond(problem.start, len(problem.nodes)) if new is None else new
        return bool((arrivals(rule, problem, new)[now > 0] > 0).any())

    def _missing(self, placement: Placement) -> Ints:
        classes, nodes = self.problem.shape
        for array, limit, what in ((placement.cls, classes, "class"), (placement.node, nodes, "node")):
            if len(array) and not (array.min() >= 0 and array.max() < limit):
                raise ValueError(f"the placement names a {what} that the problem does not have")
        missing: Ints = self.problem.size - placement.placed(classes)
        if (missing < 0).any() or (placement.count <= 0).any():
            raise ValueError("the placement places more pods of a class than there are, or fewer than none")
        return missing


def penalty_weight(rule: Rule, places: int) -> Ints:
    """``[places]`` cost of one unit of violation in the feasibility objective."""
    if isinstance(rule, Capacity):
        return rule.penalty_weight
    return np.full(places, PENALTY_WEIGHT, dtype=np.int64)
