"""Builds a model as plain numbers, with a hint for every variable.

Expression objects cost ten times the time and twice the memory of the proto they become, and CP-SAT calls a hint
without auxiliary variables incomplete. So constraints are flat lists, and no variable is created without its value in
the incumbent. The proto is written where the model is solved, which may be another process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.errors import InternalError

INT64 = 2**62

TRUE, FALSE = -(1 << 40), 1 << 40
"""Literals whose value is known, so that no variable is created for them."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model as plain arrays, which travel between processes and machines.

    A literal is the number of a Boolean variable, or ``-1 - number`` for its opposite.

    Parameters
    ----------
    lower, upper, hints
        ``[v]`` bounds of the variables, and a solution.
    ends, vars, coeffs
        Linear constraint ``i`` has the terms from ``ends[i - 1]`` to ``ends[i]``.
    low, high
        ``[i]`` what each linear constraint lies between.
    when_ends, when
        Literals that enforce each linear constraint; it holds plainly if there are none.
    clause_ends, clauses
        Sets of literals of which one holds.
    products
        ``[k, 3]`` variables of which the first is the product of the others.
    objective_vars, objective_coeffs, offset
        What is minimized.
    """

    lower: Ints
    upper: Ints
    hints: Ints
    ends: Ints
    vars: Ints
    coeffs: Ints
    low: Ints
    high: Ints
    when_ends: Ints
    when: Ints
    clause_ends: Ints
    clauses: Ints
    products: Ints
    objective_vars: Ints
    objective_coeffs: Ints
    offset: int

    @property
    def least(self) -> int:
        """Lower bound of the objective from the bounds of its variables."""
        variables = self.objective_vars
        best = np.where(self.objective_coeffs > 0, self.lower[variables], self.upper[variables])
        return self._objective(best)

    def value(self, values: Ints) -> int:
        """Return the objective of a solution ``[v]``."""
        return self._objective(values[self.objective_vars])

    def _objective(self, values: Ints) -> int:
        total = self.offset
        for coeff, value in zip(self.objective_coeffs.tolist(), values.tolist(), strict=True):
            total += coeff * value
        return total


def negated(literal: int) -> int:
    """Return the opposite literal."""
    if literal in (TRUE, FALSE):
        return -literal
    return -literal - 1


class Builder:
    """A model under construction.

    Attributes
    ----------
    lower, upper, hints
        Bounds of each variable, and its value in the incumbent.
    """

    def __init__(self) -> None:
        self.lower: list[int] = []
        self.upper: list[int] = []
        self.hints: list[int] = []
        self._ends: list[int] = []
        self._vars: list[int] = []
        self._coeffs: list[int] = []
        self._low: list[int] = []
        self._high: list[int] = []
        self._when_ends: list[int] = []
        self._when: list[int] = []
        self._clause_ends: list[int] = []
        self._clauses: list[int] = []
        self._products: list[tuple[int, int, int]] = []

    # -- variables --------------------------------------------------------------------------------------------

    def var(self, lower: int, upper: int, hint: int) -> int:
        """Return a new variable. A hint outside the bounds means that the incumbent is infeasible: that is a bug."""
        if not lower <= hint <= upper:
            raise InternalError(f"hint {hint} is outside {lower}..{upper}")
        self.lower.append(lower)
        self.upper.append(upper)
        self.hints.append(hint)
        return len(self.hints) - 1

    def counts(self, upper: Ints, hints: Ints) -> Ints:
        """Return new variables between 0 and ``upper``, one for each entry."""
        if (hints > upper).any() or (hints < 0).any():
            raise InternalError("a hint is outside the bounds of its count")
        first = len(self.hints)
        self.lower += [0] * len(upper)
        self.upper += upper.tolist()
        self.hints += hints.tolist()
        return np.arange(first, len(self.hints), dtype=np.int64)

    def flag(self, hint: bool) -> int:
        """Return a new Boolean variable."""
        return self.var(0, 1, int(hint))

    def value(self, expression: Linear) -> int:
        """Return the value of an expression in the incumbent."""
        hints = self.hints
        return expression.constant + sum(
            hints[var] * coeff for var, coeff in zip(expression.vars, expression.coeffs, strict=True)
        )

    def highest(self, expression: Linear) -> int:
        """Return an upper bound of an expression."""
        upper, lower = self.upper, self.lower
        return expression.constant + sum(
            (upper[var] if coeff > 0 else lower[var]) * coeff
            for var, coeff in zip(expression.vars, expression.coeffs, strict=True)
        )

    def lowest(self, expression: Linear) -> int:
        """Return a lower bound of an expression."""
        upper, lower = self.upper, self.lower
        return expression.constant + sum(
            (lower[var] if coeff > 0 else upper[var]) * coeff
            for var, coeff in zip(expression.vars, expression.coeffs, strict=True)
        )

    # -- literals ---------------------------------------------------------------------------------------------

    def present(self, count: Linear) -> int:
        """Return a literal that holds whenever a count is positive."""
        if self.lowest(count) > 0:
            return TRUE
        highest = self.highest(count)
        if highest <= 0:
            return FALSE
        literal = self.flag(self.value(count) > 0)
        self.at_most(count.plus(literal, -highest), 0)
        return literal

    def reaches(self, count: Linear, number: int) -> int:
        """Return a literal that holds only if a count is at least a number."""
        if self.lowest(count) >= number:
            return TRUE
        if self.highest(count) < number:
            return FALSE
        literal = self.flag(self.value(count) >= number)
        self.at_least(count, number, [literal])
        return literal

    def within(self, count: Linear, number: int) -> int:
        """Return a literal that holds only if a count is at most a number."""
        if self.highest(count) <= number:
            return TRUE
        if self.lowest(count) > number:
            return FALSE
        literal = self.flag(self.value(count) <= number)
        self.at_most(count, number, [literal])
        return literal

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
        kept = [literal for literal in literals if literal != FALSE]
        if TRUE not in kept:
            self._clauses += kept
            self._clause_ends.append(len(self._clauses))

    def product(self, a: int, b: int) -> int:
        """Return a variable equal to the product of two others, which are not negative."""
        target = self.var(0, self.upper[a] * self.upper[b], self.hints[a] * self.hints[b])
        self._products.append((target, a, b))
        return target

    def total(self, expression: Linear, most: int | None = None) -> int:
        """Return a variable equal to an expression, which is known not to exceed ``most``."""
        highest = self.highest(expression)
        if most is not None:
            highest = min(highest, most)
        var = self.var(self.lowest(expression), highest, self.value(expression))
        self.equal(expression.plus(var, -1), 0)
        return var

    def _linear(self, expression: Linear, lower: int, upper: int, when: Sequence[int]) -> None:
        if FALSE in when:
            return
        merged = _merged(expression)
        self._vars += merged.vars
        self._coeffs += merged.coeffs
        self._ends.append(len(self._vars))
        self._low.append(lower - expression.constant if lower > -INT64 else -INT64)
        self._high.append(upper - expression.constant if upper < INT64 else INT64)
        self._when += [literal for literal in when if literal != TRUE]
        self._when_ends.append(len(self._when))

    # -- the whole --------------------------------------------------------------------------------------------

    def minimize(self, expression: Linear) -> Model:
        """Return the model with an objective.

        Raises
        ------
        InternalError
            If a number does not fit into 64 bits.
        """
        merged = _merged(expression)
        try:
            return Model(
                lower=_ints(self.lower),
                upper=_ints(self.upper),
                hints=_ints(self.hints),
                ends=_ints(self._ends),
                vars=_ints(self._vars),
                coeffs=_ints(self._coeffs),
                low=_ints(self._low),
                high=_ints(self._high),
                when_ends=_ints(self._when_ends),
                when=_ints(self._when),
                clause_ends=_ints(self._clause_ends),
                clauses=_ints(self._clauses),
                products=_ints(self._products).reshape(-1, 3),
                objective_vars=_ints(merged.vars),
                objective_coeffs=_ints(merged.coeffs),
                offset=expression.constant,
            )
        except OverflowError as error:
            raise InternalError("a number of the model does not fit into 64 bits") from error


def _ints(values: Sequence[int] | Sequence[tuple[int, int, int]]) -> Ints:
    return np.array(values, dtype=np.int64)


def _merged(expression: Linear) -> Linear:
    """Return an expression with every variable once, as CP-SAT wants it."""
    if len(set(expression.vars)) == len(expression.vars):
        return expression
    total: dict[int, int] = {}
    for var, coeff in zip(expression.vars, expression.coeffs, strict=True):
        total[var] = total.get(var, 0) + coeff
    kept = {var: coeff for var, coeff in total.items() if coeff}
    return Linear(list(kept), list(kept.values()), expression.constant)
