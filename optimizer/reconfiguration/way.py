"""A way from the placement at the start to another one: moves of single pods, each legal when its turn comes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from threading import Event
from typing import NamedTuple

import numpy as np

from stowplan.models.problem import Capacity, MoveBudget, Placement, Problem
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import moves_tier
from stowplan.optimizer.rearrangement.division import seeds_of
from stowplan.optimizer.rearrangement.kernel.arrays import Int32
from stowplan.optimizer.rearrangement.model_builder import build_model, pods_of, suits
from stowplan.optimizer.reconfiguration.chain import Chain, Cooling, Found, after_moves
from stowplan.optimizer.reconfiguration.parameters import ReconfigurationParameters

THREADS = 2


class Hop(NamedTuple):
    """A move of one pod of a class; classes and nodes are indices of the problem."""

    cls: int
    source: int
    target: int


def knows(problem: Problem, parameters: ReconfigurationParameters) -> bool:
    """Whether a way can be searched: the walk knows all rules, and pods that leave a node free all that they took."""
    held = any(isinstance(rule, Capacity) and rule.held_on_source for rule in problem.rules)
    return not held and suits(_by_distance(problem), 0, parameters.largest_table)


def find_way(
    evaluator: Evaluator,
    target: Placement,
    deadline: Deadline,
    seed: int = 0,
    *,
    parameters: ReconfigurationParameters | None = None,
) -> Sequence[Hop]:
    """Return moves that lead from the start of a problem for which `knows` holds to a placement, or near to it.

    A way that takes many more moves than pods come to be elsewhere is none.

    Parameters
    ----------
    target
        A legal placement of the pods that are placed at the start, of each class as many.
    """
    chosen = parameters or ReconfigurationParameters()
    by_distance = _by_distance(evaluator.problem)
    measure = Evaluator(by_distance)
    cls, node, home = pods_of(replace(by_distance, start=target), by_distance.start)
    first, last = node.astype(np.int32), home.astype(np.int32)
    if np.array_equal(first, last):
        return []
    model = build_model(measure, 0, cls, node, returns=False)
    chains = [Chain(measure, model, first, s, chosen) for s in seeds_of(seed, THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        search = _Search(evaluator, chains, pool, first, last, deadline, chosen)
        record = search.shorter(search.first())
    if len(record) > chosen.most_moves * search.moved(record):
        return []
    return [Hop(int(cls[p]), a, b) for p, a, b in record.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    evaluator: Evaluator
    chains: Sequence[Chain]
    pool: ThreadPoolExecutor
    source: Int32
    target: Int32
    deadline: Deadline
    chosen: ReconfigurationParameters

    @property
    def spent(self) -> float:
        """The share of the time that is over; of the work that counts for it in deterministic mode."""
        seconds = max(self.deadline.seconds, 1e-9)
        if self.deadline.deterministic:
            return max(chain.spent for chain in self.chains) / (seconds * self.chosen.work_per_second)
        return 1 - self.deadline.remaining / seconds

    @property
    def over(self) -> bool:
        """Whether the search is to end."""
        return self.deadline.over or self.spent >= 1

    def first(self) -> Int32:
        """Return the first way that leads to the target; else the one whose end is best."""
        chosen, trying = self.chosen, self.deadline.share(self.chosen.first_share)
        work, least = chosen.first_work * len(self.source), chosen.work_at_once
        best: tuple[tuple[int, ...], Int32] | None = None
        for number in count():
            left = chosen.first_share - self.spent
            if self.over or left <= 0:
                break
            if self.deadline.deterministic:
                work = max(least, min(work, int(left * self.deadline.seconds * chosen.work_per_second)))
            found = self._each(work, number, trying)
            found = [one for one in found if self._can_be_shortened(one.record)]
            there = [one.record for one in found if one.distance == 0]
            if there:
                return min(there, key=len)
            for one in found:
                values = self.evaluator.evaluate(self._placement(after_moves(self.source, one.record))).values
                if best is None or values < best[0]:
                    best = values, one.record
            work *= 2
        return best[1] if best else np.zeros((0, 3), dtype=np.int32)

    def _can_be_shortened(self, record: Int32) -> bool:
        return len(record) <= self.chosen.moves_at_first * (self.chosen.moves_at_first + self.moved(record))

    def shorter(self, record: Int32) -> Int32:
        """Return a way to where another one ends, with fewer moves if that goes."""
        idle = 0
        while idle < self.chosen.idle_rounds and not self.over and len(record) > self.chosen.shortest_part:
            looks = self.deadline.seconds * self.chosen.work_per_second * (1 - self.spent)
            turn = partial(
                Chain.shortened,
                source=self.source,
                record=record,
                deadline=self.deadline,
                most=looks if self.deadline.deterministic else math.inf,
            )
            found = min(self.pool.map(turn, self.chains), key=len)
            idle = 0 if len(found) < len(record) else idle + 1
            record = found
        return record

    def moved(self, record: Int32) -> int:
        """Return how many pods have another node after some moves."""
        start, nodes = self.evaluator.problem.start, len(self.evaluator.problem.nodes)
        return start.moved(self._placement(after_moves(self.source, record)), nodes)

    def _each(self, work: int, number: int, deadline: Deadline) -> list[Found]:
        """Let every thread try once."""
        homing = self.chosen.homing
        halt = None if deadline.deterministic else Event()

        def turn(i: int) -> Found:
            cooling = Cooling(
                work, self.chosen.hottest, self.chosen.coldest, homing[(number + i) % len(homing)], self.chosen.longest
            )
            return self.chains[i].connect(self.source, self.target, cooling, deadline, halt)

        return list(self.pool.map(turn, range(len(self.chains))))

    def _placement(self, node: Int32) -> Placement:
        nodes = len(self.evaluator.problem.nodes)
        cls = self.chains[0].model.cls.astype(np.int64)
        return Placement.summed(cls * nodes + node, np.ones(len(cls), dtype=np.int64), nodes)


def _by_distance(problem: Problem) -> Problem:
    """Return a problem that values a placement by how many pods are not where they start, and limits no moves."""
    rules = tuple(rule for rule in problem.rules if not isinstance(rule, MoveBudget))
    return replace(problem, rules=rules, tiers=(moves_tier(len(problem.classes)),))
