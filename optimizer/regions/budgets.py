"""What limits on moves are for regions: each gets as many moves as the best placement makes in it.

That placement was found at one price of a move for all nodes, so at its moves a region gains as much by one more as any
other: the sum of what regions gain is what the limit lets all of them gain.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import GroupMoveBudget, MoveBudget, Placement, Problem


def budgets(problem: Problem, now: Placement, best: Placement, region: Ints, regions: int) -> Mapping[int, Ints]:
    """Return how many moves each region may make, by the number of each limit among the rules; empty if there is none.

    Parameters
    ----------
    now
        Where regions begin; moves that were made there are made.
    region
        ``[n]`` the region of each node.
    """

    def made(placement: Placement, group: Ints | None) -> Ints:
        left = problem.start.beyond(placement, len(problem.nodes))
        moves = left if group is None else left.only(group)
        return np.bincount(region[moves.node], moves.count, regions).astype(np.int64)

    found: dict[int, Ints] = {}
    for i, rule in enumerate(problem.rules):
        match rule:
            case MoveBudget() if problem.limits_moves:
                group = None
            case GroupMoveBudget():
                group = rule.group
            case _:
                continue
        before, wanted = made(now, group), made(best, group)
        wanted = np.maximum(0, wanted - before)
        spare = rule.limit - int((before + wanted).sum())
        if spare < 0:
            wanted = np.zeros_like(wanted)
            spare = max(0, rule.limit - int(before.sum()))
        found[i] = wanted + spare // regions + (np.arange(regions) < spare % regions)
    return found
