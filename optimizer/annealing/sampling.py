"""Sampling of the pods that steps begin with: pods of violated constraints, and pods on expensive nodes."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.annealing.parameters import AnnealingParameters


class PodSampler:
    """Draws pods worth moving.

    A node's cost says how much could be gained there, not whether anything can: a few nodes that cost more than all
    others together, whatever is done, would draw nearly all steps. So a node's probability decreases with every time
    that it was drawn and its cost did not change.

    Parameters
    ----------
    violating_pods
        Pods of violated constraints. If there are any, they are half of the sample.
    """

    def __init__(
        self,
        state: SearchState,
        tier: int,
        violating_pods: Ints,
        rng: np.random.Generator,
        parameters: AnnealingParameters,
    ) -> None:
        self.parameters = parameters
        self.state, self.tier, self.violating_pods, self.rng = state, tier, violating_pods, rng
        self._costs = _node_costs(state, tier)
        self._drawn = np.zeros(len(self._costs), dtype=np.int64)
        self._in_vain = np.zeros(len(self._costs), dtype=np.int64)

    def pods(self) -> Ints:
        """Return pods worth moving, some several times; the last entry is not one of them."""
        state, rng, size = self.state, self.rng, self.parameters.sampled_pods
        powers = self.parameters.node_powers
        pods = np.zeros(size + 1, dtype=np.int64)
        mine = size // 2 if len(self.violating_pods) else 0
        pods[:mine] = rng.choice(self.violating_pods, mine) if mine else 0
        before, self._costs = self._costs, _node_costs(state, self.tier)
        self._in_vain = np.where(self._costs == before, self._in_vain + self._drawn, 0)
        self._drawn[:] = 0
        costs = np.maximum(0, self._costs)
        costs[state.width[: len(costs)] == 0] = 0
        if not costs.any():
            return np.append(self.violating_pods, 0)
        for share, power in zip(np.array_split(pods[mine:size], len(powers)), powers, strict=True):
            random = (costs / costs.max()) ** power / (1 + self._in_vain)
            nodes = rng.choice(len(costs), len(share), p=random / random.sum())
            self._drawn[nodes] = 1
            slots = (rng.random(len(share)) * state.width[nodes]).astype(np.int64)
            share[:] = state.on[state.on_at[nodes] + slots]
        return pods


def _node_costs(state: SearchState, tier: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """``[N]`` what the curves and scores of each node add to a tier."""
    nodes = int(state.head[at.H_NODES])
    costs = np.zeros(nodes)
    for groups, first in ((state.curve, at.H_V_VALUE), (state.score, at.H_V_SCORE)):
        for i in np.flatnonzero(groups[:, 0] == tier):
            costs += float(groups[i, 1]) * state.live[:nodes, state.head[first] + i]
    return costs
