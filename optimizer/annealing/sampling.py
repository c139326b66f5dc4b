"""Where a walk begins its steps: with pods that take part in something exceeded, and with pods on costly nodes."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.state import Image

PODS = 1000
"""Pods that are aimed at until the next look."""

STEEP = (1.0, 2.0)
"""A node's chance is its cost to one of these powers: hardly better than chance, and almost the worst alone."""


class Aim:
    """Finds pods worth moving, look after look.

    A node's cost says how much could be gained there, not whether anything can: a few nodes that cost more than all
    others together, whatever is done, would draw nearly all steps. So a node's chance shrinks with every look since
    which it has been aimed at and its cost is the same as before.

    Parameters
    ----------
    troubled
        Pods that take part in something exceeded. If there are any, they are half of the answer.
    """

    def __init__(self, image: Image, tier: int, troubled: Ints, rng: np.random.Generator) -> None:
        self.image, self.tier, self.troubled, self.rng = image, tier, troubled, rng
        self._costs = _node_costs(image, tier)
        self._drawn = np.zeros(len(self._costs), dtype=np.int64)
        self._in_vain = np.zeros(len(self._costs), dtype=np.int64)

    def pods(self) -> Ints:
        """Return pods worth moving, some several times; the last entry is not one of them."""
        image, rng = self.image, self.rng
        pods = np.zeros(PODS + 1, dtype=np.int64)
        mine = PODS // 2 if len(self.troubled) else 0
        pods[:mine] = rng.choice(self.troubled, mine) if mine else 0
        before, self._costs = self._costs, _node_costs(image, self.tier)
        self._in_vain = np.where(self._costs == before, self._in_vain + self._drawn, 0)
        self._drawn[:] = 0
        costs = np.maximum(0, self._costs)
        costs[image.width[: len(costs)] == 0] = 0
        if not costs.any():
            return np.append(self.troubled, 0)
        for share, power in zip(np.array_split(pods[mine:PODS], len(STEEP)), STEEP, strict=True):
            chance = (costs / costs.max()) ** power / (1 + self._in_vain)
            nodes = rng.choice(len(costs), len(share), p=chance / chance.sum())
            self._drawn[nodes] = 1
            slots = (rng.random(len(share)) * image.width[nodes]).astype(np.int64)
            share[:] = image.on[image.on_at[nodes] + slots]
        return pods


def _node_costs(image: Image, tier: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """``[N]`` what each node adds to a tier by what is on it."""
    nodes = int(image.head[at.H_NODES])
    costs = np.zeros(nodes)
    for groups, first in ((image.curve, at.H_V_VALUE), (image.score, at.H_V_SCORE)):
        for i in np.flatnonzero(groups[:, 0] == tier):
            costs += float(groups[i, 1]) * image.live[:nodes, image.head[first] + i]
    return costs
