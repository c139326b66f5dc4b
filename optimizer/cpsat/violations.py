"""Constraint violations, place by place: at the start, in the incumbent, and in the model."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Rule
from stowplan.optimizer.cpsat.builder import Builder, Linear, negated
from stowplan.optimizer.cpsat.variables import Variables
from stowplan.optimizer.evaluate.evaluation import penalty_weight
from stowplan.optimizer.evaluate.violations import arrivals, violation


class Places:
    """The places of one rule, and the literals of those that are violated at the start.

    Parameters
    ----------
    before
        Violation at the start by place, or ``None`` where there is none.
    total
        Receives the weighted violations of the model.
    """

    def __init__(self, rule: Rule, before: Ints | None, builder: Builder, variables: Variables, total: Linear) -> None:
        self.rule = rule
        self.before = before
        self.builder = builder
        self.variables = variables
        self.violation = total
        if before is not None:
            scope = variables.scope
            self.now = violation(rule, scope.problem, scope.incumbent)
            self.arrived = arrivals(rule, scope.problem, scope.frozen_arrived)
            self.penalty_weight = penalty_weight(rule, len(before))

    def violated(self, p: int) -> bool:
        """Whether a place was violated at the start."""
        return self.before is not None and bool(self.before[p])

    def penalty_weight_of(self, p: int) -> int:
        """Return the penalty weight of a place."""
        return int(self.penalty_weight[p]) if self.before is not None else 0

    def amount(self, p: int) -> int:
        """Return a variable for the violation of a place, which may not grow, and count it."""
        assert self.before is not None
        amount = self.builder.var(0, int(self.before[p]), int(self.now[p]))
        self.violation.add(amount, int(self.penalty_weight[p]))
        return amount

    def repaired(self, p: int, over: Linear, rows: Ints, columns: Ints) -> list[int]:
        """Let a place that is violated at the start stay so; return the literals under which it is repaired.

        Parameters
        ----------
        over
            A lower bound of the violation, exact while the place is violated.
        rows, columns
            Classes that may not arrive while it is, and where.
        """
        if not self.violated(p) or self.arrived[p]:
            return []  # a place at which a frozen pod has arrived must be one that is repaired
        builder, variables = self.builder, self.variables
        still = builder.flag(bool(self.now[p]))
        builder.at_most(over.plus(self.amount(p), -1), 0, [still])
        at = np.ix_(rows, columns)
        for y, start in zip(variables.index[at].ravel().tolist(), variables.start[at].ravel().tolist(), strict=True):
            if y >= 0:
                builder.at_most(Linear.of(y), start, [still])
        return [negated(still)]
