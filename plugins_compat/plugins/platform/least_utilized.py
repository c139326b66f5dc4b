"""LeastUtilized: machines with the largest free shares are better."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.platform import resource
from stowplan.models.problem import POINTS, NodeScore, Origin, Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.platform.scale import Real, ResourcesArgs
from stowplan.plugins_compat.plugins.resource_scores import ResourceSpec, Scored, score_loads


class LeastUtilized(Real):
    """Scores ``Σ w·(allocatable − requested)·100/allocatable / Σ w``, without rounding; a share below 0 counts as 0."""

    name = "LeastUtilized"
    surrogate = "rounded down to whole points; for CPU, memory and ephemeral storage only"
    Args = ResourcesArgs

    def score(self, cycle: CycleState, nodes: Ints) -> Floats:
        """Score by what is left with the instance in place."""
        weights: dict[str, float] = self.args.resources
        used, capacity = self.amounts(cycle, nodes, list(weights))
        free = np.divide((capacity - used) * POINTS, capacity, out=np.zeros_like(used), where=capacity > 0)
        total: Floats = sum(
            (weight * np.maximum(row, 0.0) for weight, row in zip(weights.values(), free, strict=True)),
            np.zeros(len(nodes)),
        )
        result: Floats = total / sum(weights.values())
        return result

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the score as a `NodeScore`, where weights are whole."""
        whole = {name: round(weight) for name, weight in self.args.resources.items() if round(weight) == weight}
        specs = [ResourceSpec(name=resource(name), weight=weight) for name, weight in whole.items()]
        loads = score_loads(view, Scored(self.state, specs, nonzero=False))
        if loads is not None and len(loads) == len(self.args.resources):
            scored = np.ones(len(view.signatures), dtype=np.int64)
            yield Weighted(1, NodeScore(Origin(self.name), "least", loads, view.point, scored))
