"""The nodes that a sub-problem frees: as many nodes of a neighborhood as a model of some size holds."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.optimizer.lns.features import Features
from stowplan.optimizer.lns.operators import Neighborhood
from stowplan.optimizer.subproblem.scope import Free

MOST_NODES = 200
"""Nodes that are looked at for one neighbourhood."""

FEWEST_NODES = 3
"""Nodes below which classes are left out instead."""

WAITING_SHARE = 0.3
"""Part of a neighbourhood that pods without a node may take."""


SELDOM = 0.2
"""Part of the neighbourhoods in which pods without a node take part although they cost nothing in the tier."""


class Busy:
    """What neighbourhoods under way have taken: their nodes, and their classes that wait.

    Two neighbourhoods that share neither can be solved side by side and put together afterwards.
    """

    def __init__(self, classes: int, nodes: int) -> None:
        self.nodes: Bools = np.zeros(nodes, dtype=np.bool_)
        self.waiting: Bools = np.zeros(classes, dtype=np.bool_)

    def take(self, free: Free) -> None:
        """Take a free part."""
        self.nodes[free.nodes] = True
        self.waiting[free.waiting] = True

    def release(self, free: Free) -> None:
        """Give a free part back."""
        self.nodes[free.nodes] = False
        self.waiting[free.waiting] = False


def extract(
    features: Features, neighborhood: Neighborhood, size: int, busy: Busy, rng: np.random.Generator
) -> Free | None:
    """Return the free part of a neighbourhood, or ``None`` if there is nothing left for it.

    Parameters
    ----------
    size
        Variables that the model should have at most.
    """
    if neighborhood.anchored and busy.nodes[neighborhood.nodes[0]]:
        return None
    waiting = _waiting(features, neighborhood, busy, rng)
    nodes: list[int] = []
    present = np.zeros(len(features.problem.classes), dtype=np.bool_)
    present[waiting[: max(1, int(size * WAITING_SHARE) // FEWEST_NODES)]] = True
    count = int(present.sum())
    for n in neighborhood.nodes[~busy.nodes[neighborhood.nodes]][:MOST_NODES].tolist():
        here = features.classes_on(n)
        more = int(np.count_nonzero(~present[here]))
        if len(nodes) >= FEWEST_NODES and (count + more) * (len(nodes) + 1) > size:
            break
        nodes.append(n)
        present[here] = True
        count += more
    if len(nodes) < 2 and not (nodes and len(waiting)):
        return None
    most = max(2, size // len(nodes))
    if count > most:
        chosen = rng.permutation(np.setdiff1d(np.flatnonzero(present), waiting[:1]))
        staying = np.isin(chosen, neighborhood.movers)
        present[np.concatenate([chosen[~staying], chosen[staying]])[: count - most]] = False
    classes = np.flatnonzero(present)
    elastic = classes[(features.problem.optional[classes] > 0) & ~busy.waiting[classes]]
    return Free(np.sort(np.array(nodes, dtype=np.int64)), classes, elastic)


def _waiting(features: Features, neighborhood: Neighborhood, busy: Busy, rng: np.random.Generator) -> Ints:
    """Return classes that have pods without a node, those of the idea first."""
    # They may help elsewhere, too: give company, or let others wait in their place.
    if not (features.shared.waiting_costs or rng.random() < SELDOM):
        return np.zeros(0, dtype=np.int64)
    free = np.flatnonzero((features.missing > 0) & ~busy.waiting)
    first = neighborhood.waiting[np.isin(neighborhood.waiting, free)]
    return np.concatenate([first, rng.permutation(np.setdiff1d(free, first))])
