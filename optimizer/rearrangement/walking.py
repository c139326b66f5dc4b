"""A walk through legal placements that rearranges, and cools down once: for tiers that sum up what nodes cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement
from stowplan.optimizer.compiled.random import start_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.rearrangement.division import BELOW_ALL, Division, seeds_of
from stowplan.optimizer.rearrangement.kernel import arrays as at
from stowplan.optimizer.rearrangement.kernel.arrays import WalkModel, WalkState
from stowplan.optimizer.rearrangement.kernel.change import place_all
from stowplan.optimizer.rearrangement.kernel.walk import run_walk
from stowplan.optimizer.rearrangement.model_builder import (
    build_model,
    held_loads,
    initial_counters,
    pods_of,
    rooms,
    scale,
)
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.rearrangement.queue import ENDLESS, PRICE, Queue

LONGEST_PATH = 16

ROOM_IN_LISTS = 64
"""What the list of a node's pods has room for beside twice the pods of the fullest node."""

Found = Callable[[Placement], object]


def walk(
    evaluator: Evaluator,
    start: Placement,
    tier: int,
    deadline: Deadline,
    seed: int = 0,
    *,
    threads: int = 2,
    floor: int = 0,
    queue: Queue | None = None,
    found: Found = lambda placement: None,
    from_today: bool = False,
    parameters: RearrangementParameters | None = None,
) -> Placement:
    """Improve a tier of a problem for which `suits` holds, from a legal placement.

    The walk takes the whole time, from the highest to the lowest temperature. All threads walk on one placement, which
    they divide; where nodes are few or moves are limited, each walks on a placement of its own, and the best one of all
    is returned. It has the pods of ``start``; what is unscheduled stays so, but for pods of a queue: fewer of them that
    wait are worth anything to the others, and once all are in, the walk ends.

    Parameters
    ----------
    threads
        How many walk. The result depends on their number, not on the cores.
    floor
        Value of the tier that is good enough, without a queue.
    queue
        Pods that may wait.
    found
        Called with the best placement now and then, as long as it improves.
    from_today
        Whether to begin with today's placement, if that is legal and no worse in the tiers above: what was found since
        may have led to where a walk does not come back from. Of several chains, one does.
    """
    chosen = parameters or RearrangementParameters()
    problem = evaluator.problem
    cls, node, home = pods_of(problem, start)
    if not len(cls) + (queue.counted if queue else 0) or deadline.over:
        return start
    model = build_model(evaluator, tier, cls, home)
    values = evaluator.evaluate(start).values
    unit, enough = scale(model), floor - values[tier]
    schedule = chosen.hinged_schedule if model.hinged else chosen.curved_schedule
    if queue is not None:
        cls, node, home = queue.joined(problem, cls, node, home)
        model = queue.joins(model)._replace(cls=cls.astype(np.int32), home=home.astype(np.int32))
        unit, enough, schedule = queue.dearest, queue.all_in(), chosen.waiting_schedule
    few = model.hinged and len(cls) <= chosen.few_pods * len(problem.nodes)
    cooling = _Cooling(model, unit, schedule, deadline, enough, few, queue is not None, chosen)
    of_problem = cls if queue is None else queue.class_of(problem, cls)
    tell = _Telling(of_problem, len(problem.nodes), start, found)
    parts = 1 if queue is not None or problem.limits_moves else min(threads, len(problem.nodes) // chosen.divided)
    if parts > 1:
        today = _todays(evaluator, model, tier, values, seed) if from_today else []
        state = today[0] if today else state_of(evaluator, model, tier, node, seed)
        with ThreadPoolExecutor(parts) as pool:
            _walk_together(Division(model, state, parts, seed), cooling, pool, tell)
        return tell.best
    chains = min(threads, max(2, chosen.largest_table // model.open.size))
    seeds = seeds_of(seed, chains)
    today = _todays(evaluator, model, tier, values, seeds[-1]) if from_today and chains > 1 and queue is None else []
    first = state_of(evaluator, model, tier, node, seeds[0])
    states = [first, *(_copy(first, other) for other in seeds[1 : chains - len(today)]), *today]
    with ThreadPoolExecutor(chains) as pool:
        _walk_apart(states, cooling, pool, tell)
    return tell.best


@dataclass(slots=True, eq=False)
class _Telling:
    """Tells of the best placement, as long as it improves.

    Parameters
    ----------
    cls
        ``[P]`` class of each pod in the problem.
    """

    cls: Ints
    nodes: int
    best: Placement
    found: Found
    cost: int = 0

    def of(self, state: WalkState) -> None:
        """Tell of the best placement of a state, if it is better than all before."""
        if state.value[at.BEST] < self.cost:
            self.cost = int(state.value[at.BEST])
            self.best = _placement(self.cls, state.best, self.nodes)
            self.found(self.best)


def _walk_apart(states: Sequence[WalkState], cooling: _Cooling, pool: Executor, tell: _Telling) -> None:
    """Walk from several placements, each by itself."""
    for turn in cooling.turns(states):
        list(pool.map(turn, states))
        tell.of(min(states, key=lambda state: int(state.value[at.BEST])))
        if cooling.deadline.over:
            return


def _walk_together(division: Division, cooling: _Cooling, pool: Executor, tell: _Telling) -> None:
    """Walk from one placement with several threads."""
    state, chosen = division.state, cooling.chosen
    work = min(chosen.work_at_once, chosen.divided_work)  # else threads wait long for each other
    # No part of a placement is good enough for its thread to end before the others.
    together = replace(cooling, floor=BELOW_ALL - 1, quench=chosen.quench, chosen=replace(chosen, work_at_once=work))
    told = 0
    for number in range(1, chosen.divisions + 1):
        if state.value[at.BEST] <= cooling.floor or cooling.deadline.over:
            break
        until = number / chosen.divisions
        if cooling.clock >= until:
            continue
        parts = division.parts()
        list(pool.map(partial(together.run, until=until), parts))
        division.join(parts)
        if until >= (told + 1) / chosen.reports:
            told = int(until * chosen.reports)
            tell.of(state)
    tell.of(state)


def _placement(cls: Ints, node: at.Int32, nodes: int) -> Placement:
    """Return the placement of all pods but those that wait."""
    placed = node < nodes
    return Placement.summed(cls[placed] * nodes + node[placed], np.ones(int(placed.sum()), dtype=np.int64), nodes)


@dataclass(frozen=True, slots=True, eq=False)
class _Cooling:
    """The schedule of all threads.

    Parameters
    ----------
    unit
        Cost that is one unit of temperature.
    schedule
        Temperatures at the beginning, where the second part begins, and at the end, in units.
    floor
        Cost, relative to that of the start, that is good enough.
    few
        Whether nodes hold few pods, so that rearrangements take the larger share of the work.
    waiting
        Whether pods wait: rearrangements take that share too, and in the end moves are taken back that gained nothing.
    quench
        Share of the time after which there is no temperature.
    """

    model: WalkModel
    unit: float
    schedule: tuple[float, float, float]
    deadline: Deadline
    floor: int
    few: bool
    waiting: bool
    chosen: RearrangementParameters
    quench: float = 1.0

    def turns(self, states: Sequence[WalkState]) -> Iterator[Callable[[WalkState], None]]:
        """Yield what each chain is to do next, until it is good enough or time is up."""
        reports = self.chosen.reports
        end = 1 - self.chosen.back_share if self.waiting else 1.0
        for report in range(1, reports + 1):
            if min(int(state.value[at.BEST]) for state in states) <= self.floor:
                break
            yield partial(self.run, until=end * report / reports)
        if self.waiting:
            yield self.take_back

    def take_back(self, state: WalkState) -> None:
        """Take moves back that gained nothing, as long as there are any: walk on without a temperature."""
        kinds = self._kinds
        better = True
        while better and not self.deadline.over:
            before = int(state.value[at.BEST])
            run_walk(self.model, state, self.chosen.back_work * len(self.model.cls), 0.0, 0.0, kinds)
            better = int(state.value[at.BEST]) < before

    @property
    def _kinds(self) -> at.Float64:
        return cumulative(self.chosen.kinds)

    @property
    def clock(self) -> float:
        """The share of the time that is over; 0 where time does not count."""
        deadline = self.deadline
        return 0.0 if deadline.deterministic else 1 - deadline.remaining / max(deadline.seconds, 1e-9)

    def run(self, state: WalkState, until: float) -> None:
        """Walk until a share of the time or of the work is spent, or a cost is reached."""
        if not len(state.pods):
            return
        chosen, deadline, pods = self.chosen, self.deadline, len(self.model.cls)
        kinds = self._kinds
        thorough = chosen.hinged_thorough if self.model.hinged else chosen.thorough
        most = float(thorough * pods * len(state.width) + chosen.work_at_once)
        if deadline.deterministic:
            most = min(most, deadline.seconds * chosen.work_per_second)
        while state.value[at.BEST] > self.floor and not deadline.over:
            spent = max(self.clock, float(state.value[at.SPENT]) / most)
            if spent >= until:
                break
            share = chosen.share if self.few or self.waiting else chosen.crowded_share
            if spent >= chosen.first_part:
                share *= chosen.cold_factor
            work = int(min(chosen.work_at_once, max(1.0, most / chosen.least_temperatures)))
            run_walk(self.model, state, work, self.unit * self._temperature(spent), share, kinds)

    def _temperature(self, spent: float) -> float:
        """Return the temperature after a share of the time, in units."""
        if spent >= self.quench:
            return 0.0
        chosen = self.chosen
        hottest, turning, coldest = self.schedule
        if spent < chosen.first_part:
            return float(hottest * (turning / hottest) ** (spent / chosen.first_part))
        return float(turning * (coldest / turning) ** ((spent - chosen.first_part) / (1 - chosen.first_part)))


def cumulative(weights: Sequence[float]) -> at.Float64:
    """Return cumulative probabilities, given weights."""
    total: at.Float64 = np.cumsum(np.array(weights, dtype=np.float64))
    total /= total[-1]
    return total


def state_of(evaluator: Evaluator, model: WalkModel, tier: int, node: Ints, seed: int) -> WalkState:
    """Return the state of a placement, by the node of each pod; costs count from there."""
    problem = evaluator.problem
    nodes, pods, start = model.open.shape[1], len(model.cls), problem.start
    queues = nodes - len(problem.nodes)
    delta = np.zeros((max(1, int(model.row.max(initial=-1)) + 1), nodes), dtype=np.int32)
    several = model.row[start.cls] >= 0
    delta[model.row[start.cls[several]], start.node[several]] = -start.count[several]
    # What stays charged on the source of a move is charged there from the start on.
    room = np.pad(rooms(problem), ((0, queues), (0, 0)), constant_values=ENDLESS)
    charged = model.need[0] - model.need[1]
    np.subtract.at(room, start.node, charged[start.cls] * start.count[:, None])
    # No pod has a node yet: all have left.
    group = model.group[start.cls]
    leavers = np.bincount(group[group >= 0], start.count[group >= 0], minlength=1).astype(np.int32)
    groups_with = np.bincount(leavers, minlength=int(problem.size.sum()) + 2).astype(np.int32)
    counter, extent = initial_counters(evaluator)
    state = WalkState(
        node=np.full(pods, -1, dtype=np.int32),
        slot=np.zeros(pods, dtype=np.int32),
        on=np.zeros((nodes, _widest(node, nodes, pods)), dtype=np.int32),
        width=np.zeros(nodes, dtype=np.int32),
        room=room,
        level=np.pad(held_loads(problem, tier, model), ((0, queues), (0, 0))),
        piece=model.first.copy(),
        value_at=np.zeros(model.first.shape, dtype=np.int64),
        charge=np.append(np.zeros(nodes - queues, dtype=np.int64), np.full(queues, PRICE, dtype=np.int64)),
        delta=delta,
        counter=counter,
        extent=extent,
        leavers=leavers,
        groups_with=groups_with,
        away=np.zeros(pods, dtype=np.int32),
        away_at=np.full(pods, -1, dtype=np.int32),
        best=node.astype(np.int32),
        dirty=np.zeros(pods, dtype=np.int32),
        dirty_at=np.zeros(pods, dtype=np.bool_),
        candidate=np.zeros(at.WHOLE_NODE, dtype=np.int32),
        rank=np.zeros((at.WHOLE_NODE, 3)),
        pods=np.arange(pods, dtype=np.int32),
        nodes=np.arange(nodes, dtype=np.int32),
        own=np.ones(nodes, dtype=np.bool_),
        owned=np.ones(len(model.relation), dtype=np.bool_),
        path=np.zeros((LONGEST_PATH, 2), dtype=np.int32),
        value=np.zeros(at.VALUES, dtype=np.int64),
        random=start_of(seed),
    )
    state.value[at.PEAK] = leavers.max()
    state.value[at.MOVES] = start.count.sum()
    place_all(model, state, node.astype(np.int32))
    return state


def _todays(evaluator: Evaluator, model: WalkModel, tier: int, values: Sequence[int], seed: int) -> list[WalkState]:
    """Return the state of today's placement, with costs that count from others; none if no walk may begin there."""
    today = evaluator.evaluate(evaluator.problem.start)
    if today.violations or today.values[:tier] != tuple(values[:tier]) or (model.home < 0).any():
        return []
    state = state_of(evaluator, model, tier, model.home.astype(np.int64), seed)
    state.value[at.COST] = today.values[tier] - values[tier]
    return [state]


def _copy(state: WalkState, seed: int) -> WalkState:
    """Return the same state for another chain: to build it takes longer."""
    return WalkState._make(array.copy() for array in state)._replace(random=start_of(seed))


def _widest(node: Ints, nodes: int, pods: int) -> int:
    """Return how many pods a node's list has room for."""
    return min(pods, ROOM_IN_LISTS + 2 * int(np.bincount(node, minlength=nodes).max(initial=0)))
