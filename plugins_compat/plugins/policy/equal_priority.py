"""EqualPriority: all nodes are as good."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.view import ScoreView


class EqualPriority(Plugin):
    """Scores every node 1."""

    name = "EqualPriority"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score 1."""
        return np.ones(len(nodes), dtype=np.int64)

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return nothing: what is the same everywhere decides nothing."""
        return iter(())
