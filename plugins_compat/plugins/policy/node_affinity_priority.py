"""NodeAffinityPriority: nodes that the pod prefers are better."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.matching import matching
from stowplan.plugins_compat.plugins.policy.scale import MOST, prefer_ten


class NodeAffinityPriority(Plugin):
    """Scores ``int(10·w/max)``: ``w`` is the weight of the preferred terms that select the node, ``max`` the most."""

    name = "NodeAffinityPriority"
    surrogate = "normalized over all nodes the pod may use, not over those feasible at the moment"

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Sum the weights of matching preferred terms."""
        return self._weights(cycle.signature)[nodes]

    def normalize(self, cycle: CycleState, nodes: Ints, scores: Ints) -> Ints:
        """Scale so that the best node has 10."""
        return _scaled(scores)

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the scores as a table, normalized over the nodes that each signature may use at all."""
        yield from prefer_ten(view, self.name, self._weights, _scaled)

    def _weights(self, signature: Signature) -> Ints:
        def make() -> Ints:
            affinity = signature.pod.spec.affinity
            preferred = affinity.node_affinity.preferred if affinity and affinity.node_affinity else ()
            total = np.zeros(self.state.size, dtype=np.int64)
            for term in preferred:
                total[matching(self.state, term.preference)] += term.weight
            return total

        return self.state.memo((self.name, signature), make)


def _scaled(scores: Ints) -> Ints:
    """Scale so that the highest score becomes 10, in floating point as upstream does; without any, all are 0."""
    highest = int(scores.max(initial=0))
    if highest <= 0:
        return np.zeros_like(scores)
    scaled: Ints = (MOST * (scores / float(highest))).astype(np.int64)
    return scaled
