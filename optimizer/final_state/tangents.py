"""Convex curves of loads, each by one tangent: what the Lagrangian bound of a final state reads of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import NodeCurve, Placement


@dataclass(slots=True)
class Tangents:
    """A convex curve of loads, by its tangents.

    Parameters
    ----------
    slope
        ``[n]`` slope of the tangent of each node.
    flattest, steepest
        ``[n]`` the slopes that each curve has.
    """

    weight: float
    term: NodeCurve
    slope: Floats
    flattest: Floats
    steepest: Floats

    @classmethod
    def of(cls, weight: int, term: NodeCurve, placement: Placement) -> Self:
        """Return the tangents at the loads of a placement."""
        load = placement.per_node(len(term.held), term.demand) + term.held
        slope = np.zeros(len(load))
        here = term.curve >= 0
        piece = np.maximum(0, (load[here][:, None] >= term.curves.start[term.curve[here]]).sum(axis=1) - 1)
        slopes = weight * term.curves.slope[term.curve[here]]
        slope[here] = np.take_along_axis(slopes, piece[:, None], axis=1)[:, 0]
        flattest, steepest = np.zeros(len(load)), np.zeros(len(load))
        flattest[here], steepest[here] = slopes.min(axis=1), slopes.max(axis=1)
        return cls(float(weight), term, slope, flattest, steepest)

    def turn(self, slope: Floats | float) -> None:
        """Take other slopes, as far as the curves have them."""
        self.slope = np.clip(slope, self.flattest, self.steepest)

    def values(self) -> tuple[Floats, Floats]:
        """Return ``[n]`` where each tangent touches, and the least of curve minus slope times load."""
        curves = self.term.curves
        point, least = np.zeros(len(self.slope)), np.zeros(len(self.slope))
        for k in np.unique(self.term.curve[self.term.curve >= 0]).tolist():
            here = self.term.curve == k
            kept = curves.start[k] < (1 << 49)
            starts, slopes, values = (a[k][kept].astype(np.float64) for a in (curves.start, curves.slope, curves.value))
            rising = np.searchsorted(self.weight * slopes, self.slope[here], side="left")
            at = np.clip(rising, 0, len(starts) - 1)
            point[here] = starts[at]
            least[here] = self.weight * values[at] - self.slope[here] * starts[at]
        return point, least

    def at(self, load: Ints) -> Floats:
        """Return ``[n]`` what loads cost."""
        curves, here = self.term.curves, self.term.curve >= 0
        cost, k = np.zeros(len(load)), self.term.curve[here]
        piece = np.maximum(0, (load[here][:, None] >= curves.start[k]).sum(axis=1) - 1)
        beyond = load[here] - curves.start[k, piece]
        cost[here] = self.weight * (curves.value[k, piece] + curves.slope[k, piece] * beyond.astype(np.float64))
        return cost
