"""Nodes are closed, several at once, by a walk that takes all pods away from them, whatever becomes of the others.

A tier that counts nodes in use says nothing of how near a node is to being empty. So some nodes are named that shall be
closed, and a walk through legal placements has to bring what is left there to nothing: pods of other nodes go elsewhere
for them at no cost, which a search that goes by the number of nodes in use, or by the pods of one node, cannot do.
Which nodes they are may be given, by a tier that charges pods where they shall not stay.
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
    Prefer,
    Problem,
    Tier,
    Weighted,
)
from stowplan.optimizer.closing.naming import Naming
from stowplan.optimizer.closing.parameters import ClosingParameters
from stowplan.optimizer.constructive.emptying import costs_of_nodes
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import constant
from stowplan.optimizer.rearrangement.model_builder import suits
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.rearrangement.walking import walk

NAME = "closing of nodes"

HINGE = Curves(np.array([[0, 1]]), np.array([[0, 1]]), np.array([[0, 0]]))
"""0 up to a load of 1, which no pod is below, and the load less 1 behind it."""


class ClosingEngine:
    """Improves a tier that only counts nodes in use, or pods on some nodes, and then the one after it without these."""

    def __init__(
        self, evaluator: Evaluator, tier: int, parameters: ClosingParameters, rearrangement: RearrangementParameters
    ) -> None:
        self.evaluator, self.tier, self.parameters, self.rearrangement = evaluator, tier, parameters, rearrangement
        self.problem = problem = evaluator.problem
        self.saved = costs_of_nodes(problem.tiers[tier], len(problem.nodes))
        self.charging = _charging(problem, tier)

    @classmethod
    def suits(cls, problem: Problem, tier: int, rearrangement: RearrangementParameters) -> bool:
        """Whether a tier counts nodes in use alone, and the walk knows all rules."""
        rules = replace(problem, tiers=(Tier("none", ()),))
        return problem.tiers[tier].counts(Open) and suits(rules, 0, rearrangement.largest_table)

    @classmethod
    def names_nodes(cls, problem: Problem, tier: int, rearrangement: RearrangementParameters) -> bool:
        """Whether a tier only charges pods on some nodes, half of them at most, and the walk knows all rules.

        All classes must be charged the same, and the tiers above must be such as no walk changes.
        """
        terms = [weighted.term for weighted in problem.tiers[tier].terms]
        named = all(isinstance(term, Prefer) and (term.table >= 0).all() and _alike(term) for term in terms)
        some = 0 < 2 * _charging(problem, tier).sum() <= len(problem.nodes)
        return (
            named
            and some
            and all(map(constant, problem.tiers[:tier]))
            and suits(replace(problem, tiers=(Tier("none", ()),)), 0, rearrangement.largest_table)
        )

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

    def leave(self, start: Placement, deadline: Deadline, seed: int, offer: Callable[[Placement], object]) -> None:
        """Take pods away from the nodes where the tier charges them; offer where that ended if it is better."""
        values = self.evaluator.evaluate(start).values[: self.tier + 1]
        size = Naming(self.problem, self.charging.astype(np.int64), self.parameters).size
        found = self._without(np.flatnonzero(self.charging), start, size, deadline, seed)
        if self.evaluator.evaluate(found).values[: self.tier + 1] < values:
            offer(found)

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
        """Improve the tier after it, with no node in use, or no more pods on charging ones, than in ``start``.

        Parameters
        ----------
        floor
            Value of that tier that is good enough.
        """
        if not self.settles:
            return
        ones = np.ones(len(self.problem.classes), dtype=np.int64)
        room = np.where(self._in_use(start), self.problem.pods, 0)
        if self.charging.any():
            room = np.where(self.charging, start.per_node(len(room)), self.problem.pods)
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


def _charging(problem: Problem, tier: int) -> Bools:
    """``[n]`` whether a tier charges pods of some class on a node by itself."""
    charged = np.zeros(len(problem.nodes), dtype=np.bool_)
    for weighted in problem.tiers[tier].terms:
        if isinstance(weighted.term, Prefer):
            charged |= (weighted.term.table > 0).any(axis=0)
    return charged


def _alike(term: Prefer) -> bool:
    """Whether all classes are charged the same."""
    used = term.table[np.unique(term.row)]
    return bool((used == used[:1]).all())
