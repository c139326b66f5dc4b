"""Nodes are closed, several at once, by a walk that takes all pods away from them, whatever becomes of the others.

A tier that counts nodes in use says nothing of how near a node is to being empty. So some nodes are named that shall be
closed, and a walk through legal placements has to bring what is left there to nothing: pods of other nodes go elsewhere
for them at no cost, which a search that goes by the number of nodes in use, or by the pods of one node, cannot do. The
nodes that hold least of what is scarce, for what they cost, are named first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
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
        worth, self.size, slack = _worths(problem, parameters)
        self.worth = worth / slack if slack > 0 else worth
        self.moves = problem.start.per_node(len(problem.nodes))

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
        moved = int(self.problem.start.beyond(placement, len(self.problem.nodes)).count.sum())
        used = self._in_use(placement) & (self.saved > 0)
        return bool((self.moves[used] <= limit - moved).any())

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
        failed = np.zeros(len(self.problem.nodes), dtype=np.int64)
        number, left, price = len(self.problem.nodes), deadline.seconds, 1.0
        too_many = number + 1
        cheapest = int(self.saved[self.saved > 0].min(initial=values[-1]))
        while values[-1] > enough and left > 0 and not deadline.over:
            order = self._order(failed, price)
            empty = int((self.saved[~self._in_use(best)] > 0).sum())
            if len(order) <= empty:
                if price < chosen.dearest_move:
                    price *= 2
                    continue
                if not failed.any():
                    break
                price, failed = 1.0, failed // 2
                continue
            far = math.ceil(chosen.bold * (values[-1] - enough) / cheapest)
            number = max(1, min(number, far, too_many - empty - 1))
            named = order[: empty + number]
            if number == 1 and failed[named[-1]] > 1:
                break
            trial = self._trial(deadline, left)
            left -= trial.seconds if deadline.deterministic else 0.0
            seed += 1
            found = self._without(named, best, trial, seed)
            of_found = self.evaluator.evaluate(found).values[:tiers]
            stuck = named[self._in_use(found)[named]]
            if of_found < values:
                best, values = found, of_found
                offer(best)
            if not len(stuck):
                number *= 2
                continue
            too_many = len(named)
            few = len(stuck) <= chosen.few_stuck * number
            if few or number == 1:
                failed[stuck if few else named[-1:]] += 1
                too_many = len(self.problem.nodes) + 1
            number = max(1, number - len(stuck) if few else number // 2)
        return best

    def settle(self, start: Placement, deadline: Deadline, seed: int, offer: Callable[[Placement], object]) -> None:
        """Improve the tier after it, with no node in use that is not in ``start``."""
        later = self.problem.tiers[self.tier + 1 :][:1]
        ones = np.ones(len(self.problem.classes), dtype=np.int64)
        room = np.where(self._in_use(start), self.problem.pods, 0)
        shut = Capacity(Origin("closed nodes"), ones, room, np.zeros(len(room), dtype=np.int64))
        inside = replace(self.problem, rules=(*self.problem.rules, shut), tiers=later)
        if later and suits(inside, 0, self.rearrangement.largest_table):
            walk(Evaluator(inside), start, 0, deadline, seed, found=offer, parameters=self.rearrangement)

    def _in_use(self, placement: Placement) -> Bools:
        """``[n]`` whether a node has pods of the problem."""
        return placement.per_node(len(self.problem.nodes)) > 0

    def _order(self, failed: Ints, price: float) -> Ints:
        """Return nodes that cost something, those first that were tried least and take least for what they cost.

        A node takes of the room that all pods leave, and of the moves that there may be, its share of each; moves at a
        price. Whether nodes are empty is of no account: what was emptied before may be of more use than what was not.
        Nodes behind those whose pods are all the moves that there may be are left out.
        """
        nodes = np.flatnonzero(self.saved > 0)
        takes, limit = self.worth, self.problem.move_limit
        if limit is not None:
            takes = takes + price * self.moves / max(1, limit)
        order: Ints = nodes[np.lexsort((nodes, takes[nodes] / self.saved[nodes], failed[nodes]))]
        return order if limit is None else order[np.cumsum(self.moves[order]) <= limit]

    def _trial(self, deadline: Deadline, left: float) -> Deadline:
        """Return the time of a trial."""
        whole = left if deadline.deterministic else deadline.remaining
        chosen = self.parameters
        shortest = max(chosen.shortest, chosen.shortest_of_pod * self.problem.pods)
        seconds = min(whole, chosen.longest, max(shortest, chosen.trial * whole))
        return Deadline(seconds, deadline.deterministic, deadline.stop)

    def _without(self, closed: Ints, start: Placement, deadline: Deadline, seed: int) -> Placement:
        """Take pods away from closed nodes, and return where that ended."""
        none = np.zeros(len(self.problem.nodes), dtype=np.int64)
        charged = none - 1
        charged[closed] = 0
        left = NodeCurve(Origin(NAME), self.size, none, charged, HINGE)
        emptying = Evaluator(replace(self.problem, tiers=(Tier(NAME, (Weighted(1, left),)),)))
        return walk(emptying, start, 0, deadline, seed, parameters=self.rearrangement)


def _worths(problem: Problem, parameters: ClosingParameters) -> tuple[Floats, Ints, float]:
    """Return ``[n]`` room of each node, ``[c]`` what each pod takes, in units of what is scarce, and room that is left.

    A capacity counts by the share of it that pods ask for, to the power of `ClosingParameters.scarcity`.
    """
    worth = np.zeros(len(problem.nodes))
    size = np.zeros(len(problem.classes))
    slack = 0.0
    for rule in problem.rules:
        if isinstance(rule, Capacity):
            room = np.maximum(0, rule.free)
            asked = float(np.abs(rule.demand) @ problem.size)
            whole = float(room.sum())
            if asked <= 0 or whole <= 0:
                continue
            scarce = (asked / whole) ** parameters.scarcity
            worth += scarce * room / whole
            slack += scarce * (1 - asked / whole)
            size += scarce * np.abs(rule.demand) / asked
    mean = float(size @ problem.size) / max(1, problem.pods)
    wholes = np.ceil(parameters.unit * size / mean) if mean > 0 else np.ones(len(size))
    return worth, np.maximum(2, wholes).astype(np.int64), slack
