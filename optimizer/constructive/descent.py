"""Steepest descent: the move of one pod that improves a tier most, again and again.

Two tables are kept up to date: what a pod less on its node saves, for each entry of the placement, and what a pod more
costs, for each class and node. A move changes the loads of two nodes, so it changes two columns of the second table,
and the rows of the classes that are counted together with the class that moved. Moves that an earlier tier would pay
for are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import DomainCurve, Move, MovePeak, Pair, Problem, Unplaced, Violation
from stowplan.optimizer.constructive.marginal import Marginal, marginals, total_rise
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate.cost import cost

PART = 200_000
"""Entries of a table that are computed together."""

NEVER = np.int64(1) << 60
"""Cost of what must not happen; above every cost, and sums of two of them do not overflow."""


class Descent:
    """Steepest descent in one tier, for which `suits` holds.

    Parameters
    ----------
    state
        The placement, which is changed in place.
    """

    @staticmethod
    def suits(problem: Problem, tier: int, parameters: ConstructiveParameters | None = None) -> bool:
        """Whether moves of single pods can improve a tier at all, and tables up to it are not too large."""
        terms = [[weighted.term for weighted in each.terms] for each in problem.tiers[: tier + 1]]
        if all(isinstance(term, Violation | Unplaced | Move | MovePeak) for term in terms[tier]):
            return False
        counters = sum(term.topology.size for part in terms for term in part if isinstance(term, DomainCurve | Pair))
        return counters <= (parameters or ConstructiveParameters()).counters

    def __init__(self, state: State, tier: int, parameters: ConstructiveParameters | None = None) -> None:
        self._state = state
        self._parameters = parameters or ConstructiveParameters()
        problem = state.problem
        self._classes = np.arange(len(problem.classes))
        self._own = _Terms(state, (tier,))
        self._earlier = _Terms(state, range(tier))
        self._targets = self._choose_targets()
        self._column = np.full(state.nodes, -1, dtype=np.int64)
        self._column[self._targets] = np.arange(len(self._targets))
        self._banned = np.zeros((len(self._classes), len(self._targets)), dtype=np.bool_)
        self._fits = state.fits(self._classes, self._targets)
        for terms in (self._own, self._earlier):
            terms.tabulate(self._classes, self._targets)
        self._stale = np.ones(len(self._classes), dtype=np.bool_)
        self._least = np.zeros(len(self._classes), dtype=np.int64)
        self._cheapest = np.zeros(len(self._classes), dtype=np.int64)
        self._best_column = np.zeros(len(self._classes), dtype=np.int64)
        self._peaks = [
            (t, weighted.weight, weighted.term)
            for t, earlier in enumerate(problem.tiers[: tier + 1])
            for weighted in earlier.terms
            if isinstance(weighted.term, MovePeak)
        ]

    def _choose_targets(self) -> Ints:
        """Return all nodes, or as many as tables may have columns."""
        table, sampled = self._parameters.table, self._parameters.sample
        nodes, most = np.arange(self._state.nodes), max(1, table // max(1, len(self._classes)))
        if len(nodes) <= most:
            return nodes
        sample = self._classes[:: max(1, len(self._classes) // sampled)]
        rise = np.zeros(len(nodes))
        for part in np.array_split(nodes, 1 + len(nodes) * len(sample) // table):
            costs = self._own.rises(sample, part)
            rise[part] = np.where(self._state.fits(sample, part), costs, costs.max(initial=0)).mean(axis=0)
        return np.sort(np.argsort(rise, kind="stable")[:most])

    def run(self, deadline: Deadline) -> int:
        """Make moves until none improves, or as many as parameters allow, and return how many were made."""
        made = 0
        for _ in range(self._parameters.attempts):
            if deadline.over or made == self._parameters.steps:
                break
            found = self._best()
            if found is None:
                break
            c, source, column = found
            target = int(self._targets[column])
            useless = np.array([target])
            if self._improves(c, source, target):
                useless = self._state.forbidden(c, source, target)
            if len(useless):
                self.ban(c, useless)
            else:
                self.make(c, source, target)
                made += 1
        return made

    def promising(self, most: int) -> Sequence[tuple[int, int, int]]:
        """Return class, source and target of up to so many moves that improve by the tables, the best first."""
        at, early, change = self._candidates()
        placement = self._state.placement
        return [
            (int(placement.cls[e]), int(placement.node[e]), int(self._targets[self._best_column[placement.cls[e]]]))
            for e in at[np.lexsort((change, early))[:most]].tolist()
        ]

    def ban(self, c: int, targets: Ints) -> None:
        """Do without moves of a class to some nodes, until one of its pods has moved."""
        columns = self._column[targets]
        self._banned[c, columns[columns >= 0]] = True
        self._stale[c] = True

    def _best(self) -> tuple[int, int, int] | None:
        """Return class, source and column of the target of the best move, or ``None`` if none improves."""
        at, early, change = self._candidates()
        if not len(at):
            return None
        first = early == early.min()
        e = int(at[first][change[first].argmin()])
        cls, node = self._state.placement.cls, self._state.placement.node
        return int(cls[e]), int(node[e]), int(self._best_column[cls[e]])

    def _candidates(self) -> tuple[Ints, Ints, Ints]:
        """Return the entries whose best move improves, and what it changes in the tiers before and in this one."""
        self._refresh()
        placement = self._state.placement
        cls, node = placement.cls, placement.node
        change = self._cheapest[cls] - self._own.saved
        change_early = self._least[cls] - self._earlier.saved
        candidates = (self._cheapest[cls] < NEVER) & (self._targets[self._best_column[cls]] != node)
        candidates &= (change_early < 0) | ((change_early == 0) & (change < 0))
        if self._state.left <= 0:
            candidates &= self._arrived()
        at = np.flatnonzero(candidates)
        return at, change_early[at], change[at]

    def _refresh(self) -> None:
        """Find the best target again for each class for which it may have changed."""
        rows = np.flatnonzero(self._stale)
        for part in np.array_split(rows, 1 + len(rows) * len(self._targets) // self._parameters.table):
            allowed = self._fits[part] & ~self._banned[part]
            if self._earlier.any:
                early = np.where(allowed, self._earlier.costs[part], NEVER)
                self._least[part] = early.min(axis=1)
                allowed &= early == self._least[part][:, None]
            costs = np.where(allowed, self._own.costs[part], NEVER)
            self._best_column[part] = costs.argmin(axis=1)
            self._cheapest[part] = costs.min(axis=1)
        self._stale[:] = False

    def _arrived(self) -> Bools:
        """``[entries]`` whether a pod may leave without having started there."""
        placement, start = self._state.placement, self._state.problem.start
        key, home = (p.cls * self._state.nodes + p.node for p in (placement, start))
        if not len(home):
            return np.ones(len(key), dtype=np.bool_)
        at = np.minimum(np.searchsorted(home, key), len(home) - 1)
        arrived: Bools = placement.count > np.where(home[at] == key, start.count[at], 0)
        return arrived

    def _improves(self, c: int, source: int, target: int) -> bool:
        """Whether a move improves the tiers up to this one lexicographically, the most leavers of a group included."""
        changes = [*self._earlier.changes(c, source, target), *self._own.changes(c, source, target)]
        if self._peaks:
            problem, before = self._state.problem, self._state.placement
            after = before.with_pod_moved(c, source, target)
            for tier, weight, term in self._peaks:
                changes[tier] += weight * (cost(term, problem, after, 0) - cost(term, problem, before, 0))
        return next((change < 0 for change in changes if change), False)

    def make(self, c: int, source: int, target: int) -> None:
        """Move a pod, in the state and in the tables."""
        self._state.shift(c, source, target)
        self._banned[c] = False
        self._stale[c] = True
        columns = [int(column) for column in self._column[[source, target]] if column >= 0]
        for terms in (self._own, self._earlier):
            terms.shift(c, source, target)
            self._stale[terms.update(c, (source, target), columns)] = True
        for column in columns:
            self._fits[:, column] = self._state.fits(self._classes, self._targets[[column]])[:, 0]
            allowed = self._fits[:, column] & ~self._banned[:, column]
            cheaper = self._own.costs[:, column] < self._cheapest
            if self._earlier.any:
                early = self._earlier.costs[:, column]
                cheaper = (early < self._least) | ((early == self._least) & cheaper)
            self._stale |= (allowed & cheaper) | (self._best_column == column)


class _Terms:
    """Marginal costs of some tiers, added up."""

    def __init__(self, state: State, tiers: Sequence[int]) -> None:
        self._state = state
        problem = state.problem
        self.local: list[Marginal] = []
        self.relational: list[Marginal] = []
        self._tier_of: dict[int, int] = {}
        self._tiers = len(tiers)
        for t, tier in enumerate(tiers):
            local, relational = marginals(problem, problem.tiers[tier], state.placement)
            self.local += local
            self.relational += relational
            self._tier_of |= {id(term): t for term in (*local, *relational)}
        self.any = bool(self.local or self.relational)
        self._of: dict[int, list[Marginal]] = {}
        for term in self.relational:
            for c in [] if term.classes is None else term.classes.tolist():
                self._of.setdefault(c, []).append(term)
        self.costs = np.zeros((0, 0), dtype=np.int64)

    def tabulate(self, classes: Ints, targets: Ints) -> None:
        """Compute ``costs``, ``[c, t]`` what one more pod of a class costs on a target, and ``saved``.

        ``saved[e]`` is what one pod less in an entry of the placement saves.
        """
        self._classes, self._targets = classes, targets
        self.saved = np.zeros(len(self._state.placement.cls), dtype=np.int64)
        if not self.any:
            return
        self.costs = self._local_rises(classes, targets)
        self._relational = np.zeros_like(self.costs) if self._of else None
        for c in self._of:
            self._relate(c)
        self._keys = self._entry_keys()
        self._save(np.arange(len(self._keys)))

    def rises(self, classes: Ints, nodes: Ints) -> Ints:
        """``[c, n]`` what one more pod of a class costs on a node."""
        rises = self._local_rises(classes, nodes)
        for row, c in enumerate(classes.tolist()):
            if c in self._of:
                rises[row] += self._relational_rise(c, nodes)
        return rises

    def _local_rises(self, classes: Ints, nodes: Ints) -> Ints:
        # In parts, so that what is computed on the way stays small beside the table.
        parts = np.array_split(classes, 1 + len(classes) * len(nodes) // PART)
        return np.concatenate([total_rise(self.local, part[:, None], nodes, 1) for part in parts])

    def _relational_rise(self, c: int, nodes: Ints) -> Ints:
        rise: Ints = total_rise(self._of[c], np.array([[c]]), nodes, 1)[0]
        return rise

    def _relate(self, c: int) -> None:
        """Update what one more pod of a class costs the relational terms."""
        if self._relational is not None:
            rise = self._relational_rise(c, self._targets)
            self.costs[c] += rise - self._relational[c]
            self._relational[c] = rise

    def _entry_keys(self) -> Ints:
        placement = self._state.placement
        keys: Ints = placement.cls * self._state.nodes + placement.node
        return keys

    def _save(self, entries: Ints) -> None:
        placement = self._state.placement
        cls, node = placement.cls[entries], placement.node[entries]
        self.saved[entries] = -total_rise(self.local, cls, node, -1)
        if self._of:
            for c in np.unique(cls).tolist():
                if c in self._of:
                    here = cls == c
                    rise = total_rise(self._of[c], np.array([[c]]), node[here], -1)[0]
                    self.saved[entries[here]] -= rise

    def changes(self, c: int, source: int, target: int) -> list[int]:
        """Return the change of each tier if a pod of a class comes from one node to another."""
        cls, total = np.array([c]), [0] * self._tiers
        terms = [*self.local, *self._of.get(c, [])]
        for term in terms:
            total[self._tier_of[id(term)]] += int(term.rise(cls, np.array([source]), -1)[0])
            # Relational terms may count both nodes in one domain: the pod arrives where it is missing already.
            term.shift(c, source, -1)
            total[self._tier_of[id(term)]] += int(term.rise(cls, np.array([target]), 1)[0])
            term.shift(c, source, 1)
        return total

    def shift(self, c: int, source: int, target: int) -> None:
        """Let a pod of a class come from one node to another."""
        for term in [*self.local, *self._of.get(c, [])]:
            term.shift(c, source, -1)
            term.shift(c, target, 1)

    def update(self, c: int, nodes: tuple[int, int], columns: list[int]) -> Ints:
        """Update the tables after a pod of a class has moved between two nodes; return the rows that are new."""
        related = {member for term in self._of.get(c, []) for member in _members(term)}
        rows = np.array(sorted(related), dtype=np.int64)
        placement = self._state.placement
        if not self.any:
            self.saved = np.zeros(len(placement.cls), dtype=np.int64)
            return rows
        for row in rows.tolist():
            self._relate(row)
        if columns:
            touched = self._targets[columns]
            self.costs[:, columns] = total_rise(self.local, self._classes[:, None], touched, 1)
            if self._relational is not None:
                self.costs[:, columns] += self._relational[:, columns]
        keys, before = self._entry_keys(), self.saved
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        self.saved = before[at]
        self._keys = keys
        new = (placement.node == nodes[0]) | (placement.node == nodes[1]) | np.isin(placement.cls, rows)
        self._save(np.flatnonzero(new))
        return rows


def _members(term: Marginal) -> list[int]:
    return [] if term.classes is None else term.classes.tolist()
