"""What the priorities by resources share: CPU and memory that a node's pods and the incoming one count for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import NodeScore, Origin, Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.view import ScoreView
from stowplan.plugins_compat.plugins.policy.scale import MOST
from stowplan.plugins_compat.requests import CPU, MEMORY


class UsedResources(Plugin):
    """A priority that reads non-zero requests: a container without a request counts for 100m and 200Mi.

    Init containers do not count.
    """

    def usage(self, cycle: CycleState, nodes: Ints) -> tuple[Ints, Ints]:
        """Return usage with the pod and allocatable, each ``[2, nodes]``: CPU, memory."""
        rows = [self.state.resources[CPU], self.state.resources[MEMORY]]
        used = self.state.nonzero[:, nodes] + self.state.nonzero_vector(cycle.signature)[:, None]
        return used, self.state.allocatable[rows][:, nodes]

    def node_score(
        self, view: ScoreView, kind: Literal["least", "most", "balanced"], points: int, finest: int | None = None
    ) -> Iterator[Weighted]:
        """Yield the score as a `NodeScore`, which has a scale of 100.

        Parameters
        ----------
        points
            How many points of a `NodeScore` are one point of the priority.
        """
        loads = tuple(
            view.load(
                np.array([self.state.nonzero_vector(s)[which] for s in view.signatures], dtype=np.int64),
                self.state.nonzero[which],
                self.state.allocatable[self.state.resources[name]],
                1,
                finest,
            )
            for which, name in enumerate((CPU, MEMORY))
        )
        scored = np.ones(len(view.signatures), dtype=np.int64)
        yield Weighted(1, NodeScore(Origin(self.name), kind, loads, max(1, view.point // points), scored))


def halves(parts: Ints) -> Ints:
    """Average the two rows of parts, rounding down."""
    averages: Ints = parts.sum(axis=0) // 2
    return averages


def shares(amount: Ints, used: Ints, capacity: Ints) -> Ints:
    """Return the tenths of the capacity that an amount is, rounded down; 0 without capacity, and beyond it."""
    room = np.maximum(capacity, 1)
    tenths: Ints = np.where((capacity == 0) | (used > capacity), 0, amount * MOST // room)
    return tenths
