"""BalancedShares: machines whose resources are used alike are better."""

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


class BalancedShares(Real):
    """Scores ``(1 − σ)·100`` for the standard deviation σ of the used shares, without rounding.

    Of two shares it is half their difference. A share above 1 counts as 1.
    """

    name = "BalancedShares"
    surrogate = "rounded down to whole points; for two of CPU, memory and ephemeral storage only"
    Args = ResourcesArgs

    def score(self, cycle: CycleState, nodes: Ints) -> Floats:
        """Score by the shares with the instance in place."""
        shares = np.minimum(self.shares(cycle, nodes, list(self.args.resources)), 1.0)
        if len(shares) == 2:
            spread: Floats = np.abs((shares[0] - shares[1]) / 2)
        else:
            spread = shares.std(axis=0)
        result: Floats = (1 - spread) * POINTS
        return result

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the score as a `NodeScore`."""
        specs = [ResourceSpec(name=resource(name)) for name in self.args.resources]
        loads = score_loads(view, Scored(self.state, specs, nonzero=False), finest=1_000_000)
        if loads is not None and len(loads) == len(specs) == 2:
            scored = np.ones(len(view.signatures), dtype=np.int64)
            yield Weighted(1, NodeScore(Origin(self.name), "balanced", loads, view.point, scored))
