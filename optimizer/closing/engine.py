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
        self.worth, self.size = _worths(problem, parameters)

    @classmethod
    def suits(cls, problem: Problem, tier: int, rearrangement: RearrangementParameters) -> bool:
        """Whether a tier counts nodes in use alone, nothing limits moves, and the walk knows all rules."""
        only = problem.move_limit is None and all(
            isinstance(weighted.term, Open) for weighted in problem.tiers[tier].terms
        )
        rules = replace(problem, tiers=(Tier("none", ()),))
        return only and bool(problem.tiers[tier].terms) and suits(rules, 0, rearrangement.largest_table)

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
        number, left = len(self.problem.nodes), deadline.seconds
        cheapest = int(self.saved[self.saved > 0].min(initial=values[-1]))
        while values[-1] > enough and left > 0 and not deadline.over:
            order = self._order(failed)
            empty = int((~self._in_use(best)[order]).sum())
            far = math.ceil(chosen.bold * (values[-1] - enough) / cheapest)
            number = min(number, far, len(order) - empty)
            named = order[: empty + number]
            if not number or (number == 1 and failed[named[-1]] > 1):
                break
            trial = self._trial(deadline, left)
            left -= trial.seconds if deadline.deterministic else 0.0
            seed += 1
            found = self._without(named, best, trial, seed)
            of_found = self.evaluator.evaluate(found).values[:tiers]
            all_closed = not self._in_use(found)[named].any()
            if of_found < values:
                best, values = found, of_found
                offer(best)
            failed[named[-1]] += not all_closed and number == 1
            number = 2 * number if all_closed else max(1, number // 2)
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

    def _order(self, failed: Ints) -> Ints:
        """Return nodes that cost something, those first that were tried least and hold least for what they cost.

        Whether they are empty is of no account: what was emptied before may be of more use than what was not.
        """
        nodes = np.flatnonzero(self.saved > 0)
        order: Ints = nodes[np.lexsort((nodes, self.worth[nodes] / self.saved[nodes], failed[nodes]))]
        return order

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


def _worths(problem: Problem, parameters: ClosingParameters) -> tuple[Floats, Ints]:
    """Return what each node has room for, and ``[c]`` what each pod takes, both in units of what is scarce.

    A capacity counts by the share of it that pods ask for, to the power of `ClosingParameters.scarcity`.
    """
    worth = np.zeros(len(problem.nodes))
    size = np.zeros(len(problem.classes))
    for rule in problem.rules:
        if isinstance(rule, Capacity):
            room = np.maximum(0, rule.free)
            asked = float(np.abs(rule.demand) @ problem.size)
            whole = float(room.sum())
            if asked <= 0 or whole <= 0:
                continue
            scarce = (asked / whole) ** parameters.scarcity
            worth += scarce * room / whole
            size += scarce * np.abs(rule.demand) / asked
    mean = float(size @ problem.size) / max(1, problem.pods)
    wholes = np.ceil(parameters.unit * size / mean) if mean > 0 else np.ones(len(size))
    return worth, np.maximum(2, wholes).astype(np.int64)
