"""What the pods of a workload miss at least of a score that counts pods by domain, by where they are.

PodTopologySpread and InterPodAffinity read few other pods: those of the same workload, and of workloads that its terms
name. Classes that read each other are taken together, and all ways to place their pods are scored with no other pod in
the cluster. Others matter only as far as they take the room of a node, which is then not compared any more. Of the
nodes of which that is not sure, those count that let a pod miss the least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, combinations_with_replacement, product, takewhile
from math import comb, prod

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import NOWHERE, Placement, WorkloadCost
from stowplan.plugins_compat.final_state.plugin_scores import OverFeasible
from stowplan.plugins_compat.final_state.scorer import FinalStateScorer, classes_in

MOST_WAYS, MOST_OF_ALL = 400, 2_000
"""Ways to place the pods of a group, and of all groups, up to which they are listed."""

MOST_UNSURE = 4
"""Nodes that others may fill up to which all sets of them are tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How many pods there can be.

    Parameters
    ----------
    size, waiting
        ``[c]`` pods of each class, and how many of these may have no node.
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    """

    size: Ints
    upper: Ints
    waiting: Ints

    @property
    def most(self) -> Ints:
        """``[c, n]`` the most pods of each class on each node, and not more than there are."""
        return np.minimum(self.upper, self.size[:, None])

    def open_to(self, c: int) -> list[int]:
        """Return the nodes that a pod of a class can be on, and `NOWHERE` if it may be without one."""
        return np.flatnonzero(self.upper[c]).tolist() + ([NOWHERE] if self.waiting[c] else [])


def workload_costs(
    scorer: FinalStateScorer, one: OverFeasible, pods: Counts, price: float, enough: Callable[[], bool]
) -> tuple[WorkloadCost, ...]:
    """Return what groups of classes miss at least; a group that has too many ways is left out.

    Parameters
    ----------
    scorer
        Without any of the pods.
    pods
        How many there can be.
    price
        Of a unit of the score.
    enough
        Whether to leave out the groups that are not scored yet.
    """
    found, listed = [], 0
    for group in sorted(_groups(scorer, one)):
        ways = _number_of_ways(group, pods)
        if ways > MOST_WAYS or listed + ways > MOST_OF_ALL or not _known(scorer, group):
            continue
        listed += ways
        spare = _spare(scorer, group, pods)
        every = np.array(list(_ways(group, pods)), dtype=np.int64)
        missed = [_missed(scorer, one, group, way, spare) for way in takewhile(lambda _: not enough(), every)]
        if any(missed) and len(missed) == len(every):
            cost = np.array(missed, dtype=np.float64) * price
            found.append(WorkloadCost(np.array(group, dtype=np.int64), every, cost))
    scorer.go_to(Placement.of(()))
    return tuple(found)


def _groups(scorer: FinalStateScorer, one: OverFeasible) -> Iterator[list[int]]:
    """Yield the classes that read each other, for those that the score does not find all nodes alike for."""
    counting = scorer.classes_counted()
    group_of: dict[int, set[int]] = {}
    asked: set[int] = set()
    waiting = [c for c in range(len(scorer.kinds)) if not one.flat(c)]
    while waiting:
        c = waiting.pop()
        if c in asked:
            continue
        asked.add(c)
        read = classes_in(counting, chain(one.counts(c) or (), scorer.feasibility.counts(c)))
        waiting += read
        group = {c}.union(*(group_of.get(other, {other}) for other in (c, *read)))
        group_of.update(dict.fromkeys(group, group))
    yield from (sorted(group) for group in {id(group): group for group in group_of.values()}.values())


def _known(scorer: FinalStateScorer, group: Iterable[int]) -> bool:
    """Whether filters read no pods but those of the group, and those of a node."""
    return not any(scorer.feasibility.always_changes(c) for c in group)


def _number_of_ways(group: Sequence[int], pods: Counts) -> int:
    """Return how many ways there are if nodes can hold any number of pods."""
    places = ((len(pods.open_to(c)), int(pods.size[c])) for c in group)
    return prod(comb(nodes + number - 1, number) for nodes, number in places)


def _ways(group: Sequence[int], pods: Counts) -> Iterator[Ints]:
    """Yield ``[g, n]`` the ways to place the pods of a group."""
    each = [combinations_with_replacement(pods.open_to(c), int(pods.size[c])) for c in group]
    for nodes in product(*each):
        way = np.zeros((len(group), pods.upper.shape[1]), dtype=np.int64)
        for g, chosen in enumerate(nodes):
            np.add.at(way[g], [n for n in chosen if n != NOWHERE], 1)
        placed = way.sum(axis=1)
        if (way <= pods.upper[group]).all() and (placed >= (pods.size - pods.waiting)[group]).all():
            yield way


def _spare(scorer: FinalStateScorer, group: Sequence[int], pods: Counts) -> Bools:
    """``[g, n]`` the nodes that no pods of other classes can make infeasible, with those of the group there too."""
    feasibility = scorer.feasibility
    others = [c for c in range(len(pods.size)) if c not in set(group)]
    spare = feasibility.room_beside(pods.most, pods.size)[group]
    for g, c in enumerate(group):
        if feasibility.minds(c, others):
            spare[g] = False
    return spare


def _missed(scorer: FinalStateScorer, one: OverFeasible, group: Sequence[int], way: Ints, spare: Bools) -> int:
    """Return what the pods of a group miss at least of all points, in units."""
    scorer.go_to(Placement.of((group[g], n, int(way[g, n])) for g, n in np.argwhere(way).tolist()))
    missed = 0
    for g, c in enumerate(group):
        nodes = np.flatnonzero(way[g])
        if one.flat(c) or not len(nodes):
            continue
        feasible = scorer.feasibility.feasible(np.full(len(nodes), c), nodes)
        for n, most in zip(nodes.tolist(), feasible, strict=True):
            missed += int(way[g, n]) * (one.most(c) - _best(one, c, n, most, spare[g]))
    return missed


def _best(one: OverFeasible, c: int, node: int, feasible: Bools, spare: Bools) -> int:
    """Return the most points of a pod over all sets of nodes that may be feasible in the end."""
    if not feasible[node]:
        return 0  # others do not make it feasible: it has no score there
    sure = feasible & spare
    sure[node] = True
    unsure = np.flatnonzero(feasible & ~sure).tolist()
    if len(unsure) > MOST_UNSURE:
        return one.most(c)
    chosen = list(chain.from_iterable(combinations(unsure, number) for number in range(len(unsure) + 1)))
    sets = np.repeat(sure[None], len(chosen), axis=0)
    for row, nodes in zip(sets, chosen, strict=True):
        row[list(nodes)] = True
    points: Floats | Ints = one.in_place(np.full(len(sets), c), np.full(len(sets), node), sets)
    return int(points.max())
