"""Spreading: the pods of one class after another, from the domains where they crowd to those where they cost least.

The moves are those of steepest descent, in nearly its order, without its tables. A term that counts pods in domains
reads few classes, and there may be tens of thousands of such terms: their counters are made for the class at hand, and
given up again. How much a class can gain at most is known from its own pods; the class that may gain most is looked at
first, and moves a pod unless another one may gain more (lazy evaluation: M. Minoux, *Accelerated greedy algorithms for
maximizing submodular set functions*, 1978).
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from itertools import takewhile

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    DomainCurve,
    Move,
    MovePeak,
    Pair,
    Placement,
    Problem,
    Term,
    Unplaced,
    Violation,
    Weighted,
)
from stowplan.optimizer.constructive.marginal import Marginal, marginals, total_rise
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline


class Spreading:
    """Spreading in one tier, for which `suits` holds.

    Parameters
    ----------
    state
        The placement, which is changed in place.
    """

    @staticmethod
    def suits(problem: Problem, tier: int) -> bool:
        """Whether a tier counts only pods in domains and moves, and no earlier one the most leavers of a group."""
        terms = [[weighted.term for weighted in each.terms] for each in problem.tiers[: tier + 1]]
        peaks = any(isinstance(term, MovePeak) for part in terms for term in part)
        only = all(isinstance(term, DomainCurve | Move | Unplaced | Violation) for term in terms[tier])
        return only and not peaks and any(isinstance(term, DomainCurve) for term in terms[tier])

    def __init__(self, state: State, tier: int, parameters: ConstructiveParameters | None = None) -> None:
        self._state, self._parameters = state, parameters or ConstructiveParameters()
        self._problem, self._every = state.problem, np.arange(state.nodes)
        self._room = state.room()
        self._tiers = state.problem.tiers[: tier + 1]
        self._local: list[list[Marginal]] = []
        named: dict[int, list[list[Weighted]]] = {}
        for t, each in enumerate(self._tiers):
            relational = [weighted for weighted in each.terms if isinstance(weighted.term, DomainCurve | Pair)]
            local = tuple(weighted for weighted in each.terms if not isinstance(weighted.term, DomainCurve | Pair))
            self._local.append(marginals(self._problem, replace(each, terms=local), state.placement)[0])
            for weighted in relational:
                for c in _members(weighted.term):
                    named.setdefault(c, [[] for _ in self._tiers])[t].append(weighted)
        self._naming = {c: [tuple(listed) for listed in by_tier] for c, by_tier in named.items()}

    def run(self, deadline: Deadline) -> int:
        """Make moves until none improves, or as many as parameters allow, and return how many were made."""
        state, made = self._state, 0
        every = takewhile(lambda _: not deadline.over, sorted(self._naming))
        waiting = [(-gain, c) for c in every if (gain := self._most(c)) > 0]
        heapq.heapify(waiting)
        while waiting and made < self._parameters.spreading_steps and not deadline.over and state.left > 0:
            _, c = heapq.heappop(waiting)
            found = self._best(c)
            if found is None:
                continue
            gain, source, target = found
            if waiting and gain < -waiting[0][0]:
                heapq.heappush(waiting, (-gain, c))
                continue
            state.shift(c, source, target)
            self._room = state.room()
            for term in (term for local in self._local for term in local):
                term.shift(c, source, -1)
                term.shift(c, target, 1)
            made += 1
            for related in self._related(c):
                heapq.heappush(waiting, (-self._most(related), related))
        return made

    def _related(self, c: int) -> list[int]:
        """Return the classes that are counted together with a class, itself among them."""
        return sorted({other for named in self._naming[c] for weighted in named for other in _members(weighted.term)})

    def _most(self, c: int) -> int:
        """Return what a move of a pod of a class saves at most: from the worst place to the best of each term."""
        nodes = self._nodes_of(c)
        most = np.zeros(len(nodes), dtype=np.int64)
        for weighted in self._naming[c][-1]:
            term = weighted.term
            if isinstance(term, DomainCurve):
                saved, paid = _steps(term, self._state.placement.only(term.group), nodes)
                most += weighted.weight * np.maximum(0, saved - paid)  # it may stay in its domain
        return int(most.max(initial=0))

    def _best(self, c: int) -> tuple[int, int, int] | None:
        """Return gain, source, and target of the best legal move of a pod of a class, or ``None`` if none gains."""
        nodes, terms = self._nodes_of(c), self._terms(c)
        fits = self._state.fits(np.array([c]), self._every)[0]
        most = np.zeros(len(nodes), dtype=np.int64)
        for term in terms[-1]:
            saved = -term.rise(np.full_like(nodes, c), nodes, -1)
            least = int(term.rise(np.array([[c]]), self._every, 1).min())
            most += saved - least if term.classes is None else np.maximum(0, saved - least)
        best: tuple[int, int, int] | None = None
        for e in np.argsort(-most, kind="stable").tolist():
            if most[e] <= (0 if best is None else best[0]):
                break
            found = self._target(c, int(nodes[e]), terms, fits)
            if found is not None and (best is None or found[0] > best[0]):
                best = found[0], int(nodes[e]), found[1]
        return best

    def _target(self, c: int, source: int, terms: list[list[Marginal]], fits: Bools) -> tuple[int, int] | None:
        """Return what a pod gains on the best node that is legal, the roomiest of equal ones, and that node."""
        rises = [self._rise(c, source, tier) for tier in terms]
        allowed = fits & (rises[-1] < 0)
        allowed[source] = False
        lower = np.zeros_like(allowed)
        for rise in rises[:-1]:
            allowed &= lower | (rise <= 0)
            lower |= rise < 0
        for _ in range(self._parameters.insertion_trials):
            left = np.flatnonzero(allowed)
            if not len(left):
                break
            least = left[rises[-1][left] == rises[-1][left].min()]
            target = int(least[self._room[least].argmax()])
            forbidden = self._state.forbidden(c, source, target)
            if not len(forbidden):
                return -int(rises[-1][target]), target
            allowed[forbidden] = False
        return None

    def _rise(self, c: int, source: int, tier: list[Marginal]) -> Ints:
        """``[n]`` change of a tier if a pod of a class comes from a node to another."""
        total = np.full(len(self._every), total_rise(tier, np.array([c]), np.array([source]), -1)[0])
        for term in tier:
            term.shift(c, source, -1)  # it arrives where it is missing already
        total += total_rise(tier, np.array([[c]]), self._every, 1).reshape(-1)
        for term in tier:
            term.shift(c, source, 1)
        return total

    def _nodes_of(self, c: int) -> Ints:
        placement = self._state.placement
        first, last = np.searchsorted(placement.cls, (c, c + 1))
        return placement.node[first:last]

    def _terms(self, c: int) -> list[list[Marginal]]:
        """Return, for each tier, its marginal costs as far as a class is concerned."""
        return [
            [*local, *marginals(self._problem, replace(tier, terms=named), self._state.placement)[1]]
            for tier, local, named in zip(self._tiers, self._local, self._naming[c], strict=True)
        ]


def _steps(term: DomainCurve, pods: Placement, nodes: Ints) -> tuple[Ints, int]:
    """Return what one pod of a group less on each node saves, ``[n]``, and what one more costs at least anywhere."""
    domain = term.topology.domain
    held_nowhere = not term.held.any()
    holding, which = np.unique(domain[pods.node], return_inverse=True)
    count = np.zeros(len(holding), dtype=np.int64)
    np.add.at(count, which, pods.count)
    count += term.held[holding]
    here = count[np.searchsorted(holding, domain[nodes])]
    saved = term.curves.first(here) - term.curves.first(here - 1)
    if held_nowhere and np.count_nonzero(holding >= 0) < term.topology.size:
        least = 0
    else:
        every = term.held.copy()
        every[holding] = count
        least = int(every.min())
    step = term.curves.first(np.array([least, least + 1]))
    return np.where(domain[nodes] >= 0, saved, 0), int(step[1] - step[0])


def _members(term: Term) -> list[int]:
    """Return the classes that a term over domains reads."""
    match term:
        case DomainCurve():
            members = term.group
        case Pair():
            members = np.union1d(term.seekers, term.targets)
        case _:
            members = np.zeros(0, dtype=np.int64)
    return [int(c) for c in members.tolist()]
