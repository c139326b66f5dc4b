"""Multipliers from the linear relaxation of the node programs, by an interior point method for their structure.

Without integrality, the programs of `stowplan.optimizer.bounds.node_programs` and their linking constraints are one
linear program. Every kind on a node is two *pieces* of constant cost, pods that stay and pods that arrive; every
segment between two breakpoints of a curve is a piece; and so are the unplaced pods of a kind, and the closed fraction
of a node whose opening costs something: it takes up that fraction of each capacity.

    min cost·x    0 ≤ x ≤ length
    Σ_k demand[r,k]·x[m,k] + room[m,r]·closed[m] − Σ_j x[m,r,j] = floor[m,r] − base[m,r]
                                                                     for every row of every node   (load dual)
    Σ_m x[m,k] + unplaced[k] = size[k]                               for every kind                (multiplier)
    moves, unplaced pods and open nodes + slack[e] = most[e]         for every side constraint     (minus a side dual)

This is the predictor–corrector method of Mehrotra (1992). The normal equations have one small block for each node and
a dense border with a row for each kind, so a step costs nodes × kinds², whatever the number of breakpoints.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import FAR
from stowplan.optimizer.bounds.node_programs import Programs
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.threads import one_thread

RIDGE, TINY = 1e-10, 1e-14
"""Relative and absolute addition to the diagonals of the normal equations."""


@dataclass(frozen=True, slots=True)
class Dual:
    """Duals of the linear relaxation, in scaled units.

    Parameters
    ----------
    multipliers
        ``[k]`` of the linking equation of each kind.
    load_duals
        ``[m, r]`` of the loads of each node.
    side_duals
        ``[e]`` of the side constraints.
    """

    multipliers: Floats
    load_duals: Floats
    side_duals: Floats


def linear_dual(programs: Programs, deadline: Deadline, parameters: BoundParameters | None = None) -> Dual:
    """Return an optimal dual of the linear relaxation, or one as good as time allows."""
    parameters = parameters or BoundParameters()
    return RelaxedPrograms(programs, parameters).solve(parameters.closeness[-1], deadline)


class RelaxedPrograms:
    """The linear relaxation, solved step by step: solving can be interrupted and continued."""

    def __init__(self, programs: Programs, parameters: BoundParameters) -> None:
        self.parameters = parameters
        self._method = _Method(programs, parameters.step_share)
        self._steps = 0

    def solve(self, close: float, deadline: Deadline) -> Dual:
        """Continue until the relative gap of primal and dual is ``close``, and return the dual."""
        method = self._method
        with one_thread():
            while self._steps < self.parameters.interior_steps and not deadline.over and method.step(close):
                self._steps += 1
        multipliers, side_duals = method.multipliers[: method.kinds], -method.multipliers[method.kinds :]
        return Dual(
            multipliers * method.highest,
            method.load_duals * method.highest / method.typical,
            np.maximum(0, side_duals) * method.highest / method.unit,
        )


class _Method:
    """The iterate. Loads are in units of typical pods, costs in units of the most expensive pod.

    Every piece belongs to a group ``at``: pods that arrive (node, kind), those that stay (node, kind), rows (node,
    row), unplaced pods of a kind together with the slacks of the side constraints, closed nodes. The pieces of a group
    have the same coefficients. *Links* are the linking constraints: kinds, then side constraints.
    """

    def __init__(self, programs: Programs, step_share: float) -> None:
        self.step_share = step_share
        tables = programs.tables
        self.nodes, self.kinds = tables.upper.shape
        self.rows = len(tables.demand)
        asked = np.abs(tables.demand)
        number = np.maximum(1, ((asked > 0) * programs.size).sum(axis=1))
        self.typical = np.maximum(1.0, (asked * programs.size).sum(axis=1) / number)
        self.demand = tables.demand / self.typical[:, None]
        self.products = (self.demand[:, None, :] * self.demand[None, :, :]).reshape(self.rows**2, self.kinds)
        times = programs.times[:, None].astype(np.float64)
        self.lift = (tables.floor - tables.base) / self.typical * times
        limits = programs.limits
        self.unit = limits.largest_use.astype(np.float64)
        # Coefficients of a pod that stays, an unplaced one and a closed node in the links.
        moving = (limits.move / self.unit[:, None]).T
        waiting = np.vstack([(limits.unplaced / self.unit[:, None]).T, np.eye(len(self.unit))])
        self.stays = np.hstack([np.eye(self.kinds), -moving])
        self.waits = np.hstack([np.eye(self.kinds + len(self.unit), self.kinds), waiting])
        closes = -limits.opening / self.unit
        self.link_of_closed = np.hstack([np.zeros((self.nodes, self.kinds)), closes])
        self.links = self.kinds + len(self.unit)
        spent = programs.times @ (tables.start @ moving - closes)
        self.total = np.concatenate([programs.size, limits.most / self.unit - spent])
        # Where a load has no cost below its capacity, a closed node has none. Curves would need more than this.
        flat = (tables.pieces == 1) & (tables.slope[:, 0] == 0)
        self.residual = np.where(flat[tables.curve], tables.capacity - tables.base, 0) / self.typical
        self._pieces(programs, times)
        self.constant = _constant(programs) / self.highest
        self.multipliers = np.zeros(self.links)
        self.load_duals = np.zeros((self.nodes, self.rows))
        self.used = self.length / 2
        self.left = self.length / 2
        self.low = np.maximum(self.cost, 0) + 1.0
        self.high = np.maximum(-self.cost, 0) + 1.0

    def _pieces(self, programs: Programs, times: Floats) -> None:
        tables = programs.tables
        pairs = self.nodes * self.kinds
        stay, come = (tables.start * times).reshape(-1), ((tables.upper - tables.start) * times).reshape(-1)
        here, there = np.flatnonzero(stay > 0), np.flatnonzero(come > 0)
        linear = tables.linear.reshape(-1)
        at: list[Ints] = [pairs + here, there]
        length: list[Floats] = [stay[here], come[there]]
        cost = [linear[here] - tables.move[here % self.kinds], linear[there]]
        behind = 2 * pairs
        for r in range(self.rows):
            node, width, slope = _segments(programs, r)
            at.append(behind + node * self.rows + r)
            length.append(width * times[node, 0] / self.typical[r])
            cost.append(slope * self.typical[r])
        waiting = np.flatnonzero(programs.optional > 0)
        behind += self.nodes * self.rows
        at.append(behind + waiting)
        length.append(programs.optional[waiting].astype(np.float64))
        cost.append(programs.unplaced[waiting])
        slack = np.flatnonzero(programs.limits.most > 0)
        at.append(behind + self.kinds + slack)
        length.append(programs.limits.most[slack] / self.unit[slack])
        cost.append(np.zeros_like(slack))
        closed = np.flatnonzero((tables.opening > 0) | (programs.limits.opening > 0).any(axis=1))
        at.append(behind + self.links + closed)
        length.append(times[closed, 0])
        cost.append(-tables.opening[closed])
        self.at: Ints = np.concatenate(at)
        self.length: Floats = np.concatenate(length)
        costs: Floats = np.concatenate(cost).astype(np.float64)
        pods = np.abs(np.concatenate([cost[0], cost[1], *cost[-3:]]))
        self.highest = float(max(1.0, pods.max(initial=0.0), 0.0 if pods.any() else np.abs(costs).max(initial=0.0)))
        self.cost: Floats = costs / self.highest

    def step(self, close: float) -> bool:
        """Take one step, unless primal and dual are that close; return whether another is worth it."""
        load, link = self.left_side(self.used)
        over = self.lift - load, self.total - link
        rest = self.cost - self.transposed(self.load_duals, self.multipliers) - self.low + self.high
        below, above = self.used * self.low, self.left * self.high
        primal = float(self.cost @ self.used)
        dual = float(self.multipliers @ self.total - (self.load_duals * self.lift).sum() - self.length @ self.high)
        # The primal is needed for nothing else: it only bounds the dual.
        if len(self.at) == 0 or abs(primal - dual) <= close * max(1e-9, abs(primal + self.constant)):
            return False
        mean = float(below.sum() + above.sum()) / (2 * len(self.at))
        weight = 1 / (self.low / self.used + self.high / self.left)
        try:
            normal = _Normal(self, weight)
        except np.linalg.LinAlgError:
            return False
        predictor = normal.direction(over, rest, -below, -above)
        primal_length, dual_length = self._lengths(predictor, 1.0)
        ahead = float(
            (self.used + primal_length * predictor.used) @ (self.low + dual_length * predictor.low)
            + (self.left - primal_length * predictor.used) @ (self.high + dual_length * predictor.high)
        ) / (2 * len(self.at))
        target = mean * (ahead / mean) ** 3
        cross_low, cross_high = predictor.used * predictor.low, predictor.used * predictor.high
        move = normal.direction(over, rest, target - below - cross_low, target - above + cross_high)
        primal_length, dual_length = self._lengths(move, self.step_share)
        if not np.isfinite(primal_length + dual_length) or max(primal_length, dual_length) < 1e-6:
            return False
        self.used += primal_length * move.used
        self.left -= primal_length * move.used
        self.low += dual_length * move.low
        self.high += dual_length * move.high
        self.multipliers = self.multipliers + dual_length * move.multipliers
        self.load_duals = self.load_duals + dual_length * move.load_duals
        return True

    def groups(self, pieces: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Sum pieces by groups.

        Returns
        -------
        tuple
            Pods that arrive and that stay ``[m, k]``, loads ``[m, r]``, unplaced pods and slacks ``[k + e]``, closed
            nodes ``[m]``.
        """
        pairs, rows = self.nodes * self.kinds, self.nodes * self.rows
        sums = np.bincount(self.at, weights=pieces, minlength=2 * pairs + rows + self.links + self.nodes)
        come, stay, loads, waiting, closed = np.split(
            sums.astype(np.float64), np.cumsum([pairs, pairs, rows, self.links])
        )
        shape = (self.nodes, self.kinds)
        return come.reshape(shape), stay.reshape(shape), loads.reshape(self.nodes, -1), waiting, closed

    def left_side(self, pieces: Floats) -> tuple[Floats, Floats]:
        """Return the left-hand sides of the rows ``[m, r]`` and the links ``[k + e]``."""
        come, stay, loads, waiting, closed = self.groups(pieces)
        link = stay.sum(axis=0) @ self.stays + waiting @ self.waits + closed @ self.link_of_closed
        link[: self.kinds] += come.sum(axis=0)
        return (come + stay) @ self.demand.T + closed[:, None] * self.residual - loads, link

    def transposed(self, load_duals: Floats, multipliers: Floats) -> Floats:
        """Return the product of the transposed constraint matrix with the duals, for each piece."""
        load = load_duals @ self.demand
        parts = (
            multipliers[: self.kinds] - load,
            self.stays @ multipliers - load,
            load_duals,
            self.waits @ multipliers,
            self.link_of_closed @ multipliers - (load_duals * self.residual).sum(axis=1),
        )
        return np.concatenate([part.reshape(-1) for part in parts])[self.at]

    def _lengths(self, step: _Step, share: float) -> tuple[float, float]:
        """Return the step lengths of primal and dual, as shares of the way to the boundary."""
        primal = max(float(np.max(-step.used / self.used)), float(np.max(step.used / self.left)))
        dual = max(float(np.max(-step.low / self.low)), float(np.max(-step.high / self.high)))
        return min(1.0, share / max(primal, 1e-12)), min(1.0, share / max(dual, 1e-12))


@dataclass(frozen=True, slots=True)
class _Step:
    used: Floats
    low: Floats
    high: Floats
    multipliers: Floats
    load_duals: Floats


class _Normal:
    """The normal equations of an iterate, factored."""

    def __init__(self, method: _Method, weight: Floats) -> None:
        self.method, self.weight = method, weight
        come, stay, loads, waiting, closed = method.groups(weight)
        rows, nodes, kinds = method.rows, method.nodes, method.kinds
        block = ((come + stay) @ method.products.T).reshape(nodes, rows, rows)
        block += closed[:, None, None] * method.residual[:, :, None] * method.residual[:, None, :]
        diagonal = np.arange(rows)
        block[:, diagonal, diagonal] = (block[:, diagonal, diagonal] + loads) * (1 + RIDGE) + TINY
        self.inverse = np.linalg.inv(np.linalg.cholesky(block)) if rows else block
        across = np.zeros((nodes, rows, method.links))
        across[:, :, :kinds] = method.demand * (come + stay)[:, None, :]
        if method.links > kinds:
            across[:, :, kinds:] = (method.demand * stay[:, None, :]) @ method.stays[:, kinds:]
            across[:, :, kinds:] += (closed[:, None] * method.residual)[:, :, None] * method.link_of_closed[
                :, None, kinds:
            ]
        self.reach = np.matmul(self.inverse, across)
        flat = self.reach.reshape(nodes * rows, method.links)
        self.border = (method.waits.T * waiting) @ method.waits - flat.T @ flat
        self.border += (method.stays.T * stay.sum(axis=0)) @ method.stays
        if method.links > kinds:
            self.border += (method.link_of_closed.T * closed) @ method.link_of_closed
        each = np.arange(method.links)
        self.border[each[:kinds], each[:kinds]] += come.sum(axis=0)
        self.border[each, each] = self.border[each, each] * (1 + RIDGE) + TINY

    def direction(self, over: tuple[Floats, Floats], rest: Floats, below: Floats, above: Floats) -> _Step:
        """Return the Newton direction for given residuals of constraints and complementarity."""
        method = self.method
        push = self.weight * (below / method.used - above / method.left - rest)
        load, link = method.left_side(push)
        by_node, by_link = over[0] - load, over[1] - link
        half = np.matmul(self.inverse, by_node[:, :, None])[:, :, 0]
        multipliers = np.linalg.solve(self.border, by_link - np.einsum("mrl,mr->l", self.reach, half))
        rest_of_node = (half - self.reach @ multipliers)[:, :, None]
        load_duals = -np.matmul(np.swapaxes(self.inverse, 1, 2), rest_of_node)[:, :, 0]
        used = push + self.weight * method.transposed(load_duals, multipliers)
        low = (below - method.low * used) / method.used
        high = (above + method.high * used) / method.left
        return _Step(used, low, high, multipliers, load_duals)


def _segments(programs: Programs, r: int) -> tuple[Ints, Ints, Ints]:
    """Return node, length and slope of each reachable segment between two breakpoints of the curves of one row."""
    tables = programs.tables
    curve, (low, high) = tables.curve[:, r], (tables.floor[:, r, None], tables.capacity[:, r, None])
    begin = tables.first[curve]
    end = np.hstack([begin[:, 1:], np.full((len(curve), 1), FAR)])
    begin[:, 0] = np.minimum(begin[:, 0], low[:, 0])
    width = np.minimum(end, high) - np.maximum(begin, low)
    node, j = np.nonzero((width > 0) & (begin < FAR))
    return node, width[node, j], tables.slope[curve[node], j]


def _constant(programs: Programs) -> float:
    """Return the cost of all nodes open, at their least loads, with all pods of the start gone."""
    tables = programs.tables
    total = float(programs.times @ (tables.start @ tables.move + tables.opening)) + programs.constant
    for r in range(tables.curve.shape[1]):
        curve, x = tables.curve[:, r], tables.floor[:, r]
        piece = np.maximum(0, (x[:, None] >= tables.first[curve]).sum(axis=1) - 1)
        value = tables.value[curve, piece] + tables.slope[curve, piece] * (x - tables.first[curve, piece])
        total += float(programs.times @ value)
    return total
