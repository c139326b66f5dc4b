"""Which feasible nodes the scheduler stops at: it does not look for all of them in a large cluster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stowplan.models.problem import POINTS
from stowplan.plugins_compat.framework.cycle import LEFT_OUT, Verdict
from stowplan.plugins_compat.framework.status import Code

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


class Sampler:
    """Keeps the place in the node list where the next search begins.

    What one worker does is reproduced: nodes are met in list order, and the search ends at the first feasible node
    beyond those that were looked for. Upstream's sixteen workers meet them in an order that nobody can know.

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

    def cut(self, verdict: Verdict, *, first_will_do: bool = False) -> Verdict:
        """Return the verdict as far as the search would have come, and move on.

        Parameters
        ----------
        first_will_do
            One feasible node is enough, since nothing scores.
        """
        if verdict.rejected is not None:
            return verdict
        considered = np.flatnonzero(verdict.failed_by != LEFT_OUT)
        number = len(considered)
        if not number:
            return verdict
        met = np.roll(considered, -(self.start % number))
        wanted = 1 if first_will_do else nodes_to_find(number, self.percentage)
        hits = np.flatnonzero(verdict.codes[met] == Code.SUCCESS)
        if len(hits) > wanted:
            met = met[: hits[wanted]]
        modulus = len(verdict.nodes) if self.over_all_nodes else number
        self.start = (self.start + len(met)) % modulus
        shown = np.concatenate([met, np.flatnonzero(verdict.failed_by == LEFT_OUT)])
        noted = {new: verdict.noted[old] for new, old in enumerate(shown.tolist()) if old in verdict.noted}
        return replace(
            verdict,
            nodes=verdict.nodes[shown],
            codes=verdict.codes[shown],
            failed_by=verdict.failed_by[shown],
            noted=noted,
        )
