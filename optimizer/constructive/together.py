"""Many moves at once, of which no two change the same node: which of them are legal together."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import Placement, Problem
from stowplan.optimizer.constructive.state import State, named
from stowplan.optimizer.evaluate.cost import constant


def best_of_each(group: Ints, worth: Ints | Floats) -> Ints:
    """Return the indices of those that are worth most in their group, the first one of equals."""
    order = np.lexsort((-worth, group))
    first: Ints = order[np.diff(group[order], prepend=-1) != 0]
    return first


def make_together(state: State, entries: Ints, target: Ints, worth: Ints) -> Bools:
    """Move a pod of each entry of the placement to a node, as far as that is legal, and say which were moved.

    Of each class that rules name, one pod moves, the one whose move is worth most. Where all moves together break a
    rule, the classes that it names stay, until no rule is broken.

    Parameters
    ----------
    entries, target, worth
        ``[i]`` entry, node that has room for the pod, and what orders moves of one class. No node is in two moves.
    """
    cls = state.placement.cls[entries]
    made = ~state.is_named(cls)
    made[best_of_each(cls, worth)] = True
    while made.any():
        after = moved(state.placement, entries[made], target[made], state.nodes)
        broken = state.evaluator.broken(after)
        if not broken:
            state.replace(after)
            break
        stays = np.isin(cls, np.concatenate([named(state.problem.rules[i]) for i in broken]))
        made &= ~stays & (made & stays).any()  # where no move is named, all are given up
    return made


def moved(placement: Placement, entries: Ints, target: Ints, nodes: int) -> Placement:
    """Return the placement with a pod of each entry moved to another node."""
    key = np.concatenate([placement.cls * nodes + placement.node, placement.cls[entries] * nodes + target])
    count = np.concatenate([placement.count, np.ones(len(entries), dtype=np.int64)])
    np.subtract.at(count, entries, 1)
    return Placement.summed(key, count, nodes)


def suits_together(problem: Problem, tier: int, pairs: int) -> bool:
    """Whether there are more pairs of class and node, no limit on moves, and no tier before that a move changes."""
    many = len(problem.classes) * len(problem.nodes) > pairs
    return many and problem.move_limit is None and all(map(constant, problem.tiers[:tier]))
