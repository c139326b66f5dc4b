"""About how much the score changes if a pod moves, for all targets at once."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.plugins_compat.final_state.plugin_scores import BalancedScores, FitScores
from stowplan.plugins_compat.final_state.scorer import FinalStateScorer


class Estimates:
    """Estimates moves for a scorer, so that only promising ones are made and measured.

    What the pod itself gains is exact, but for feasible nodes that change. What the pods on both nodes lose and gain by
    the usage there is exact for NodeResourcesFit where pods are counted alike; other effects are left out.

    Parameters
    ----------
    weights
        ``[p]`` what a point of each plugin is worth.
    """

    def __init__(self, scorer: FinalStateScorer, weights: Ints) -> None:
        self._scorer, self._weights = scorer, weights
        self._fits = [(p, one) for p, one in scorer.on_node if isinstance(one, FitScores)]
        self._balanced = [(p, one) for p, one in scorer.on_node if isinstance(one, BalancedScores)]

    def gains(self, c: int, node: int) -> tuple[Floats, Bools]:
        """``[n]`` about how many points all pods gain if a pod leaves its node for another, and the feasible nodes."""
        scorer = self._scorer
        state = scorer.framework.state
        points, feasible = scorer.offers(c, node, self._weights)
        gain = (points - points[node]).astype(np.float64)
        nodes = np.arange(state.size)
        cls = np.full(state.size, c)
        here = np.array([node])
        pods = state.requested[state.resources["pods"]]
        for p, fit in self._fits:
            weight = float(self._weights[p])
            before, after, capacity = fit.usage.of(cls, nodes, there=False)
            without = fit.plugin.points(before, capacity, fit.usage.weights)
            with_pod = fit.plugin.points(after, capacity, fit.usage.weights)
            now = int(fit.scores(np.array([c]), here)[0])
            arriving = with_pod - now + (with_pod - without) * pods
            left = before[:, here] - fit.usage.own[:, [c]]
            relieved = fit.plugin.points(left, capacity[:, here], fit.usage.weights)[0] - without[node]
            gain += weight * (arriving + relieved * max(0, int(pods[node]) - 1))
        for p, one in self._balanced:
            weight = float(self._weights[p])
            gain += weight * (one.arriving(cls, nodes) - int(one.scores(np.array([c]), here)[0]))
        gain[node] = 0.0
        return gain, feasible
