"""Terms, followed while pods come and go one at a time."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from models.arrays import Ints
from models.problem import (
    FAR,
    Curves,
    DomainCurve,
    Excess,
    Move,
    MovePeak,
    NodeCurve,
    NodeScore,
    Open,
    Pair,
    Prefer,
    Problem,
    Term,
    Unplaced,
)
from optimizer.evaluate.cost import missed_points
from optimizer.evaluate.excess import roles


class Meter:
    """Base of all meters: a term's value, and what one more pod would add to it.

    Attributes
    ----------
    classes
        Classes that the term reads.
    value
        The term's value now.
    """

    def __init__(self, classes: Ints) -> None:
        self.classes = tuple(classes.tolist())
        self.value = 0

    def marginal(self, c: int) -> Ints | None:
        """``[n]`` what one more pod of a class would add on each node, up to a constant; ``None`` means nothing."""
        raise NotImplementedError

    def shift(self, c: int, n: int, k: int) -> None:
        """Take note that ``k`` pods of a class came to a node, or left it."""
        raise NotImplementedError


def measure(term: Term, problem: Problem) -> Meter | None:
    """Return the meter of a term on empty nodes, or ``None`` for excess, which the rules' followers know."""
    match term:
        case Excess():
            return None
        case Unplaced():
            return MeterUnplaced(term, problem)
        case Move():
            return MeterMove(term, problem)
        case MovePeak():
            return MeterMovePeak(term, problem)
        case Prefer():
            return MeterPrefer(term)
        case NodeCurve():
            return MeterNodeCurve(term)
        case DomainCurve():
            return MeterDomainCurve(term)
        case NodeScore():
            return MeterNodeScore(term)
        case Pair():
            return MeterPair(term)
        case Open():
            return MeterOpen(term, problem)
        case _:
            assert_never(term)


class MeterUnplaced(Meter):
    """Pods without a node."""

    def __init__(self, term: Unplaced, problem: Problem) -> None:
        super().__init__(np.flatnonzero(term.cost))
        self.cost = term.cost.tolist()
        self.value = int((term.cost * problem.size).sum())

    def marginal(self, c: int) -> None:
        return None

    def shift(self, c: int, n: int, k: int) -> None:
        self.value -= self.cost[c] * k


class MeterMove(Meter):
    """Pods that left the node they started on."""

    def __init__(self, term: Move, problem: Problem) -> None:
        super().__init__(np.flatnonzero(term.cost))
        self.cost = term.cost.tolist()
        self.nodes = len(problem.nodes)
        self.missing: dict[int, dict[int, int]] = {}
        for c, n, k in problem.start.entries():
            self.missing.setdefault(c, {})[n] = k
            self.value += self.cost[c] * k

    def marginal(self, c: int) -> Ints | None:
        home = [n for n, k in self.missing.get(c, {}).items() if k > 0]
        if not home:
            return None
        extra = np.zeros(self.nodes, dtype=np.int64)
        extra[home] = -self.cost[c]
        return extra

    def shift(self, c: int, n: int, k: int) -> None:
        here = self.missing.get(c)
        if here is not None and n in here:
            now = here[n]
            here[n] = now - k
            self.value += self.cost[c] * (max(0, now - k) - max(0, now))


class MeterMovePeak(Meter):
    """The most pods of one group that left the node they started on."""

    def __init__(self, term: MovePeak, problem: Problem) -> None:
        super().__init__(np.flatnonzero(term.group >= 0))
        self.cost, self.group = term.cost, term.group.tolist()
        self.missing = {(c, n): k for (c, n), k in problem.start.counts().items() if term.group[c] >= 0}
        self.left = np.zeros(int(term.group.max(initial=-1)) + 1, dtype=np.int64)
        for (c, _), k in self.missing.items():
            self.left[self.group[c]] += k
        self.value = self.cost * int(self.left.max(initial=0))

    def marginal(self, c: int) -> None:
        return None

    def shift(self, c: int, n: int, k: int) -> None:
        if (c, n) in self.missing:
            now = self.missing[c, n]
            self.missing[c, n] = now - k
            self.left[self.group[c]] += max(0, now - k) - max(0, now)
            self.value = self.cost * int(self.left.max())


class MeterPrefer(Meter):
    """A table."""

    def __init__(self, term: Prefer) -> None:
        super().__init__(np.arange(len(term.row)))
        self.row = term.row
        self.table = term.table

    def marginal(self, c: int) -> Ints:
        row: Ints = self.table[self.row[c]]
        return row

    def shift(self, c: int, n: int, k: int) -> None:
        self.value += int(self.table[self.row[c], n]) * k


class _Family:
    """Curves, evaluated quickly for all nodes at once."""

    def __init__(self, curves: Curves, curve: Ints) -> None:
        # One sorted array holds the corners of all curves, each curve in a range of its own; padding sits at its end.
        padding = curves.start >= FAR
        self.lowest = int(curves.start.min())
        self.stride = int(np.where(padding, self.lowest, curves.start).max()) - self.lowest + 2
        corners = np.where(padding, self.stride - 1, curves.start - self.lowest)
        corners[:, 0] = 0  # the first piece goes on to the left
        self.corners = (corners + np.arange(len(corners))[:, None] * self.stride).ravel()
        self.slope, self.start, self.height = curves.slope.ravel(), curves.start.ravel(), curves.value.ravel()
        self.offset = curve * self.stride

    def at(self, x: Ints, which: Ints | slice = slice(None)) -> Ints:
        """``[i]`` the value of each curve, or of some of them, at its load."""
        reached = np.clip(x - self.lowest, 0, self.stride - 2)
        piece = np.searchsorted(self.corners, reached + self.offset[which], side="right") - 1
        values: Ints = self.height[piece] + self.slope[piece] * (x - self.start[piece])
        return values


class MeterNodeCurve(Meter):
    """A curve of each node's load."""

    def __init__(self, term: NodeCurve) -> None:
        super().__init__(np.flatnonzero(term.demand))
        self.demand = term.demand.tolist()
        self.load = term.held.copy()
        self.counts = term.curve >= 0
        self.curves, self.curve = term.curves, term.curve
        self.family = _Family(term.curves, np.maximum(term.curve, 0))
        self.here = self._values()
        self.value = int(self.here.sum())

    def _values(self, extra: int = 0) -> Ints:
        values: Ints = np.where(self.counts, self.family.at(self.load + extra), 0)
        return values

    def marginal(self, c: int) -> Ints:
        added: Ints = self._values(self.demand[c]) - self.here
        return added

    def change(self, nodes: Ints, extra: Ints) -> Ints:
        """``[i]`` what ``extra[i]`` more load on ``nodes[i]`` would add."""
        added = self.family.at(self.load[nodes] + extra, nodes) - self.here[nodes]
        values: Ints = np.where(self.counts[nodes], added, 0)
        return values

    def shift(self, c: int, n: int, k: int) -> None:
        self.load[n] += self.demand[c] * k
        if self.counts[n]:
            now = int(self.curves.at(self.curve[n : n + 1], self.load[n : n + 1])[0])
            self.value += now - int(self.here[n])
            self.here[n] = now


class MeterDomainCurve(Meter):
    """A curve of each domain's count."""

    def __init__(self, term: DomainCurve) -> None:
        super().__init__(term.group)
        self.domain = term.topology.domain
        self.inside = self.domain >= 0
        self.count = term.held.copy()
        self.family = _Family(term.curves, np.zeros(len(self.count), dtype=np.int64))
        self.value = int(self.family.at(self.count).sum())

    def marginal(self, c: int) -> Ints:
        added = self.family.at(self.count + 1) - self.family.at(self.count)
        nodes = np.zeros(len(self.domain), dtype=np.int64)
        nodes[self.inside] = added[self.domain[self.inside]]
        return nodes

    def shift(self, c: int, n: int, k: int) -> None:
        d = self.domain[n]
        if d >= 0:
            before = int(self.family.at(self.count)[d])
            self.count[d] += k
            self.value += int(self.family.at(self.count)[d]) - before


class MeterNodeScore(Meter):
    """Missed points, times pods."""

    def __init__(self, term: NodeScore) -> None:
        super().__init__(np.arange(len(term.scored)))
        self.term = term
        self.demand = np.array([load.demand for load in term.loads])
        self.used = np.array([load.held for load in term.loads])
        self.pods = np.zeros(self.used.shape[1], dtype=np.int64)
        self.here = np.zeros_like(self.pods)

    def _cost(self, used: Ints, pods: Ints) -> Ints:
        cost: Ints = self.term.cost * pods * missed_points(self.term, used)
        return cost

    def marginal(self, c: int) -> Ints:
        added: Ints = self._cost(self.used + self.demand[:, c, None], self.pods + self.term.scored[c]) - self.here
        return added

    def shift(self, c: int, n: int, k: int) -> None:
        self.used[:, n] += self.demand[:, c] * k
        self.pods[n] += self.term.scored[c] * k
        now = self._cost(self.used, self.pods)
        self.value += int(now[n] - self.here[n])
        self.here[n] = now[n]


class MeterPair(Meter):
    """Pairs that stand together, or apart."""

    def __init__(self, term: Pair) -> None:
        super().__init__(np.union1d(term.seekers, term.targets))
        self.term = term
        self.domain = term.topology.domain
        self.inside = self.domain >= 0
        self.role: dict[int, int] = {}
        for role, classes in enumerate(roles(term.seekers, term.targets)):
            self.role.update(dict.fromkeys(classes.tolist(), role))
        held = term.held
        self.count = np.array([term.topology.total(h) for h in (held.both, held.seekers, held.targets)])
        self.sign = term.cost if term.together else -term.cost
        a, b, t = self.count
        together = int(((a + b) * (a + t) - a).sum())
        self.value = self.sign * together + (0 if term.together else term.cost * term.pairs)

    def _joined(self, role: int) -> Ints:
        """``[d]`` pairs that one more pod makes in each domain."""
        a, b, t = self.count
        made: Ints = (2 * a + b + t, a + t, a + b)[role]
        return made

    def marginal(self, c: int) -> Ints:
        made = self._joined(self.role[c]) * self.sign
        nodes = np.zeros(len(self.domain), dtype=np.int64)
        nodes[self.inside] = made[self.domain[self.inside]]
        return nodes

    def shift(self, c: int, n: int, k: int) -> None:
        d, role = self.domain[n], self.role[c]
        if d >= 0:
            step = 1 if k > 0 else -1
            for _ in range(abs(k)):
                if step < 0:
                    self.count[role, d] -= 1
                self.value += step * self.sign * int(self._joined(role)[d])
                if step > 0:
                    self.count[role, d] += 1


class MeterOpen(Meter):
    """Nodes in use."""

    def __init__(self, term: Open, problem: Problem) -> None:
        super().__init__(np.arange(len(problem.classes)))
        self.cost = term.cost
        self.count = term.held.copy()
        self.value = int(self.cost[self.count > 0].sum())

    def marginal(self, c: int) -> Ints:
        added: Ints = np.where(self.count == 0, self.cost, 0)
        return added

    def shift(self, c: int, n: int, k: int) -> None:
        before = self.count[n] > 0
        self.count[n] += k
        self.value += int(self.cost[n]) * (int(self.count[n] > 0) - int(before))
