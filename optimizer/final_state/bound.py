"""A Lagrangian bound of a tier with a cost of the final state.

The cost's relaxation charges each pod for its node, and for the pods beside it. With multipliers on the number of pods
of each class, on the capacities, and on the number of moves, the problem falls apart into nodes (`pricing`). Convex
curves of loads are replaced by tangents, whose slopes are multipliers too.

Steps of the subgradient method come first (`ascent`). What they leave, a linear program over the patterns found so far
closes where it is small: it proposes multipliers, each tried only a part of the way from the best ones (P. Wentges,
"Weighted Dantzig-Wolfe decomposition for linear mixed integer programming", 1997).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

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
from stowplan.optimizer.final_state.ascent import Ascent, Minimum, Multipliers
from stowplan.optimizer.final_state.master import Load, PatternMaster
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.final_state.pod_costs import convex_curves, pod_costs, rooms, turned
from stowplan.optimizer.final_state.pricing import NodePricing, most_pods
from stowplan.optimizer.final_state.tangents import Tangents

SAFETY = 1e-9
"""Share of the sum of all amounts by which a bound is lowered, against rounding."""

FAR_TURNED, LEAST_TURN = 0.5, 1e-6
"""How far counts as far for a node to be turned, and how far one must be for another program over patterns."""

FIRST_PRICE, NEXT_PRICE = 0.5, 1.5
"""The first price of a scarce capacity that is tried, in what pods are worth on average, and how the next ones grow."""


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
    kernels
        Whether compiled code is used.
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
        *,
        kernels: bool = True,
    ) -> None:
        self._problem, self._parameters, self._value = problem, parameters, value
        classes, nodes = problem.shape
        self._upper = np.minimum(upper, problem.size[:, None]).astype(np.int64)
        self._start = problem.start.table(classes, nodes)
        costs = pod_costs(problem, tier, parts)
        self.table, self._missing, self._move = costs.table, costs.missing, costs.move
        self._crowding = sum((p.crowding for p in parts if p.crowding is not None), np.zeros((classes, nodes)))
        self._held = sum((p.held for p in parts if p.held is not None), np.zeros(nodes))
        self._turned = turned(parts)
        self._resting = sum((p.resting for p in parts if p.resting is not None), np.zeros(classes))
        # What is of no use here counts as 0, which no term is below.
        self._tangents = [Tangents.of(weight, term, incumbent) for weight, term in convex_curves(tier)]
        now = incumbent.table(classes, nodes)
        self._limit = problem.move_limit
        capacities = list(rooms(problem))
        self._demands = np.array([demand for demand, _ in capacities], dtype=np.float64).reshape(-1, classes)
        self._free = np.array([room for _, room in capacities], dtype=np.float64).reshape(-1, nodes)
        self._pricing = NodePricing(
            self._upper,
            self._start,
            self.table + self._held,
            self._crowding,
            self._turned,
            most_pods(self._upper, self._demands, self._free),
            self._demands,
            [t.term.demand for t in self._tangents],
            kernels=kernels,
        )
        self._now = now
        self._price = self._worth()
        self._prices_of_room = np.zeros_like(self._free)
        self._price_of_moves, self._saved, self._turn = 0.0, np.zeros(classes), np.zeros(nodes)
        self._best, self._kept = -math.inf, self._multipliers()

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

    def _begin(self) -> None:
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
        self._add(self._now)
        for t, tangents in enumerate(self._tangents):
            load = (tangents.term.demand @ self._now + tangents.term.held).astype(np.int64)
            self._add_loads(t, load.astype(np.float64), tangents.at(load))

    # -- the dual -----------------------------------------------------------------------------------------------

    def solve(self, deadline: Deadline) -> float:
        """Raise the bound until time is up, or it does not rise any more."""
        chosen = self._parameters
        programmed = chosen.programmed(math.prod(self._problem.shape), deadline)
        left = chosen.steps(math.prod(self._problem.shape), deadline)
        # What a pattern costs is known once it is known how far nodes are turned.
        keeping = programmed and self._turned is None
        if keeping:
            self._begin()
        many = min(left, self._steps_in_time(deadline)) >= chosen.many_steps
        left -= self._begin_near(deadline, chosen.probed if many else 0)
        rate = chosen.rate if many else chosen.rate / 2
        while rate >= chosen.finest_rate and left > 0 and not self._ends(deadline):
            left -= self._climb(deadline, rate, left, keeping=keeping)
            rate /= 2
        if programmed and not self._ends(deadline):
            self._generate(deadline)
            turn = self._kept.turn
            if self._turned is not None and left > 0 and not self._ends(deadline):
                self._climb(deadline, chosen.rate / 2, left)
                if not self._ends(deadline) and np.abs(self._kept.turn - turn).max() > LEAST_TURN:
                    self._generate(deadline)
        return self._best

    def _steps_in_time(self, deadline: Deadline) -> float:
        """Return about how many steps there is time for."""
        began = time.monotonic()
        self._take(self._evaluate().value)
        return math.inf if deadline.deterministic else deadline.remaining / max(1e-6, time.monotonic() - began)

    def _ends(self, deadline: Deadline) -> bool:
        """Whether time is up, or the incumbent is proven to be the best."""
        return deadline.over or self._best >= self._value

    def _begin_near(self, deadline: Deadline, steps: int) -> int:
        """Begin with the tangents at the incumbent's loads, or with flat ones, if these lead further; return the steps.

        Where loads are far from even, tangents at them overrate what a pod could cost or save by far. Flat ones count
        curves for what they cost at least, and the bound is that of everything else; but where loads are nearly even,
        the way from there is long.

        Parameters
        ----------
        steps
            To go from each of them.
        """
        self._begin_at_slopes(deadline)
        if not self._tangents or self._ends(deadline):
            return 0
        rate = self._parameters.rate
        made = self._climb(deadline, rate, steps)
        near = self._best, self._kept
        for tangents in self._tangents:
            tangents.turn(0.0)
        self._price, self._price_of_moves = self._worth(), 0.0
        self._prices_of_room, self._saved = np.zeros_like(self._free), np.zeros_like(self._saved)
        self._turn = np.zeros_like(self._turn)
        self._best = -math.inf
        self._take(self._evaluate().value)
        self._begin_at_slopes(deadline)
        made += self._climb(deadline, rate, steps)
        if near[0] > self._best:
            self._best, self._kept = near
        return made

    def _begin_at_slopes(self, deadline: Deadline) -> None:
        """Price pods, moves, and capacities on a few lines from where slopes are."""
        self._scale_prices(deadline)
        self._price_rest()
        self._price_scarce(deadline)

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
                    tried[near] = self._evaluate().value
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
        if not self._take(self._evaluate().value):
            self._set(self._kept)

    def _take(self, dual: float) -> bool:
        """Keep the multipliers if their bound is the best so far; return whether it is."""
        if not dual > self._best + 1e-7 * abs(dual):
            return False
        self._best, self._kept = dual, self._multipliers()
        return True

    def _price_scarce(self, deadline: Deadline) -> None:
        """Price capacities that not all pods fit in, on all nodes alike, and pods by their demand, as far as it pays.

        Steps of the subgradient method take long to come that far: each pod's price is one by itself.
        """
        self._set(self._kept)
        size = self._problem.size
        for row, (demand, free) in enumerate(zip(self._demands, self._free, strict=True)):
            if demand @ size <= free.sum():
                continue
            from_here = self._kept
            each = FIRST_PRICE * self._unit_of_price() / float(demand[demand > 0].mean())
            while not deadline.over:
                room = from_here.room.copy()
                room[row] += each
                self._set(replace(from_here, price=from_here.price + each * demand, room=room))
                if not self._take(self._evaluate().value):
                    break
                each *= NEXT_PRICE
            self._set(self._kept)

    def _unit_of_price(self) -> float:
        """Return what a pod costs on average, as the incumbent has it, or what it is worth now if that is more."""
        return max(1.0, abs(self._value) / max(1, int(self._problem.size.sum())), float(np.abs(self._price).mean()))

    def _climb(self, deadline: Deadline, rate: float, most: int, *, keeping: bool = False) -> int:
        """Make steps of the subgradient method from the best multipliers on, as long as they raise the bound.

        Parameters
        ----------
        rate
            Length of the first step, in what pods are worth.
        most
            Steps after which to end.
        keeping
            Whether patterns are kept for the master.

        Returns
        -------
        steps
            How many there were.
        """
        self._set(self._kept)
        chosen, price = self._parameters, self._unit_of_price()
        room = price / np.maximum(1.0, self._demands.mean(axis=1))[:, None]
        curves = [price / max(1.0, float(tangents.term.demand.mean())) for tangents in self._tangents]
        ascent = Ascent([price, room, price, *curves, price, FAR_TURNED], rate, chosen.memory)
        before, risen, kept_at = self._best, 0, -chosen.patience
        for step in range(most):
            found = self._evaluate()
            if self._take(found.value):
                risen = step
                if keeping and step >= kept_at + chosen.kept_every:
                    self._add(found.pods)
                    kept_at = step
            if self._ends(deadline) or step >= risen + chosen.in_vain_steps:
                return step + 1
            if (step + 1) % chosen.patience == 0:
                if self._best - before <= chosen.least_rise * (self._value - self._best):
                    return step + 1
                before = self._best
            self._set(ascent.step(self._multipliers(), self._subgradient(found)))
        return most

    def _generate(self, deadline: Deadline) -> None:
        """Generate patterns at multipliers between the best ones and those of the master."""
        chosen = self._parameters
        if self._turned is not None:
            self._set(self._kept)
            self._begin()
        limit = chosen.most_rounds
        if deadline.deterministic:
            limit = min(limit, int(chosen.rounds * deadline.seconds))
        share = chosen.toward_master
        for _ in range(limit):
            proposed = self._master.solve(None if deadline.deterministic else deadline.remaining)
            if proposed is None or self._ends(deadline):
                return
            self._set(self._kept.toward(replace(proposed, turn=self._kept.turn), share))
            found = self._evaluate()
            better, new = self._take(found.value), self._add(found.pods)
            if not new and share == 1.0:
                return  # nothing has a reduced cost: the master's value is the best bound there is
            # Where nothing new shows up on the way, look at the master's own multipliers.
            share = chosen.toward_master if new or better else 1.0

    def _add(self, chosen: Ints) -> bool:
        """Add the pods ``[c, n]`` of nodes, and the loads at which tangents touch; return whether any are new."""
        new = False
        stay = np.minimum(self._start, chosen)
        pods = chosen.sum(axis=0)
        cost = (self.table * chosen).sum(axis=0) - self._move @ stay
        cost += _beside(chosen, self._crowding, self._held)
        cost += self._turn * self._by_turning(chosen)
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
            self._price.copy(),
            self._prices_of_room.copy(),
            self._price_of_moves,
            slopes,
            self._saved.copy(),
            self._turn.copy(),
        )

    def _by_turning(self, pods: Ints) -> Floats:
        """``[n]`` what is added if what is said of a node is turned."""
        return np.zeros(pods.shape[1]) if self._turned is None else _beside(pods, *self._turned)

    def _set(self, point: Multipliers) -> None:
        self._price = point.price.copy()
        self._price_of_moves = 0.0 if self._limit is None else max(0.0, point.moves)
        self._prices_of_room = np.maximum(0.0, point.room)
        self._saved = np.clip(point.resting, 0.0, self._resting)
        self._turn = np.clip(point.turn, 0.0, 1.0)
        for tangents, slope in zip(self._tangents, point.slopes, strict=True):
            tangents.turn(slope)

    def _evaluate(self) -> Minimum:
        """Return the minimum at the multipliers as they are."""
        problem = self._problem
        move = self._move + self._price_of_moves
        # Where a move saved more than it costs, pods would leave their node for itself.
        saved = np.minimum(self._saved, move)
        move = move - saved
        constant = float((self._start * move[:, None]).sum() - (self._prices_of_room * self._free).sum() + saved.sum())
        if self._limit is not None:
            constant -= self._price_of_moves * self._limit
        loads = []
        for tangents in self._tangents:
            touching, lowest = tangents.values()
            loads.append(touching)
            constant += float((lowest + tangents.slope * tangents.term.held).sum())
        gain = self._missing - self._price
        without = np.where(gain < 0, problem.optional, 0)
        dual = float(constant + (self._price * problem.size).sum() + (gain * without).sum())
        slopes = [t.slope for t in self._tangents]
        least, chosen = self._pricing.cheapest(self._price, move, self._prices_of_room, slopes, self._turn)
        dual += float(least.sum())
        amounts = abs(constant) + float(np.abs(self._price * problem.size).sum() + np.abs(least).sum())
        return Minimum(dual - SAFETY * amounts, chosen, without.astype(np.float64), loads)

    def _subgradient(self, found: Minimum) -> Multipliers:
        """Return how far the minimum is from what the constraints say; nothing where a multiplier cannot follow."""
        chosen = found.pods
        over = self._demands @ chosen - self._free
        over[(over < 0) & (self._prices_of_room <= 0)] = 0.0
        left = np.maximum(0, self._start - chosen).sum(axis=1)
        resting = np.where(self._resting > 0, 1.0 - left, 0.0)
        resting[(resting < 0) & (self._saved <= 0) | (resting > 0) & (self._saved >= self._resting)] = 0.0
        beyond = 0.0 if self._limit is None else float(left.sum() - self._limit)
        bends = []
        for tangents, point in zip(self._tangents, found.loads, strict=True):
            load = tangents.term.held + tangents.term.demand @ chosen
            bends.append(np.where(tangents.term.curve >= 0, load - point, 0.0))
        turn = self._by_turning(chosen)
        turn[(turn < 0) & (self._turn <= 0) | (turn > 0) & (self._turn >= 1)] = 0.0
        lacking = self._problem.size - found.without - chosen.sum(axis=1)
        return Multipliers(
            lacking, over, max(beyond, 0.0) if self._price_of_moves <= 0 else beyond, tuple(bends), resting, turn
        )


def _beside(pods: Ints, crowding: Floats, held: Floats) -> Floats:
    """``[n]`` what the pods ``[c, n]`` of nodes cost each other; see `Part`."""
    cost: Floats = pods.sum(axis=0) * (held + (crowding * pods).sum(axis=0))
    return cost


def whole(bound: float, value: int, step: int) -> int:
    """Return a bound as a whole number: the least multiple of ``step``, which all values are, that is not below it."""
    if not math.isfinite(bound):
        return 0
    return max(0, min(value, -int(-bound // step) * step if step > 1 else math.ceil(bound)))
