"""The pricing problem: the most valuable pattern of a group of nodes, with a proven bound, and all good patterns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import highspy
import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Floats, Ints
from stowplan.optimizer.column_generation.device_shares import DeviceArguments, fits_devices
from stowplan.optimizer.column_generation.parameters import ColumnGenerationParameters
from stowplan.optimizer.column_generation.pricing.greedy import fill_each
from stowplan.optimizer.column_generation.pricing.kernels import search
from stowplan.optimizer.column_generation.pricing.meet_in_the_middle import MeetInTheMiddle, key_of
from stowplan.optimizer.column_generation.pricing.suffixes import suffix_length
from stowplan.optimizer.column_generation.structure import Structure
from stowplan.optimizer.highs import linear_program

UNLIMITED = 1 << 62
"""More than any capacity."""


@dataclass(frozen=True, slots=True, eq=False)
class PricingResult:
    """The result of pricing.

    Parameters
    ----------
    bound
        Proven upper bound of the value of any pattern of the group.
    patterns
        ``[p, k]`` patterns found.
    complete
        Whether the search was complete.
    work
        Candidates examined.
    """

    bound: int
    patterns: NDArray[np.int16]
    complete: bool
    work: int


class Pricer:
    """Solves the pricing problem of one group of nodes."""

    def __init__(self, structure: Structure, group: int, parameters: ColumnGenerationParameters | None = None) -> None:
        self.parameters = parameters or ColumnGenerationParameters()
        self._all = structure.kinds
        self.kinds = np.flatnonzero(structure.upper[group] > 0)
        upper: Ints = structure.upper[group, self.kinds]
        demand = structure.demand[self.kinds]
        binding = np.maximum(0, demand).astype(np.float64).T @ upper > structure.residual[group] * (1 - 1e-9)
        self._binding = binding
        self._demand = np.ascontiguousarray(demand[:, binding])
        self._residual = np.ascontiguousarray(structure.residual[group, binding])
        self._upper: Ints = upper
        self._on_devices = structure.shares[group]
        self._relaxed = _Knapsack(self._demand, self._residual, upper) if len(self.kinds) and binding.any() else None

    def best(self, value: Ints, least: int, work: int, upper: Ints | None = None) -> PricingResult:
        """Find the most valuable pattern.

        Parameters
        ----------
        value
            ``[k]`` dual of each kind; not negative.
        least
            Only patterns above this value are wanted, and the bound is not below it.
        upper
            ``[k]`` a tighter limit of pods of each kind.
        """
        ordered = self._ordered(value, upper, positive=True)
        if ordered is None:
            return PricingResult(least, np.zeros((0, self._all), dtype=np.int16), True, 1)
        order, weight, surrogate, makers = ordered
        found = np.zeros((self.parameters.kept_patterns, len(order)), dtype=np.int16)
        number, _, bound, looked, complete = search(
            value[self.kinds][order],
            weight,
            surrogate,
            np.ascontiguousarray(self._demand[order]),
            self._residual,
            self._limit(upper)[order],
            *self._shares(order),
            makers,
            least,
            False,
            np.full(len(self._residual), UNLIMITED),
            work,
            found,
        )
        return PricingResult(bound, self._patterns(found[: min(number, len(found))], order), complete, looked)

    def above(self, value: Ints, least: int, work: int, cap: int, waste: Ints | None = None) -> PricingResult:
        """Find all maximal patterns of value at least ``least``.

        Not complete if there are more than ``cap`` or it takes more ``work``.

        Parameters
        ----------
        waste
            ``[r]`` patterns that leave more than so much of a row are left out, and a pattern may lack pods that free
            capacity if it would leave more with them.
        """
        meet_in_the_middle = None if waste is None else self.meet_in_the_middle(waste)
        if meet_in_the_middle is not None:
            nearly_full = self.nearly_full(meet_in_the_middle, None, None, work, cap)
            return replace(nearly_full, patterns=nearly_full.patterns[nearly_full.patterns @ value >= least])
        ordered = self._ordered(value, None, positive=False)
        if ordered is None:
            return PricingResult(0, np.zeros((1 if least <= 0 else 0, self._all), dtype=np.int16), True, 1)
        order, weight, surrogate, makers = ordered
        found = np.zeros((cap, len(order)), dtype=np.int16)
        number, _, bound, looked, complete = search(
            value[self.kinds][order],
            weight,
            surrogate,
            np.ascontiguousarray(self._demand[order]),
            self._residual,
            self._upper[order],
            *self._shares(order),
            makers,
            least,
            True,
            np.full(len(self._residual), UNLIMITED) if waste is None else waste[self._binding],
            work,
            found,
        )
        return PricingResult(bound, self._patterns(found[:number], order), complete, looked)

    def meet_in_the_middle(self, waste: Ints, longest: int | None = None) -> MeetInTheMiddle | None:
        """Return the enumeration of patterns that leave at most ``waste``; ``None`` if that is not little in any row.

        Parameters
        ----------
        longest
            Multisets listed at most.
        """
        longest = self.parameters.listed_multisets if longest is None else longest
        key = key_of(self._demand, self._residual, waste[self._binding], self.parameters.rare)
        if key is None or not suffix_length(len(self.kinds), longest):
            return None
        return MeetInTheMiddle(key, self._demand, self._residual, waste[self._binding], longest)

    def nearly_full(
        self, meet_in_the_middle: MeetInTheMiddle, upper: Ints | None, core_item: int | None, work: int, cap: int
    ) -> PricingResult:
        """Find all patterns that leave little room, whatever their value.

        Parameters
        ----------
        upper
            ``[k]`` a tighter limit of pods of each kind.
        core_item
            A kind of which every pattern holds a pod.
        """
        held = (self.kinds == core_item).astype(np.int64)
        patterns, looked, complete = meet_in_the_middle.find(self._limit(upper), held, work, cap)
        shares = self._shares(np.arange(len(self.kinds)))
        fit = [fits_devices(x, *shares) for x in patterns.astype(np.int64)]
        return PricingResult(UNLIMITED, self._patterns(patterns[fit], np.arange(len(self.kinds))), complete, looked)

    def greedy(self, value: Ints, upper: Ints | None = None) -> tuple[NDArray[np.int16], Ints]:
        """Complete one pod of each kind greedily; return ``[p, k]`` patterns and ``[p]`` their values."""
        ordered = self._ordered(value, upper, positive=True)
        if ordered is None:
            return np.zeros((0, self._all), dtype=np.int16), np.zeros(0, dtype=np.int64)
        order = ordered[0]
        found = np.zeros((len(self.kinds), len(self.kinds)), dtype=np.int16)
        worth = np.zeros(len(self.kinds), dtype=np.int64)
        shares = self._shares(np.arange(len(self.kinds)))
        fill_each(value[self.kinds], order, self._demand, self._residual, self._limit(upper), *shares, found, worth)
        everyone = np.zeros((len(found), self._all), dtype=np.int16)
        everyone[:, self.kinds] = found
        return everyone, worth

    def _shares(self, order: Ints) -> DeviceArguments:
        return self._on_devices.of(self.kinds[order])

    def _limit(self, upper: Ints | None) -> Ints:
        if upper is None:
            return self._upper
        limit: Ints = np.minimum(self._upper, upper[self.kinds])
        return limit

    def _ordered(self, value: Ints, upper: Ints | None, *, positive: bool) -> tuple[Ints, Floats, float, int] | None:
        """Return kinds in the order of `search`, their surrogate weights, the surrogate capacity, and ``makers``."""
        values = value[self.kinds]
        limit = self._limit(upper)
        makes = np.any(self._demand < 0, axis=1)
        chosen = np.flatnonzero((limit > 0) & ((values > 0) | makes | (not positive)))
        if not len(chosen):
            return None
        if self._relaxed is None:
            weight, surrogate = np.zeros(len(self.kinds)), 0.0
        else:
            multipliers = self._relaxed.multipliers(values, limit)
            weight, surrogate = self._demand @ multipliers, float(self._residual @ multipliers)
        density = values[chosen] / np.maximum(weight[chosen], 1e-12)
        density[weight[chosen] <= 0] = np.inf
        order = chosen[np.lexsort([-weight[chosen], -density, ~makes[chosen]])]
        return order, weight[order], surrogate, int(makes[chosen].sum())

    def _patterns(self, found: NDArray[np.int16], order: Ints) -> NDArray[np.int16]:
        everyone = np.zeros((len(found), self._all), dtype=np.int16)
        everyone[:, self.kinds[order]] = found
        return everyone


class _Knapsack:
    """The linear relaxation of a multidimensional knapsack; its duals weigh the rows of the surrogate."""

    def __init__(self, demand: Ints, residual: Ints, upper: Ints) -> None:
        self._scale = 1.0 / np.maximum(residual, 1)
        self._upper = upper
        self._lp = lp = linear_program()
        rows = len(residual)
        empty = np.zeros(0, dtype=np.int32)
        lp.addRows(rows, np.full(rows, -highspy.kHighsInf), residual * self._scale, 0, empty, empty, np.zeros(0))
        kinds, columns = np.nonzero(demand)
        begins = np.searchsorted(kinds, np.arange(len(demand))).astype(np.int32)
        amounts = (demand * self._scale)[kinds, columns]
        n = len(demand)
        lp.addCols(n, np.zeros(n), np.zeros(n), upper * 1.0, len(columns), begins, columns.astype(np.int32), amounts)
        self._columns = np.arange(n, dtype=np.int32)

    def multipliers(self, value: Ints, upper: Ints) -> Floats:
        """``[r]`` surrogate multipliers of the rows; any are valid, an optimal dual gives a good bound."""
        lp = self._lp
        highest = max(1.0, float(value.max(initial=0)))
        lp.changeColsCost(len(value), self._columns, -value / highest)
        if not np.array_equal(upper, self._upper):
            self._upper = upper
            lp.changeColsBounds(len(upper), self._columns, np.zeros(len(upper)), upper * 1.0)
        lp.run()
        duals = -np.asarray(lp.getSolution().row_dual)
        if len(duals) != len(self._scale) or not np.isfinite(duals).all():
            duals = np.ones(len(self._scale))
        weights: Floats = np.maximum(0.0, duals) * self._scale * highest
        return weights
