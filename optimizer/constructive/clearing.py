"""Clearing: many nodes are emptied at once, a pod of each in a round, into nodes that stay in use.

Where there are very many nodes, one after the other takes too long. The nodes with the fewest pods give, others in use
receive, and no node does both; so nodes that are not empty in the end have their pods back, as far as rules allow.
"""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import Open, Placement, Problem, Unplaced, Violation
from stowplan.optimizer.constructive.emptying import costs_of_nodes
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State, named
from stowplan.optimizer.constructive.together import best_of_each, make_together, suits_together
from stowplan.optimizer.deadline import Deadline


class Clearing:
    """Clearing for one tier, for which `suits` holds.

    Parameters
    ----------
    state
        The placement, which is changed in place.
    """

    @staticmethod
    def suits(problem: Problem, tier: int, parameters: ConstructiveParameters | None = None) -> bool:
        """Whether a tier counts nodes alone, no other comes before it, and there are many and no limit on moves."""
        if not suits_together(problem, tier, (parameters or ConstructiveParameters()).clearing_table):
            return False
        only = all(isinstance(w.term, Open | Violation | Unplaced) for w in problem.tiers[tier].terms)
        return only and bool(costs_of_nodes(problem.tiers[tier], len(problem.nodes)).any())

    def __init__(self, state: State, tier: int, parameters: ConstructiveParameters | None = None) -> None:
        self.state, self._parameters = state, parameters or ConstructiveParameters()
        self._saved = costs_of_nodes(state.problem.tiers[tier], state.nodes)
        self._failed = np.zeros(state.nodes, dtype=np.bool_)
        self._random = np.random.default_rng(0)
        self._size = np.array([state.size(c) for c in range(len(state.problem.classes))], dtype=np.int64)

    def run(self, deadline: Deadline) -> int:
        """Clear smaller and smaller parts of the nodes in use, and return how many were emptied."""
        chosen, emptied, vain = self._parameters, 0, 0
        share = chosen.clearing_first
        while share >= chosen.clearing_last and vain < chosen.clearing_vain and not deadline.over:
            tried = int(share * self._promising().sum())
            if not tried:
                break
            done = self._clear(tried, deadline)
            emptied += done
            vain = 0 if done else vain + 1
            if 0 < done <= chosen.clearing_done * tried:
                share /= 2  # room gets scarce: the pods of fewer nodes find more of it
        return emptied

    def _promising(self) -> Bools:
        """``[n]`` nodes that count and have pods, and of which none was tried."""
        promising: Bools = (self._saved > 0) & (self.state.pods > 0) & ~self._failed
        return promising

    def _clear(self, number: int, deadline: Deadline) -> int:
        """Empty as many as possible of so many nodes, those with the fewest pods; others have theirs back."""
        state, before = self.state, self.state.placement
        in_use = np.flatnonzero(self._promising())
        gives = np.zeros(state.nodes, dtype=np.bool_)
        gives[in_use[np.argsort(state.pods[in_use] / self._saved[in_use], kind="stable")][:number]] = True
        receivers = np.flatnonzero(~gives & ((state.pods > 0) | (self._saved == 0)))
        poor = 0
        for _ in range(self._parameters.clearing_rounds):
            if deadline.over or poor == self._parameters.clearing_patience:
                break
            left = int((gives & (state.pods > 0)).sum())
            if not left or not len(receivers):
                break
            poor = poor + 1 if self._round(gives, receivers) <= self._parameters.clearing_worth * left else 0
        emptied = gives & (state.pods == 0)
        self._failed |= gives & ~emptied
        self._send_back(before, gives & ~emptied)
        return int(emptied.sum())

    def _send_back(self, before: Placement, nodes: Bools) -> None:
        """Let nodes have the pods back that they had before; of classes that rules keep from it, none."""
        state, problem = self.state, self.state.problem
        out = np.zeros(len(problem.classes), dtype=np.bool_)
        while True:
            back = _returned(before, state.placement, nodes, out)
            broken = state.evaluator.broken(back)
            if not broken:
                state.replace(back)
                return
            kept = np.concatenate([named(problem.rules[i]) for i in broken])
            if out[kept].all():
                return
            out[kept] = True

    def _round(self, gives: Bools, receivers: Ints) -> int:
        """Let each node that gives send one pod to the tightest of some nodes, and return how many moved."""
        state, trials = self.state, self._parameters.clearing_trials
        cls, node = state.placement.cls, state.placement.node
        entries = np.flatnonzero(gives[node])
        weight = self._size[cls[entries]] * self._random.uniform(0.5, 1.0, len(entries))
        entries = entries[best_of_each(node[entries], weight)]
        rooms = state.room()
        best, tightest = np.full(len(entries), -1, dtype=np.int64), np.full(len(entries), np.iinfo(np.int64).max)
        for _ in range(trials):
            target = receivers[self._random.integers(0, len(receivers), len(entries))]
            better = state.admit(cls[entries], target) & (rooms[target] < tightest)
            best[better], tightest[better] = target[better], rooms[target[better]]
        entries, best = entries[best >= 0], best[best >= 0]
        alone = best_of_each(best, self._size[cls[entries]])
        entries, best = entries[alone], best[alone]
        return int(make_together(state, entries, best, -rooms[best]).sum())


def _returned(before: Placement, after: Placement, to: Bools, out: Bools) -> Placement:
    """Return a placement in which some nodes have again what they had before, and others less of what came since.

    Parameters
    ----------
    to
        ``[n]`` the nodes, none of which has received a pod.
    out
        ``[c]`` classes whose pods stay where they are.
    """
    nodes = len(to)
    left, came = before.beyond(after, nodes), after.beyond(before, nodes)
    here = to[left.node] & ~out[left.cls]
    wanted = np.zeros(len(out), dtype=np.int64)
    np.add.at(wanted, left.cls[here], left.count[here])
    # Of the arrivals of a class, whose entries follow each other, the first ones go back.
    total = np.cumsum(came.count) - came.count
    earlier = total - total[np.searchsorted(came.cls, came.cls)]
    goes = np.clip(wanted[came.cls] - earlier, 0, came.count)
    key = np.concatenate([p.cls * nodes + p.node for p in (after, came, left)])
    count = np.concatenate([after.count, -goes, np.where(here, left.count, 0)])
    return Placement.summed(key, count, nodes)
