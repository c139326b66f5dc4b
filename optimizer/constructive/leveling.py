"""Leveling: many moves at once, each from one of the nodes where a pod costs most to one where it costs least.

Where tables of steepest descent cannot hold all nodes, one move at a time takes too long. In a round, half of the nodes
give a pod each, and each of the other half receives at most one; so what moves change adds up, and they can all be
looked at together. Rules that name several pods are checked for all moves of a round, and where one is broken, the
classes that it names are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Move, NodeCurve, Prefer, Problem, Unplaced, Violation
from stowplan.optimizer.constructive.marginal import Marginal, marginals, total_rise
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.constructive.together import best_of_each, make_together, suits_together
from stowplan.optimizer.deadline import Deadline


class Leveling:
    """Leveling in one tier, for which `suits` holds.

    Who gives to whom is drawn at random: pairs in the order of what they cost leave more to be gained.

    Parameters
    ----------
    state
        The placement, which is changed in place.
    """

    @staticmethod
    def suits(problem: Problem, tier: int, parameters: ConstructiveParameters | None = None) -> bool:
        """Whether a tier adds up what nodes cost, no other comes before it, and there are many nodes and no limit."""
        terms = [weighted.term for weighted in problem.tiers[tier].terms]
        known = all(isinstance(term, NodeCurve | Move | Prefer | Violation | Unplaced) for term in terms)
        curves = any(isinstance(term, NodeCurve) for term in terms)
        return known and curves and suits_together(problem, tier, (parameters or ConstructiveParameters()).table)

    def __init__(self, state: State, tier: int, parameters: ConstructiveParameters | None = None) -> None:
        self.state, self._tier = state, state.problem.tiers[tier]
        self._parameters = parameters or ConstructiveParameters()
        self._random = np.random.default_rng(0)

    def run(self, deadline: Deadline) -> int:
        """Take rounds until several gain little or time is up, and return how many moves were made."""
        chosen = self._parameters
        made, most, poor = 0, 0, 0
        for _ in range(chosen.leveling_rounds):
            if deadline.over or poor == chosen.leveling_patience:
                break
            moved, gain = self.round()
            made, most = made + moved, max(most, gain)
            poor = poor + 1 if gain <= chosen.leveling_worth * most else 0
        return made

    def round(self) -> tuple[int, int]:
        """Make the best move of each node that gives a pod, and return how many are legal and what they gain."""
        state, placement = self.state, self.state.placement
        local = marginals(state.problem, self._tier, placement)[0]
        cls, node = placement.cls, placement.node
        saved = -total_rise(local, cls, node, -1)
        target = self._partners(local, saved)[node]
        entries = np.flatnonzero(target >= 0)
        entries = entries[state.admit(cls[entries], target[entries])]
        gain = saved[entries] - total_rise(local, cls[entries], target[entries], 1)
        entries, gain = entries[gain > 0], gain[gain > 0]
        best = best_of_each(node[entries], gain)
        entries, gain = entries[best], gain[best]
        made = make_together(state, entries, target[entries], gain)
        return int(made.sum()), int(gain[made].sum())

    def _partners(self, local: Sequence[Marginal], saved: Ints) -> Ints:
        """``[n]`` the node to which each node gives a pod, or -1 for those that receive."""
        state, chosen = self.state, self._parameters
        nodes = np.arange(state.nodes)
        most = np.zeros(state.nodes, dtype=np.int64)
        np.maximum.at(most, state.placement.node, saved)
        sample = np.arange(0, len(state.problem.classes), max(1, len(state.problem.classes) // chosen.leveling_sample))
        cheap = np.argsort(
            np.mean([total_rise(local, np.array([[c]]), nodes, 1)[0] for c in sample.tolist()], axis=0), kind="stable"
        )
        half = state.nodes // 2
        receives = np.zeros(state.nodes, dtype=np.bool_)
        receives[cheap[:half]] = True
        gives = np.argsort(-np.where(receives, -1, most), kind="stable")[:half]
        partner = np.full(state.nodes, -1, dtype=np.int64)
        partner[gives] = self._random.permutation(cheap[:half])
        return partner
