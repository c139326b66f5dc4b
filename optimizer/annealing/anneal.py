"""Simulated annealing, tier after tier, by several chains that exchange their incumbents after every round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import CURVES, Move, MovePeak, NodeCurve, Open, Placement, Tier, Unplaced
from stowplan.optimizer.annealing.budgets import with_budgets_kept
from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.chain import LONGEST, Chain, Penalties
from stowplan.optimizer.annealing.kernel.metropolis import (
    EJECTION,
    EMPTY_NODE,
    GROUP,
    HOME,
    INSERT,
    OPERATORS,
    RELATED,
    RETURN,
    SHIFT,
    SWAP,
    TRADE,
    run_chain,
)
from stowplan.optimizer.annealing.kernel.moves import place_all
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.annealing.parameters import AnnealingParameters
from stowplan.optimizer.annealing.sampling import PodSampler
from stowplan.optimizer.annealing.schedule import Calibration, Schedule, overload_penalty
from stowplan.optimizer.annealing.state_builder import HELD, OVERLOAD, build_state, nodes_of_pods, placement_of
from stowplan.optimizer.annealing.violations import violating_pods
from stowplan.optimizer.compiled.random import RandomState, start_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator

Found = Callable[[Placement], object]
"""Called with every best placement at the end of a round."""


def anneal(
    evaluator: Evaluator,
    start: Placement,
    deadline: Deadline,
    seed: int = 0,
    *,
    floor: Sequence[int] | None = None,
    calibrations: dict[int, Calibration] | None = None,
    tiers: int | None = None,
    chains: int = 2,
    found: Found = lambda placement: None,
    admits: Callable[[int], bool] = lambda more: True,
    parameters: AnnealingParameters | None = None,
) -> Placement:
    """Improve a legal placement until time is up, or until every tier is down to its floor.

    Parameters
    ----------
    floor
        Values below which no tier can get; 0 if nothing is known.
    calibrations
        Temperature calibrations of earlier calls for the same problem, by tier; this call continues them.
    tiers
        How many tiers are improved, the most urgent ones; all if not given.
    chains
        Independent chains, each on its own thread. The result depends on their number, not on the cores.
    admits
        Whether so many more bytes may be held: there is one chain where the states of more do not fit into memory.

    Returns
    -------
    Placement
        A legal placement whose tiers are no worse.
    """
    evaluator = with_budgets_kept(evaluator, start)
    problem = evaluator.problem
    if not problem.pods or not problem.tiers:
        return start
    parameters = parameters or AnnealingParameters()
    best = _Incumbent(start, evaluator.evaluate(start).values, nodes_of_pods(problem, start))
    replicas: list[_Replica] = []
    lowest = [0] * len(problem.tiers) if floor is None else list(floor)
    calibrations = {} if calibrations is None else calibrations
    last = len(problem.tiers) if tiers is None else tiers
    with ThreadPoolExecutor(chains) as pool:
        for tier in range(last):
            open_tiers = sum(best.values[t] > lowest[t] for t in range(tier, last))
            if best.values[tier] <= lowest[tier]:
                continue
            if not replicas:
                replicas = _replicas(evaluator, start, seed, parameters, chains, admits)
                chains = len(replicas)
            list(pool.map(_Replica.state_at, replicas, [best] * chains))
            left = deadline.share(1 / open_tiers)
            if tier not in calibrations:
                calibrations[tier] = Calibration(
                    replicas[0].uphill(best, tier), tight=replicas[0].tight(best), parameters=parameters
                )
            first, calibration = best, calibrations[tier]
            for share in parameters.rounds[calibration.turn :] or parameters.rounds[-1:]:
                if left.over:
                    break
                starts, before = calibration.starts(chains), best.values
                run = partial(_Replica.run, tier=tier, floor=lowest[tier], deadline=left.share(share))
                results = list(pool.map(run, replicas, [first if calibration.afresh else best] * chains, starts))
                best = min([best, *(result.best for result in results)], key=lambda incumbent: incumbent.values)
                found(best.placement)
                if deadline.stop.is_set():
                    break  # a chain that was cut short has not lost
                calibration.learn(starts, min(range(chains), key=lambda i: results[i].ended))
                stuck = calibration.turn >= parameters.calibration_rounds and best.values == before and open_tiers > 1
                if best.values[tier] <= lowest[tier] or stuck:
                    break
    return best.placement


class _Incumbent(NamedTuple):
    """A feasible placement that chains can start from, and the node ``[P]`` of each pod of a search state."""

    placement: Placement
    values: tuple[int, ...]
    nodes: Ints


class _ChainResult(NamedTuple):
    """The incumbent of a chain, which may be its start, and the values of where it ended."""

    best: _Incumbent
    ended: tuple[int, ...]


def _replicas(
    evaluator: Evaluator,
    start: Placement,
    seed: int,
    parameters: AnnealingParameters,
    chains: int,
    admits: Callable[[int], bool],
) -> list[_Replica]:
    """Return a replica for each chain, or a single one where memory does not admit the states of the others."""
    first = build_state(evaluator, start, parameters)
    states = [first]
    if chains > 1 and admits((chains - 1) * sum(array.nbytes for array in first)):
        states += [SearchState._make(array.copy() for array in first) for _ in range(1, chains)]
    return [_Replica(evaluator, state, seed * 1009 + i, parameters) for i, state in enumerate(states)]


class _Replica:
    """A search state and random numbers, for one chain after another.

    The state is built once, since that takes as long as a million steps; afterwards pods are put where they belong.
    """

    def __init__(self, evaluator: Evaluator, state: SearchState, seed: int, parameters: AnnealingParameters) -> None:
        self.evaluator, self.parameters = evaluator, parameters
        self.random = start_of(seed)
        self.rng = np.random.default_rng(seed)
        self._state = state

    def state_at(self, incumbent: _Incumbent) -> SearchState:
        """Return the search state, with every pod on its node."""
        place_all(self._state, incumbent.nodes)
        return self._state

    def tight(self, incumbent: _Incumbent) -> bool:
        """Whether little is left of a capacity, on all nodes together."""
        state = self.state_at(incumbent)
        nodes, number = int(state.head[at.H_NODES]), int(state.head[at.H_CAPACITIES])
        room, load = (state.head[first] + np.arange(number) for first in (at.H_F_ROOM, at.H_V_LOAD))
        used, whole = state.live[:nodes, load].sum(axis=0, dtype=float), state.fix[:nodes, room].sum(axis=0)
        return bool((used >= self.parameters.tight * whole).any())

    def uphill(self, incumbent: _Incumbent, tier: int) -> Ints:
        """Return, sorted, by how much uphill proposals would worsen a tier; none of them is accepted."""
        state, samples = self.state_at(incumbent), self.parameters.uphill_samples
        pods, nodes = int(state.head[at.H_PODS]), int(state.head[at.H_NODES])
        chain = _chain(state, self.random.copy(), np.ones(OPERATORS), samples)
        run_chain(state, chain, min(10 * samples, 10 * pods * nodes), tier, 0.0, 0.0, Penalties(0.0, 0.0, 0))
        steps: Ints = np.sort(chain.uphill[: min(samples, int(chain.counts[1]))])
        return steps

    def run(self, incumbent: _Incumbent, start: Schedule, tier: int, floor: int, deadline: Deadline) -> _ChainResult:
        """Run one chain from the initial to the final temperature."""
        if deadline.over:
            return _ChainResult(incumbent, incumbent.values)
        state, tiers, chosen = self.state_at(incumbent), len(incumbent.values), self.parameters
        violating = np.zeros(0, dtype=np.int64)
        if incumbent.values[0]:
            violating = violating_pods(self.evaluator, incumbent.placement, state)
        mix = _mix(self.evaluator.problem.tiers[tier], state, chosen)
        chain = _chain(state, self.random, mix, chosen.uphill_samples)
        bias = chosen.tie_break if _prefers_full_nodes(self.evaluator.problem.tiers[tier]) else 0.0
        most = chosen.thorough * int(state.head[at.H_PODS]) * int(state.head[at.H_NODES]) + chosen.batch // 10
        if deadline.deterministic:
            most = min(most, int(deadline.seconds * chosen.steps_per_second))
        sampler = PodSampler(state, tier, violating, self.rng, chosen)
        done, overloads = 0, start.overloads
        while done < most and not deadline.over and chain.best_value[tier] > floor:
            clock = 0.0 if deadline.deterministic else 1 - deadline.remaining / max(deadline.seconds, 1e-9)
            spent = max(done / most, clock)
            temperature = start.initial * (start.final / start.initial) ** spent if start.initial > 0 else 0.0
            batch = min(chosen.batch, most - done, max(100, most // 50))
            chain = chain._replace(sampled=sampler.pods())
            tie_break = bias * (1 - spent) + 1e-3 if bias else 0.0
            wrong = bool(state.value[tiers + at.ILLEGAL])
            if overloads and spent > chosen.closing and (not wrong or spent > chosen.latest):
                # If the overload could not be repaired, the chain returns to its incumbent.
                overloads = False
                if wrong:
                    place_all(state, chain.best)
            penalized = overload_penalty(spent, chosen) * temperature / OVERLOAD if overloads else 0.0
            most_overload = int(chosen.largest_overload * OVERLOAD) if overloads else 0
            penalties = Penalties(chosen.held_penalty * temperature / HELD, penalized, most_overload)
            run_chain(state, chain, batch, tier, temperature, tie_break, penalties)
            done += batch
        ended = chain.best_value if state.value[tiers + at.ILLEGAL] else state.value[:tiers]
        best = _Incumbent(placement_of(state, chain.best), tuple(chain.best_value.tolist()), chain.best)
        return _ChainResult(best, tuple(ended.tolist()))


def _chain(state: SearchState, random: RandomState, mix: Floats, samples: int) -> Chain:
    pods, tiers = int(state.head[at.H_PODS]), int(state.head[at.H_TIERS])
    return Chain(
        random=random,
        mix=mix,
        sampled=np.zeros(1, dtype=np.int64),
        best=state.pod[:, at.P_NODE].copy(),
        best_value=state.value[:tiers].copy(),
        dirty=np.zeros(pods, dtype=np.int64),
        dirty_at=np.zeros(pods, dtype=np.bool_),
        counts=np.zeros(2, dtype=np.int64),
        change=np.zeros(tiers + 2, dtype=np.int64),
        before=np.zeros(tiers + 2, dtype=np.int64),
        uphill=np.zeros(samples, dtype=np.int64),
        path=np.zeros((LONGEST, 2), dtype=np.int64),
    )


def _holds_room(state: SearchState) -> bool:
    return bool(state.cls[:, state.head[at.H_C_MOVE] + state.head[at.H_TIERS]].any())


def _has_related(state: SearchState) -> bool:
    """Whether pods of different classes are counted together."""
    several = state.relation[:, at.R_PARTICIPANTS_END] - state.relation[:, at.R_PARTICIPANTS] > 1
    return bool((several & (state.relation[:, at.R_KIND] != at.MOVE_PEAK)).any())


def _mix(tier: Tier, state: SearchState, parameters: AnnealingParameters) -> Floats:
    """``[OPERATORS]`` cumulative probabilities of the move operators."""
    if parameters.operator_weights is None:
        share = _operator_weights(tier, state)
    else:
        share = np.array(parameters.operator_weights, dtype=np.float64)
    if len(share) != OPERATORS:
        raise ValueError(f"there are {OPERATORS} move operators, but {len(share)} weights")
    mix: Floats = np.cumsum(share) / share.sum()
    return mix


def _operator_weights(tier: Tier, state: SearchState) -> Floats:
    """``[OPERATORS]`` relative frequencies of the move operators that suit a tier."""
    terms = [weighted.term for weighted in tier.terms]
    share = np.zeros(OPERATORS)
    share[[SHIFT, SWAP, EJECTION]] = 50, 35, 2
    if any(isinstance(term, NodeCurve) for term in terms):
        share[[SHIFT, SWAP, TRADE]] = 40, 55, 10
    if state.value[state.head[at.H_TIERS] + at.UNPLACED]:
        share[INSERT] = 40 if any(isinstance(term, Unplaced) for term in terms) else 3
    if any(isinstance(term, Open) for term in terms):
        share[EMPTY_NODE] = 5
    if len(state.relation):
        share[GROUP] = 0.3
    if _has_related(state):
        share[RELATED] = 10
    if any(isinstance(term, Move | MovePeak) for term in terms):
        share[[HOME, RETURN]] = 6, 100
    if _holds_room(state):
        share[[HOME, RETURN]] = 20, 60
        share[TRADE] = min(share[TRADE], 3)
    return share


def _prefers_full_nodes(tier: Tier) -> bool:
    """Whether ties are broken in favor of fuller and emptier nodes, since a tier asks for room."""
    terms = [weighted.term for weighted in tier.terms]
    wants_room = any(isinstance(term, Open | Unplaced) for term in terms)
    return wants_room and not any(isinstance(term, CURVES) for term in terms)
