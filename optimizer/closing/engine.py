"""Nodes are closed, several at once, by a walk that takes all pods away from them, whatever becomes of the others.

A tier that counts nodes in use says nothing of how near a node is to being empty. So some nodes are named that shall be
closed, and a walk through legal placements has to bring what is left there to nothing: pods of other nodes go elsewhere
for them at no cost, which a search that goes by the number of nodes in use, or by the pods of one node, cannot do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    Capacity,
    Curves,
    NodeCurve,
    Open,
    Origin,
    Placement,
    Problem,
    Tier,
    Weighted,
)
from stowplan.optimizer.closing.naming import Naming
from stowplan.optimizer.closing.parameters import ClosingParameters
from stowplan.optimizer.constructive.emptying import costs_of_nodes
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.rearrangement.model_builder import suits
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.rearrangement.walking import walk

NAME = "closing of nodes"

HINGE = Curves(np.array([[0, 1]]), np.array([[0, 1]]), np.array([[0, 0]]))
"""0 up to a load of 1, which no pod is below, and the load less 1 behind it."""


class ClosingEngine:
    """Improves a tier that only counts nodes in use, and then the one after it with no more nodes."""

    def __init__(
        self, evaluator: Evaluator, tier: int, parameters: ClosingParameters, rearrangement: RearrangementParameters
    ) -> None:
        self.evaluator, self.tier, self.parameters, self.rearrangement = evaluator, tier, parameters, rearrangement
        self.problem = problem = evaluator.problem
        self.saved = costs_of_nodes(problem.tiers[tier], len(problem.nodes))

    @classmethod
    def suits(cls, problem: Problem, tier: int, rearrangement: RearrangementParameters) -> bool:
        """Whether a tier counts nodes in use alone, and the walk knows all rules."""
        only = all(isinstance(weighted.term, Open) for weighted in problem.tiers[tier].terms)
        rules = replace(problem, tiers=(Tier("none", ()),))
        return only and bool(problem.tiers[tier].terms) and suits(rules, 0, rearrangement.largest_table)

    def has_moves(self, placement: Placement) -> bool:
        """Whether a limit on moves leaves enough to empty one more of the nodes that cost something."""
        limit = self.problem.move_limit
        if limit is None:
            return True
        start, nodes = self.problem.start, len(self.problem.nodes)
        used = self._in_use(placement) & (self.saved > 0)
        return bool((start.per_node(nodes)[used] <= limit - start.moved(placement, nodes)).any())

    def close(
        self, start: Placement, deadline: Deadline, seed: int, enough: int, offer: Callable[[Placement], object]
    ) -> Placement:
        """Close nodes until time is up, the tier is down to a value, or no node can be closed in all the time.

        Parameters
        ----------
        start
            A legal placement.
        enough
            Value of the tier that is good enough.
        offer
            Called with each placement that has a better value.

        Returns
        -------
        Placement
            The best placement; it leaves unscheduled what ``start`` does, and breaks no rule that it keeps.
        """
        chosen, tiers = self.parameters, self.tier + 1
        best, values = start, self.evaluator.evaluate(start).values[:tiers]
        naming, left = Naming(self.problem, self.saved, chosen), deadline.seconds
        cheapest = int(self.saved[self.saved > 0].min(initial=values[-1]))
        while values[-1] > enough and left > 0 and not deadline.over:
            named = naming.next(self._in_use(best), math.ceil(chosen.bold * (values[-1] - enough) / cheapest))
            if named is None:
                break
            trial = self._trial(deadline, left)
            left -= trial.seconds if deadline.deterministic else 0.0
            seed += 1
            found = self._without(named, best, naming.size, trial, seed)
            of_found = self.evaluator.evaluate(found).values[:tiers]
            if of_found < values:
                best, values = found, of_found
                offer(best)
            naming.learn(named, named[self._in_use(found)[named]])
        return best

    @cached_property
    def settles(self) -> bool:
        """Whether there is a tier after it that a walk can improve."""
        alone = replace(self.problem, tiers=self._later)
        return bool(self._later) and suits(alone, 0, self.rearrangement.largest_table)

    @property
    def _later(self) -> tuple[Tier, ...]:
        """The tier after it, if there is one."""
        return self.problem.tiers[self.tier + 1 :][:1]

    def settle(
        self, start: Placement, deadline: Deadline, seed: int, offer: Callable[[Placement], object], floor: int = 0
    ) -> None:
        """Improve the tier after it, with no node in use that is not in ``start``.

        Parameters
        ----------
        floor
            Value of that tier that is good enough.
        """
        if not self.settles:
            return
        ones = np.ones(len(self.problem.classes), dtype=np.int64)
        room = np.where(self._in_use(start), self.problem.pods, 0)
        shut = Capacity(Origin("closed nodes"), ones, room, np.zeros(len(room), dtype=np.int64))
        inside = replace(self.problem, rules=(*self.problem.rules, shut), tiers=self._later)
        walk(Evaluator(inside), start, 0, deadline, seed, floor=floor, found=offer, parameters=self.rearrangement)

    def _in_use(self, placement: Placement) -> Bools:
        """``[n]`` whether a node has pods of the problem."""
        return placement.per_node(len(self.problem.nodes)) > 0

    def _trial(self, deadline: Deadline, left: float) -> Deadline:
        """Return the time of a trial."""
        whole = left if deadline.deterministic else deadline.remaining
        chosen = self.parameters
        shortest = max(chosen.shortest, chosen.shortest_of_pod * self.problem.pods)
        seconds = min(whole, chosen.longest, max(shortest, chosen.trial * whole))
        return Deadline(seconds, deadline.deterministic, deadline.stop)

    def _without(self, closed: Ints, start: Placement, size: Ints, deadline: Deadline, seed: int) -> Placement:
        """Take pods, which count ``[c]`` so much each, away from closed nodes, and return where that ended."""
        none = np.zeros(len(self.problem.nodes), dtype=np.int64)
        charged = none - 1
        charged[closed] = 0
        left = NodeCurve(Origin(NAME), size, none, charged, HINGE)
        emptying = Evaluator(replace(self.problem, tiers=(Tier(NAME, (Weighted(1, left),)),)))
        return walk(emptying, start, 0, deadline, seed, parameters=self.rearrangement)
