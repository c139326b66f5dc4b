"""CheapNodes: nodes with a lower price are better."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin, default_normalize
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.view import ScoreView

PRICE = "example.com/cents-per-hour"


def cheapest(prices: Ints) -> Ints:
    """Return scores of 0 to 100; a node without a price costs nothing and has 100."""
    return default_normalize(prices, reverse=True)


class CheapNodes(Plugin):
    """Scores nodes by their price label, the dearest feasible one with 0."""

    name = "CheapNodes"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Return the prices."""
        return self._prices(cycle.signature)[nodes]

    def normalize(self, cycle: CycleState, nodes: Ints, scores: Ints) -> Ints:
        """Turn prices into scores."""
        return cheapest(scores)

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the scores as a table, normalized over the nodes that each signature may use at all."""
        yield from view.prefer_score(self.name, self._prices, cheapest)

    def _prices(self, signature: Signature) -> Ints:
        """``[n]`` the price of each node; here the same for every signature."""
        return self.state.memo(
            (self.name, "prices"),
            lambda: np.array([int(node.labels.get(PRICE, "0")) for node in self.state.nodes], dtype=np.int64),
        )
