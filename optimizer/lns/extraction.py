"""Extracts a sub-problem: frees as many nodes of a neighborhood as a model of some size holds."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.optimizer.lns.features import Features
from stowplan.optimizer.lns.operators import Neighborhood
from stowplan.optimizer.subproblem.scope import Free


class Busy:
    """The nodes, and the classes of unplaced pods, that sub-problems under way have freed.

    Two sub-problems that share neither can be solved in parallel and merged afterwards.
    """

    def __init__(self, classes: int, nodes: int) -> None:
        self.nodes: Bools = np.zeros(nodes, dtype=np.bool_)
        self.waiting: Bools = np.zeros(classes, dtype=np.bool_)

    def take(self, free: Free) -> None:
        """Reserve a free part."""
        self.nodes[free.nodes] = True
        self.waiting[free.waiting] = True

    def release(self, free: Free) -> None:
        """Release a free part."""
        self.nodes[free.nodes] = False
        self.waiting[free.waiting] = False


def extract(
    features: Features, neighborhood: Neighborhood, size: int, busy: Busy, rng: np.random.Generator
) -> Free | None:
    """Return the free part of a sub-problem, or ``None`` if too little of the neighborhood is left.

    Parameters
    ----------
    size
        Variables that the model should have at most.
    """
    limits = features.shared.parameters
    if neighborhood.anchored and busy.nodes[neighborhood.nodes[0]]:
        return None
    waiting = _waiting(features, neighborhood, busy, rng)
    nodes: list[int] = []
    present = np.zeros(len(features.problem.classes), dtype=np.bool_)
    present[waiting[: max(1, int(size * limits.waiting_share) // limits.fewest_nodes)]] = True
    count = int(present.sum())
    for n in neighborhood.nodes[~busy.nodes[neighborhood.nodes]][: limits.most_nodes].tolist():
        here = features.classes_on(n)
        more = int(np.count_nonzero(~present[here]))
        if len(nodes) >= limits.fewest_nodes and (count + more) * (len(nodes) + 1) > size:
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
    """Return classes that have unplaced pods, those of the neighborhood first."""
    # They may help elsewhere, too: as targets of affinity, or by letting others be unplaced in their place.
    if not (features.shared.waiting_costs or rng.random() < features.shared.parameters.seldom):
        return np.zeros(0, dtype=np.int64)
    free = np.flatnonzero((features.missing > 0) & ~busy.waiting)
    first = neighborhood.waiting[np.isin(neighborhood.waiting, free)]
    return np.concatenate([first, rng.permutation(np.setdiff1d(free, first))])
