"""BalancedResourceAllocation: CPU and memory should fill up together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.policy.scale import MOST
from stowplan.plugins_compat.plugins.policy.used_resources import UsedResources


class BalancedResourceAllocation(UsedResources):
    """Scores ``int(10 − |c − m|·10)`` for the used fractions ``c`` of CPU and ``m`` of memory.

    A node where either is 1 or more scores 0; without capacity a fraction is 1.
    """

    name = "BalancedResourceAllocation"
    surrogate = "without rounding to tenths; a full node is scored by the difference too"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score by how far the two fractions are apart with the pod in place."""
        used, capacity = self.usage(cycle, nodes)
        fraction = np.where(capacity == 0, 1.0, used / np.maximum(capacity, 1))
        points = MOST - np.abs(fraction[0] - fraction[1]) * MOST
        scores: Ints = np.where((fraction >= 1).any(axis=0), 0, points).astype(np.int64)
        return scores

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the score as a `NodeScore`, which takes 50 of its points for a difference of 1."""
        yield from self.node_score(view, "balanced", 5, finest=1_000_000)
