"""The points that the pods of a class miss at least if none of them moves, where few pods may move.

PodTopologySpread and InterPodAffinity of a workload read where its own pods are, and which nodes are feasible. Other
pods change the second alone: those that come to a node may fill it, and one that leaves may make room there. A pod that
leaves may close its node, too, where a filter looks at what is on the node: a volume that goes with it, on a node with
more volumes than it may have, would have to be attached anew.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import Placement
from stowplan.plugins_compat.final_state.plugin_scores import AffinityScores
from stowplan.plugins_compat.final_state.scorer import FinalStateScorer, classes_in
from stowplan.plugins_compat.final_state.spread_scores import SpreadScores


def missed_at_rest(
    scorer: FinalStateScorer, one: SpreadScores | AffinityScores, start: Placement, waiting: Ints, limit: int
) -> Floats:
    """``[c]`` the points missed, 0 for classes that other ones matter to, or that have pods without a node.

    Parameters
    ----------
    scorer
        At the start.
    waiting
        ``[c]`` pods without a node at the start.
    limit
        How many pods may move.
    """
    counting, feasibility = scorer.classes_counted(), scorer.feasibility
    missed, arriving = np.zeros(len(scorer.kinds)), limit + int(waiting.sum())
    for c in range(len(scorer.kinds)):
        if one.flat(c) or waiting[c] or feasibility.always_changes(c):
            continue
        if classes_in(counting, chain(one.counts(c), feasibility.counts(c))) <= {c}:
            own = start.only(np.array([c]))
            nodes, pods = own.node, own.count
            feasible = feasibility.feasible(np.full(len(nodes), c), nodes)
            closing = limit if feasibility.minds(c, range(len(scorer.kinds))) else 0
            filled = _most_filled(scorer, c, arriving + closing)
            most = one.at_most(c, nodes, feasible, feasibility.allowed(c), filled)
            missed[c] = float((pods * (one.most(c) - most)).sum())
    return missed


def _most_filled(scorer: FinalStateScorer, c: int, arriving: int) -> int:
    """Return how many nodes so many pods can make infeasible for a class, each as large as the largest one.

    Where a filter looks at the pods of a node, any single one may.
    """
    feasibility, state = scorer.feasibility, scorer.framework.state
    needs, largest = feasibility.needs[c], feasibility.adds.max(axis=0)
    spare = state.allocatable - state.requested - needs[:, None]
    here = largest > 0
    takes: Ints = (spare[here] // largest[here, None] + 1).min(axis=0, initial=arriving + 1)
    takes = takes[feasibility.room(c)]
    if feasibility.minds(c, range(len(scorer.kinds))):
        takes = np.ones_like(takes)
    return int((np.cumsum(np.sort(takes)) <= arriving).sum())
