"""Builds a CP-SAT proto in bulk, with a hint for every variable.

Expression objects cost ten times the time and twice the memory of the proto they become, and CP-SAT calls a hint
that leaves auxiliary variables out incomplete. So constraints are written straight into the proto, and no variable
is made without the value it has in the incumbent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from models.errors import InternalError

INT64 = 2**62


@dataclass(slots=True)
class Linear:
    """``Σ coefficient · variable + constant``."""

    vars: list[int] = field(default_factory=list)
    coeffs: list[int] = field(default_factory=list)
    constant: int = 0

    def add(self, var: int, coeff: int = 1) -> None:
        """Add a term."""
        if coeff:
            self.vars.append(var)
            self.coeffs.append(coeff)

    def extend(self, other: Linear, factor: int = 1) -> None:
        """Add a multiple of another expression."""
        if factor:
            self.vars += other.vars
            self.coeffs += [coeff * factor for coeff in other.coeffs] if factor != 1 else other.coeffs
            self.constant += other.constant * factor

    def plus(self, var: int, coeff: int) -> Linear:
        """Return this expression with one more term."""
        return Linear([*self.vars, var], [*self.coeffs, coeff], self.constant)

    def plus_all(self, other: Linear, factor: int) -> Linear:
        """Return this expression plus a multiple of another."""
        result = Linear(list(self.vars), list(self.coeffs), self.constant)
        result.extend(other, factor)
        return result

    @staticmethod
    def of(var: int, coeff: int = 1) -> Linear:
        """Return a single term."""
        return Linear([var], [coeff])


def negated(literal: int) -> int:
    """Return the opposite literal."""
    return -literal - 1


class Builder:
    """A CP-SAT model under construction.

    Attributes
    ----------
    hints
        Value of each variable in the incumbent.
    """

    def __init__(self) -> None:
        self.model = cp_model.CpModel()
        self._proto = self.model.proto
        self.lower: list[int] = []
        self.upper: list[int] = []
        self.hints: list[int] = []

    # -- variables --------------------------------------------------------------------------------------------

    def var(self, lower: int, upper: int, hint: int) -> int:
        """Return a new variable. A hint outside the bounds means that the incumbent breaks a rule: that is a bug."""
        if not lower <= hint <= upper:
            raise InternalError(f"hint {hint} is outside {lower}..{upper}")
        self._proto.variables.add().domain.extend([lower, upper])
        self.lower.append(lower)
        self.upper.append(upper)
        self.hints.append(hint)
        return len(self.hints) - 1

    def flag(self, hint: bool) -> int:
        """Return a new Boolean variable."""
        return self.var(0, 1, int(hint))

    def value(self, expression: Linear) -> int:
        """Return the value of an expression in the incumbent."""
        return expression.constant + sum(
            self.hints[var] * coeff for var, coeff in zip(expression.vars, expression.coeffs, strict=True)
        )

    def highest(self, expression: Linear) -> int:
        """Return an upper bound of an expression."""
        return expression.constant + sum(
            (self.upper[var] if coeff > 0 else self.lower[var]) * coeff
            for var, coeff in zip(expression.vars, expression.coeffs, strict=True)
        )

    def lowest(self, expression: Linear) -> int:
        """Return a lower bound of an expression."""
        return expression.constant + sum(
            (self.lower[var] if coeff > 0 else self.upper[var]) * coeff
            for var, coeff in zip(expression.vars, expression.coeffs, strict=True)
        )

    # -- constraints ------------------------------------------------------------------------------------------

    def at_most(self, expression: Linear, bound: int, when: Sequence[int] = ()) -> None:
        """Post ``expression ≤ bound``, enforced when all literals hold."""
        if self.highest(expression) > bound:
            self._linear(expression, -INT64, bound, when)

    def at_least(self, expression: Linear, bound: int, when: Sequence[int] = ()) -> None:
        """Post ``expression ≥ bound``, enforced when all literals hold."""
        if self.lowest(expression) < bound:
            self._linear(expression, bound, INT64, when)

    def equal(self, expression: Linear, value: int) -> None:
        """Post ``expression = value``."""
        self._linear(expression, value, value, ())

    def any_of(self, literals: Iterable[int]) -> None:
        """Post that one of the literals holds."""
        self._proto.constraints.add().bool_or.literals.extend(list(literals))

    def product(self, a: int, b: int) -> int:
        """Return a variable equal to the product of two others, which are not negative."""
        target = self.var(0, self.upper[a] * self.upper[b], self.hints[a] * self.hints[b])
        argument = self._proto.constraints.add().int_prod
        for var, expression in ((target, argument.target), (a, argument.exprs.add()), (b, argument.exprs.add())):
            expression.vars.append(var)
            expression.coeffs.append(1)
        return target

    def total(self, expression: Linear) -> int:
        """Return a variable equal to an expression."""
        var = self.var(self.lowest(expression), self.highest(expression), self.value(expression))
        self.equal(expression.plus(var, -1), 0)
        return var

    def _linear(self, expression: Linear, lower: int, upper: int, when: Sequence[int]) -> None:
        constraint = self._proto.constraints.add()
        linear = constraint.linear
        merged = _merged(expression)
        linear.vars.extend(merged.vars)
        linear.coeffs.extend(merged.coeffs)
        low = lower - expression.constant if lower > -INT64 else -INT64
        high = upper - expression.constant if upper < INT64 else INT64
        linear.domain.extend([low, high])
        if when:
            constraint.enforcement_literal.extend(list(when))

    # -- objective --------------------------------------------------------------------------------------------

    def minimize(self, expression: Linear) -> None:
        """Set the objective, and hand all hints to the solver."""
        objective = self._proto.objective
        merged = _merged(expression)
        objective.vars.extend(merged.vars)
        objective.coeffs.extend(merged.coeffs)
        objective.offset = float(expression.constant)
        self._proto.solution_hint.vars.extend(list(range(len(self.hints))))
        self._proto.solution_hint.values.extend(self.hints)


def _merged(expression: Linear) -> Linear:
    """Return an expression with every variable once, as the proto wants it."""
    if len(set(expression.vars)) == len(expression.vars):
        return expression
    total: dict[int, int] = {}
    for var, coeff in zip(expression.vars, expression.coeffs, strict=True):
        total[var] = total.get(var, 0) + coeff
    kept = {var: coeff for var, coeff in total.items() if coeff}
    return Linear(list(kept), list(kept.values()), expression.constant)
