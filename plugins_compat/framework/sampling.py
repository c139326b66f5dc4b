"""Which feasible nodes the scheduler stops at: it does not look for all of them in a large cluster."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np

from stowplan.models.problem import POINTS
from stowplan.plugins_compat.framework.diagnosis import LEFT_OUT, Diagnosis
from stowplan.plugins_compat.framework.status import Code

WORKERS = 16
"""Threads that filter nodes in parallel upstream."""

FEW = 100
"""Nodes below which all are looked at, and feasible nodes that are looked for at least."""

LEAST_PERCENT = 5
MOST_PERCENT = 50
NODES_PER_PERCENT = 125
"""The adaptive percentage falls by one point for so many nodes."""


def nodes_to_find(nodes: int, percentage: int) -> int:
    """Return how many feasible nodes to look for among so many.

    Parameters
    ----------
    percentage
        ``percentageOfNodesToScore``; 0 adapts to the number of nodes.
    """
    if nodes < FEW or percentage >= POINTS:
        return nodes
    percentage = percentage or max(LEAST_PERCENT, MOST_PERCENT - nodes // NODES_PER_PERCENT)
    return max(FEW, nodes * percentage // POINTS)


def chunk_size(nodes: int) -> int:
    """Return how many nodes a worker takes at a time: ``chunkSizeFor`` of ``pkg/scheduler/framework/parallelize``."""
    return max(1, min(math.isqrt(nodes), nodes // WORKERS + 1))


class Sampler:
    """Keeps the place in the node list where the next search begins.

    What one worker does is reproduced: nodes are met in list order, and the search ends at the first feasible node
    beyond those that were looked for. Upstream's sixteen workers meet them in an unpredictable order, of which
    `leave_to_chance` draws one.

    Parameters
    ----------
    percentage
        See `nodes_to_find`.
    over_all_nodes
        The place advances modulo all nodes, instead of those that PreFilter left in.
    """

    def __init__(self, percentage: int, over_all_nodes: bool) -> None:
        self.percentage = percentage
        self.over_all_nodes = over_all_nodes
        self.start = 0
        self._random: random.Random | None = None

    def leave_to_chance(self, rng: random.Random, nodes: int) -> None:
        """Begin at a random one of so many nodes, and meet nodes in the order of parallel workers from now on.

        Each worker takes a chunk of nodes at a time, of a size that `chunk_size` gives. So a node may be met before
        others that are listed up to sixteen chunks earlier.
        """
        self._random = rng
        self.start = rng.randrange(nodes) if nodes else 0

    def cut(self, diagnosis: Diagnosis, *, first_will_do: bool = False) -> Diagnosis:
        """Return the diagnosis as far as the search would have come, and move on.

        Parameters
        ----------
        first_will_do
            One feasible node is enough, since nothing scores.
        """
        if diagnosis.rejected is not None:
            return diagnosis
        considered = np.flatnonzero(diagnosis.failed_by != LEFT_OUT)
        number = len(considered)
        if not number:
            return diagnosis
        met = np.roll(considered, -(self.start % number))
        if self._random is not None:
            reach = WORKERS * chunk_size(number)
            keys = [position + self._random.uniform(0, reach) for position in range(number)]
            met = met[np.argsort(keys, kind="stable")]
        wanted = 1 if first_will_do else nodes_to_find(number, self.percentage)
        hits = np.flatnonzero(diagnosis.codes[met] == Code.SUCCESS)
        if len(hits) > wanted:
            met = met[: hits[wanted]]
        modulus = len(diagnosis.nodes) if self.over_all_nodes else number
        self.start = (self.start + len(met)) % modulus
        shown = np.concatenate([met, np.flatnonzero(diagnosis.failed_by == LEFT_OUT)])
        noted = {new: diagnosis.noted[old] for new, old in enumerate(shown.tolist()) if old in diagnosis.noted}
        return replace(
            diagnosis,
            nodes=diagnosis.nodes[shown],
            codes=diagnosis.codes[shown],
            failed_by=diagnosis.failed_by[shown],
            noted=noted,
        )
