"""CoolNodes: nodes whose CPU requests are above 70 % are worse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import POINTS, NodeCurve, Origin, Weighted
from stowplan.plugins_compat.curves import convex, stack
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.view import ScoreView

HOT = 70


class CoolNodes(Plugin):
    """Scores a node by how far the pod would take its CPU requests above 70 %."""

    name = "CoolNodes"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Return 100, less a point for each percent above."""
        row = self.state.resources["cpu"]
        used = self.state.requested[row][nodes] + self.state.vector(cycle.signature)[row]
        percent = POINTS * used // np.maximum(1, self.state.allocatable[row][nodes])
        scores: Ints = np.clip(POINTS - np.maximum(0, percent - HOT), 0, POINTS)
        return scores

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return a surrogate: each node costs a point, once, for each percent above."""
        row = self.state.resources["cpu"]
        capacity = self.state.allocatable[row]
        demand = np.array([self.state.vector(signature)[row] for signature in view.signatures], dtype=np.int64)
        sizes, which = np.unique(np.maximum(1, capacity), return_inverse=True)
        family = []
        for size in sizes.tolist():

            def cost(used: float, size: int = size) -> float:
                return view.point * max(0.0, POINTS * used / size - HOT)

            family.append(convex(cost, (HOT * size // POINTS, size), 0))
        curve = np.where(capacity > 0, which, -1)
        held = self.state.requested[row]
        yield Weighted(1, NodeCurve(Origin(self.name, "cpu"), demand, held, curve, stack(family)))
