"""A Lagrangian bound of a tier with a cost of the final state.

The cost's relaxation charges each pod for its node, and for the pods beside it. With multipliers on the number of pods
of each class, on the capacities, and on the number of moves, the problem falls apart into nodes. For a given number
``k`` of pods on a node, its cost is linear in the pods, so the ``k`` cheapest are best; all ``k`` are tried. Convex
curves of loads are replaced by tangents, whose slopes are multipliers too.

Subgradient steps come first. They are cheap, but get stuck where multipliers of several kinds matter, such as the
prices of pods and the slopes of curves. Then a linear program over the patterns found so far proposes multipliers, each
tried only a part of the way from the best ones (P. Wentges, "Weighted Dantzig-Wolfe decomposition for linear mixed
integer programming", 1997).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import (
    Part,
    Placement,
    Problem,
    Tier,
)
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.final_state.master import Load, Multipliers, PatternMaster
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.pod_costs import convex_curves, pod_costs, rooms
from stowplan.optimizer.final_state.tangents import Tangents

SAFETY = 1e-9
"""Share of the sum of all amounts by which a bound is lowered, against rounding."""


class FinalStateBound:
    """The Lagrangian dual of a tier.

    Parameters
    ----------
    upper
        ``[c, n]`` the most pods of each class that a node can hold.
    incumbent
        A legal placement; multipliers begin with what pods cost there.
    value
        Its value in the tier.
    """

    def __init__(
        self,
        problem: Problem,
        tier: Tier,
        parts: Sequence[Part],
        upper: NDArray[np.int32],
        incumbent: Placement,
        value: int,
        parameters: FinalStateParameters,
    ) -> None:
        self._problem, self._parameters, self._value = problem, parameters, value
        classes, nodes = problem.shape
        self._upper = np.minimum(upper, problem.size[:, None]).astype(np.int64)
        self._start = problem.start.table(classes, nodes)
        costs = pod_costs(problem, tier, parts)
        self.table, self._missing, self._move = costs.table, costs.missing, costs.move
        self._crowding = sum((p.crowding for p in parts if p.crowding is not None), np.zeros((classes, nodes)))
        self._held = sum((p.held for p in parts if p.held is not None), np.zeros(nodes))
        self._resting = sum((p.resting for p in parts if p.resting is not None), np.zeros(classes))
        # What is of no use here counts as 0, which no term is below.
        self._tangents = [Tangents.of(weight, term, incumbent) for weight, term in convex_curves(tier)]
        now = incumbent.table(classes, nodes)
        self._limit = problem.move_limit
        capacities = list(rooms(problem))
        self._demands = np.array([demand for demand, _ in capacities], dtype=np.float64).reshape(-1, classes)
        self._free = np.array([room for _, room in capacities], dtype=np.float64).reshape(-1, nodes)
        self._most = self._most_pods()
        self._kinds = [self._kinds_on(n) for n in range(nodes)]
        self._now = now
        self._price = self._worth()
        self._prices_of_room = np.zeros_like(self._free)
        self._price_of_moves, self._saved = 0.0, np.zeros(classes)
        self._best, self._kept = -math.inf, self._multipliers()
        self._begin(now)

    def _worth(self) -> Floats:
        """``[c]`` what a pod of each class costs where the incumbent has it, at the slopes as they are."""
        classes, nodes = self._problem.shape
        now = self._now
        pods = now.sum(axis=0)
        beside = (self._crowding * now).sum(axis=0)
        marginal = (
            self.table
            + self._held
            + beside
            + self._crowding * pods
            + sum((t.term.demand[:, None] * t.slope for t in self._tangents), np.zeros((classes, nodes)))
        )
        placed = now.sum(axis=1)
        mean = (marginal * now).sum(axis=1) / np.maximum(placed, 1)
        open_to = np.where(self._upper > 0, marginal, np.inf).min(axis=1, initial=np.inf)
        price: Floats = np.where(placed > 0, mean, np.where(np.isfinite(open_to), open_to, 0.0))
        return price

    def _begin(self, now: Ints) -> None:
        """Make the master with the incumbent's patterns and loads, so that it has a solution."""
        problem = self._problem
        loads = [
            Load(t.term.demand.astype(np.float64), t.term.held.astype(np.float64), t.term.curve >= 0)
            for t in self._tangents
        ]
        kept = None if self._limit is None else float(self._start.sum() - self._limit)
        self._master = PatternMaster(
            problem.size,
            problem.optional,
            self._missing,
            self._demands,
            self._free,
            loads,
            kept,
            float(self._value),
            self._resting,
            self._start.sum(axis=1),
        )
        self._add(now)
        for t, tangents in enumerate(self._tangents):
            load = (tangents.term.demand @ now + tangents.term.held).astype(np.int64)
            self._add_loads(t, load.astype(np.float64), tangents.at(load))

    def _kinds_on(self, n: int) -> tuple[Ints, Ints, Floats, int]:
        """Return a node's classes, those that start there first; pods of each; their crowding; how many start there."""
        stay = np.minimum(self._start[:, n], self._upper[:, n])
        more = self._upper[:, n] - stay
        stayers, others = np.flatnonzero(stay), np.flatnonzero(more)
        cls = np.concatenate([stayers, others])
        return cls, np.concatenate([stay[stayers], more[others]]), self._crowding[cls, n], len(stayers)

    def _most_pods(self) -> Ints:
        """``[n]`` the most pods that a node can hold, by each capacity alone."""
        classes, nodes = self._problem.shape
        most: Ints = self._upper.sum(axis=0)
        for demand, free in zip(self._demands, self._free, strict=True):
            order = np.argsort(demand, kind="stable")
            for n in range(nodes):
                copies = self._upper[order, n]
                total = np.cumsum(copies * demand[order])
                full = int(np.searchsorted(total, free[n], side="right"))
                fit = int(copies[:full].sum())
                if full < classes and demand[order[full]] > 0:
                    before = float(total[full - 1]) if full else 0.0
                    fit += int((free[n] - before) // demand[order[full]])
                most[n] = min(most[n], fit)
        return most

    # -- the dual -----------------------------------------------------------------------------------------------

    def solve(self, deadline: Deadline) -> float:
        """Raise the bound until time is up, or it does not rise any more."""
        chosen = self._parameters
        self._choose_slopes(deadline)
        if chosen.programmed(math.prod(self._problem.shape), deadline):
            self._climb(deadline, chosen.first_steps)
            if self._generate(deadline):
                return self._best
            self._set(self._kept)
        self._climb(deadline, chosen.most_steps)
        return self._best

    def _choose_slopes(self, deadline: Deadline) -> None:
        """Begin with the tangents at the incumbent's loads, or with those at the lowest points, if these prove more.

        Where loads are far from even, tangents at them overrate what a pod could cost or save by far. At the lowest
        points, curves count for what they cost at least, and the bound is that of everything else.
        """
        self._take(self._evaluate()[0])
        self._scale_prices(deadline)
        self._price_rest()
        if self._tangents and not deadline.stop.is_set():
            for tangents in self._tangents:
                tangents.slope = self._clipped(tangents, np.zeros_like(tangents.slope))
            self._price = self._worth()
            self._take(self._evaluate()[0])
            self._scale_prices(deadline)
            self._set(self._kept)

    def _scale_prices(self, deadline: Deadline) -> None:
        """Try shares of the prices as they are, halving the way to the next share.

        Pods that cost each other something are worth less than what they cost where they are: a node that is worth
        filling at all would be filled to the last.
        """
        prices, best, step = self._price, -math.inf, 0.25
        share = 2 * step
        tried: dict[float, float] = {}
        while step >= self._parameters.finest_share:
            for near in (share, share - step, share + step):
                if near not in tried:
                    if deadline.over:
                        return
                    self._price = near * prices
                    tried[near] = self._evaluate()[0]
                    self._take(tried[near])
            best, share = max((dual, near) for near, dual in tried.items())
            step /= 2
        if best < self._best:
            self._set(self._kept)
        else:
            self._price = share * prices

    def _price_rest(self) -> None:
        """Price moves at what one saves of the cost of resting, where that proves more: all that few moves leave."""
        if self._limit is None or not self._resting.any():
            return
        spared = np.sort(self._resting)[::-1]
        self._price_of_moves = float(spared[min(self._limit, len(spared) - 1)])
        self._saved = self._resting.copy()
        if not self._take(self._evaluate()[0]):
            self._set(self._kept)

    def _take(self, dual: float) -> bool:
        """Keep the multipliers if their bound is the best so far; return whether it is."""
        if dual <= self._best + 1e-7 * abs(dual):
            return False
        self._best, self._kept = dual, self._multipliers()
        return True

    def _climb(self, deadline: Deadline, limit: int) -> None:
        """Make steps of the subgradient method, at most so many."""
        if deadline.deterministic:
            limit = min(limit, max(5, int(self._parameters.iterations * deadline.seconds)))
        factor, failed = 1.0, 0
        for _ in range(limit):
            dual, chosen, pods_of = self._evaluate()
            if self._take(dual):
                failed = 0
                self._add(chosen)
            else:
                failed += 1
                if failed >= 8:
                    factor, failed = factor / 2, 0
                    self._set(self._kept)
                    if factor < 1e-3:
                        break
                    continue
            if deadline.over or self._best >= self._value:
                break
            self._step(dual, chosen, pods_of, factor)

    def _generate(self, deadline: Deadline) -> bool:
        """Generate patterns at multipliers between the best ones and those of the master.

        Returns
        -------
        done
            Whether there is nothing left to be gained, or no time.
        """
        chosen = self._parameters
        limit = chosen.most_steps
        if deadline.deterministic:
            limit = min(limit, int(chosen.rounds * deadline.seconds))
        share = chosen.toward_master
        for _ in range(limit):
            proposed = self._master.solve(None if deadline.deterministic else deadline.remaining)
            if deadline.over or self._best >= self._value:
                return True
            if proposed is None:
                return False
            self._set(self._kept.toward(proposed, share))
            dual, pods, _ = self._evaluate()
            better, new = self._take(dual), self._add(pods)
            if not new and share == 1.0:
                return True  # nothing has a reduced cost: the master's value is the best bound there is
            # Where nothing new shows up on the way, look at the master's own multipliers.
            share = chosen.toward_master if new or better else 1.0
        return deadline.deterministic

    def _add(self, chosen: Ints) -> bool:
        """Add the pods ``[c, n]`` of nodes, and the loads at which tangents touch; return whether any are new."""
        new = False
        stay = np.minimum(self._start, chosen)
        pods = chosen.sum(axis=0)
        cost = (self.table * chosen).sum(axis=0) - self._move @ stay
        cost += pods * (self._held + (self._crowding * chosen).sum(axis=0))
        for n in np.flatnonzero(pods).tolist():
            new |= self._master.add_pattern(n, np.ascontiguousarray(chosen[:, n]), cost[n], stay[:, n])
        for t, tangents in enumerate(self._tangents):
            point, lowest = tangents.values()
            new |= self._add_loads(t, point, lowest + tangents.slope * point)
        return new

    def _add_loads(self, curve: int, load: Floats, cost: Floats) -> bool:
        """Add a load of each node of a curve."""
        new = False
        for n in np.flatnonzero(self._tangents[curve].term.curve >= 0).tolist():
            new |= self._master.add_load(curve, n, float(load[n]), float(cost[n]))
        return new

    def _multipliers(self) -> Multipliers:
        slopes = tuple(t.slope.copy() for t in self._tangents)
        return Multipliers(
            self._price.copy(), self._prices_of_room.copy(), self._price_of_moves, slopes, self._saved.copy()
        )

    def _set(self, point: Multipliers) -> None:
        self._price, self._prices_of_room, self._price_of_moves = point.price.copy(), point.room.copy(), point.moves
        self._saved = np.clip(point.resting, 0.0, self._resting)
        for tangents, slope in zip(self._tangents, point.slopes, strict=True):
            tangents.slope = self._clipped(tangents, slope)

    def _evaluate(self) -> tuple[float, Ints, Floats]:
        """Return the dual, and ``[c, n]`` the pods of the minimum, and ``[c]`` those without a node."""
        problem = self._problem
        classes, nodes = problem.shape
        move = self._move + self._price_of_moves
        # Where a move saved more than it costs, pods would leave their node for itself.
        saved = np.minimum(self._saved, move)
        move = move - saved
        cost = self.table - self._price[:, None] + self._demands.T @ self._prices_of_room
        constant = float((self._start * move[:, None]).sum() - (self._prices_of_room * self._free).sum() + saved.sum())
        if self._limit is not None:
            constant -= self._price_of_moves * self._limit
        for tangents in self._tangents:
            _, lowest = tangents.values()
            cost += tangents.term.demand[:, None] * tangents.slope
            constant += float((lowest + tangents.slope * tangents.term.held).sum())
        gain = self._missing - self._price
        without = np.where(gain < 0, problem.optional, 0)
        dual = float(constant + (self._price * problem.size).sum() + (gain * without).sum())
        amounts = abs(constant) + float(np.abs(self._price * problem.size).sum())
        chosen = np.zeros((classes, nodes), dtype=np.int64)
        for n, of_node in enumerate(np.ascontiguousarray(cost.T)):
            least, pods = self._node(n, of_node, move)
            dual += least
            amounts += abs(least)
            chosen[:, n] = pods
        return dual - SAFETY * amounts, chosen, without.astype(np.float64)

    def _node(self, n: int, cost: Floats, move: Floats) -> tuple[float, Ints]:
        """Return the least cost of a node and its pods: of each number of pods, the cheapest ones."""
        cls, copies, crowding, staying = self._kinds[n]
        single = cost[cls] + self._held[n]
        single[:staying] -= move[cls[:staying]]
        selfless = crowding.min(initial=0.0) >= 0
        if selfless:
            # A pod that costs something even alone is no part of a minimum: without it, all others cost no more.
            worth = single + crowding < 0
            cls, copies, single, crowding = cls[worth], copies[worth], single[worth], crowding[worth]
        number = np.arange(1, min(int(self._most[n]), int(copies.sum())) + 1)
        if selfless:
            number = _gaining(number, copies, single, crowding)
        if not len(number) or not len(cls):
            return 0.0, np.zeros(len(cost), dtype=np.int64)
        prices = single + number[:, None] * crowding
        # The cheapest k pods are among the cheapest k kinds of pods.
        few = min(len(cls), len(number))
        nearest = np.argpartition(prices, few - 1, axis=1)[:, :few]
        sorting = np.argsort(np.take_along_axis(prices, nearest, axis=1), axis=1)
        order = np.take_along_axis(nearest, sorting, axis=1)
        ordered = np.take_along_axis(prices, order, axis=1)
        taken = np.minimum(np.cumsum(copies[order], axis=1), number[:, None])
        taken = np.diff(taken, axis=1, prepend=0)
        total = (ordered * taken).sum(axis=1)
        total[taken.sum(axis=1) < number] = np.inf
        best = int(total.argmin())
        pods = np.zeros(len(cost), dtype=np.int64)
        if total[best] >= 0:
            return 0.0, pods
        np.add.at(pods, cls[order[best]], taken[best])
        return float(total[best]), pods

    def _step(self, dual: float, chosen: Ints, without: Floats, factor: float) -> None:
        """Move the multipliers along the subgradient, as far as Polyak's rule says."""
        problem = self._problem
        lacking = problem.size - without - chosen.sum(axis=1)
        over = self._demands @ chosen - self._free
        over[(over < 0) & (self._prices_of_room <= 0)] = 0.0
        left = np.maximum(0, self._start - chosen).sum(axis=1)
        resting = np.where(self._resting > 0, 1.0 - left, 0.0)
        beyond = float(left.sum() - self._limit) if self._limit is not None else 0.0
        if beyond < 0 and self._price_of_moves <= 0:
            beyond = 0.0
        # Multipliers have units of their own; each group is scaled to what its constraint amounts to.
        unit = np.maximum(1.0, self._free.max(axis=1, initial=1.0))[:, None]
        scaled = over / unit
        bends = []
        for tangents in self._tangents:
            load = tangents.term.held + (tangents.term.demand[:, None] * chosen).sum(axis=0)
            point, _ = tangents.values()
            bend = np.where(tangents.term.curve >= 0, load - point, 0.0)
            size = max(1.0, float(np.abs(tangents.term.held).max(initial=1.0)), float(load.max(initial=1.0)))
            bends.append((bend, size))
        resting[(resting < 0) & (self._saved <= 0) | (resting > 0) & (self._saved >= self._resting)] = 0.0
        norm = float((lacking**2).sum() + (scaled**2).sum() + beyond**2 + sum((b / s) @ (b / s) for b, s in bends))
        norm += float((resting**2).sum())
        if norm <= 0:
            return
        length = factor * max(self._value - dual, 1e-6 * abs(self._value)) / norm
        self._price = self._price + length * lacking
        self._prices_of_room = np.maximum(0.0, self._prices_of_room + length * scaled / unit)
        self._price_of_moves = max(0.0, self._price_of_moves + length * beyond)
        self._saved = np.clip(self._saved + length * resting, 0.0, self._resting)
        for tangents, (bend, size) in zip(self._tangents, bends, strict=True):
            tangents.slope = self._clipped(tangents, tangents.slope + length * bend / size**2)

    def _clipped(self, tangents: Tangents, slope: Floats) -> Floats:
        """Return slopes that the curves have."""
        low, high = np.zeros(len(slope)), np.zeros(len(slope))
        here = tangents.term.curve >= 0
        slopes = tangents.weight * tangents.term.curves.slope[tangents.term.curve[here]]
        low[here], high[here] = slopes.min(axis=1), slopes.max(axis=1)
        return np.clip(slope, low, high)


def _gaining(number: Ints, copies: Ints, single: Floats, crowding: Floats) -> Ints:
    """Return the numbers ``k`` of pods for which ``k`` pods cost less than nothing each beside ``k - 1`` others.

    One that costs something is better left out, so other numbers of pods are no part of a minimum.
    """
    until = np.where(crowding > 0, -single / np.where(crowding > 0, crowding, 1.0), np.inf)
    order = np.argsort(until)
    left = np.concatenate([np.cumsum(copies[order][::-1])[::-1], [0]])
    return number[left[np.searchsorted(until[order], number, side="right")] >= number]


def whole(bound: float, value: int, step: int) -> int:
    """Return a bound as a whole number: the least multiple of ``step``, which all values are, that is not below it."""
    if not math.isfinite(bound):
        return 0
    return max(0, min(value, -int(-bound // step) * step if step > 1 else math.ceil(bound)))
