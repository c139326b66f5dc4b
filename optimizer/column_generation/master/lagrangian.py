"""The Lagrangian bound of the master problem, in integers.

For any duals ``π ≥ 0`` of a pod of each kind and ``ρ ≥ 0`` of a unit of each earlier tier, with ``w`` the cost of a
unplaced pod and ``f`` that of opening a node in the tier (``w_s``, ``f_s`` in an earlier one),

    Σ_k π_k·size_k − Σ_s ρ_s·v_s + Σ_k optional_k·min(0, w_k + Σ_s ρ_s·w_sk − π_k)
                   + Σ_g nodes_g·min(0, f_g + Σ_s ρ_s·f_sg − max_p π·p)

is at most the value of the tier, where ``p`` runs over the patterns of group ``g``: the Lagrangian bound of Dantzig
and Wolfe. Duals are rounded to integer multiples of ``1/scale`` first, so nothing depends on floating point.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.optimizer.column_generation.master.restricted import Duals
from stowplan.optimizer.column_generation.structure import Structure

BITS = 30
"""Duals are rounded to about so many bits."""

SHARE_BITS = 24
"""Shares of duals are rounded down to so many bits."""


@dataclass(frozen=True, slots=True, eq=False)
class RoundedDuals:
    """Duals as integers on the fixed-point scale ``scale``.

    Parameters
    ----------
    cover
        ``[k]`` dual of a pod.
    missing, missing_dual
        ``[k]`` cost of an unplaced pod in the tier; and its cost in earlier tiers at their duals, less its own dual.
    opening, opening_dual
        ``[g]`` cost of opening a node in the tier; and its cost in earlier tiers at their duals.
    constant, fixed
        The parts of the bound that depend on neither duals nor patterns, and on duals only.
    """

    scale: int
    cover: Ints
    missing: list[int]
    missing_dual: list[int]
    opening: list[int]
    opening_dual: list[int]
    constant: int
    fixed: int

    def total(self, structure: Structure, best: list[int], share: Fraction) -> Fraction:
        """Return the bound at a share of the duals, if no pattern of group ``g`` has a value above ``best[g]``."""
        a, b = share.numerator, share.denominator
        value = b * self.constant + a * self.fixed
        for optional, cost, dual in zip(structure.optional.tolist(), self.missing, self.missing_dual, strict=True):
            value += optional * min(0, b * cost + a * dual)
        for nodes, cost, dual, worth in zip(
            structure.nodes.tolist(), self.opening, self.opening_dual, best, strict=True
        ):
            value += nodes * min(0, b * cost + a * (dual - worth))
        return Fraction(value, b * self.scale)

    def shares(self, best: list[int]) -> list[Fraction]:
        """Return the shares of the duals at which the bound may be highest, Farley's (1990) among them.

        The bound is concave and piecewise linear in the share; its breakpoints are where a term begins to count.
        """
        corners = [(cost, -dual) for cost, dual in zip(self.missing, self.missing_dual, strict=True)]
        corners += [
            (cost, worth - dual) for cost, dual, worth in zip(self.opening, self.opening_dual, best, strict=True)
        ]
        found = {Fraction(1)}
        for cost, slope in corners:
            if 0 < cost < slope:
                found.add(Fraction((cost << SHARE_BITS) // slope, 1 << SHARE_BITS))
        return sorted(found)


def round_duals(structure: Structure, tier: int, limits: Ints, duals: Duals) -> RoundedDuals:
    """Round duals to integers.

    Parameters
    ----------
    limits
        ``[s]`` what the earlier tiers reached, less their constants.
    """
    highest = max(float(duals.cover.max(initial=0.0)), 1e-9)
    exponent = max(0, BITS - int(np.ceil(np.log2(highest))))
    scale = 1 << min(exponent, 40)
    cover = np.rint(np.maximum(0.0, duals.cover) * scale).astype(np.int64)
    paid = [max(0, round(float(p) * scale)) for p in duals.tier]
    # Python's own integers from here on: costs times duals must not overflow.
    missing_dual = [
        sum(p * int(structure.missing[s, k]) for s, p in enumerate(paid)) - int(cover[k])
        for k in range(structure.kinds)
    ]
    opening_dual = [sum(p * int(structure.opening[s, g]) for s, p in enumerate(paid)) for g in range(structure.groups)]
    fixed = sum(int(dual) * int(size) for dual, size in zip(cover, structure.size, strict=True))
    fixed -= sum(p * int(limit) for p, limit in zip(paid, limits, strict=True))
    return RoundedDuals(
        scale,
        cover,
        [scale * cost for cost in structure.missing[tier].tolist()],
        missing_dual,
        [scale * cost for cost in structure.opening[tier].tolist()],
        opening_dual,
        scale * int(structure.constant[tier]),
        fixed,
    )
