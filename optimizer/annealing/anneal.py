"""Simulated annealing, tier after tier, by several walkers that meet after every round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import CURVES, Move, MovePeak, NodeCurve, Open, Placement, Tier, Unplaced
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
from stowplan.optimizer.annealing.sampling import PodSampler
from stowplan.optimizer.annealing.schedule import (
    CALIBRATION_TURNS,
    CLOSING,
    HELD_PENALTY,
    LATEST,
    MOST,
    Calibration,
    Schedule,
    overload_penalty,
)
from stowplan.optimizer.annealing.state_builder import HELD, OVERLOAD, build_state, nodes_of_pods, placement_of
from stowplan.optimizer.annealing.violations import violating_pods
from stowplan.optimizer.compiled.random import RandomState, start_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator

STEPS_PER_SECOND = 1_000_000
"""Steps that stand for a second where the answer must not depend on the clock."""

BATCH = 20_000
"""Steps between looks at the clock."""

ROUNDS = (0.04, 0.08, 0.2, 1.0)
"""Shares of the time left to a tier, turn by turn: `CALIBRATION_TURNS` races of temperatures, then a long chain."""

THOROUGH = 1000
"""Steps after which a tier is left, for every pair of a pod and a node."""

TIGHT = 0.75
"""Share of a capacity that is taken, from which on it pays to look whether walks should overfill nodes."""

SAMPLES = 2000
"""Uphill steps by which temperatures are set."""

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
) -> Placement:
    """Improve a legal placement until time is up, or until every tier is down to its floor.

    Parameters
    ----------
    floor
        Values below which no tier can get; 0 if nothing is known.
    calibrations
        What earlier calls for the same problem have learned of each tier's temperatures; this one goes on from there.
    tiers
        How many tiers are improved, the most urgent ones; all if not given.
    chains
        Independent walks, each on a thread of its own. The answer depends on their number, not on the cores.

    Returns
    -------
    Placement
        A legal placement whose tiers are no worse.
    """
    problem = evaluator.problem
    if not problem.pods or not problem.tiers:
        return start
    best = _Incumbent(start, evaluator.evaluate(start).values, nodes_of_pods(problem, start))
    replicas = [_Replica(evaluator, start, seed * 1009 + i) for i in range(chains)]
    lowest = [0] * len(problem.tiers) if floor is None else list(floor)
    calibrations = {} if calibrations is None else calibrations
    last = len(problem.tiers) if tiers is None else tiers
    with ThreadPoolExecutor(chains) as pool:
        for tier in range(last):
            open_tiers = sum(best.values[t] > lowest[t] for t in range(tier, last))
            if best.values[tier] <= lowest[tier]:
                continue
            list(pool.map(_Replica.draw, replicas, [best] * chains))
            left = deadline.share(1 / open_tiers)
            if tier not in calibrations:
                calibrations[tier] = Calibration(replicas[0].uphill(best, tier), tight=replicas[0].tight(best))
            first, calibration = best, calibrations[tier]
            for share in ROUNDS[calibration.turn :] or ROUNDS[-1:]:
                if left.over:
                    break
                starts, before = calibration.starts(chains), best.values
                run = partial(_Replica.run, tier=tier, floor=lowest[tier], deadline=left.share(share))
                ways = list(pool.map(run, replicas, [first if calibration.afresh else best] * chains, starts))
                best = min([best, *(way.best for way in ways)], key=lambda stand: stand.values)
                found(best.placement)
                if deadline.stop.is_set():
                    break  # who was cut short has not lost
                calibration.learn(starts, min(range(chains), key=lambda i: ways[i].ended))
                stuck = calibration.turn >= CALIBRATION_TURNS and best.values == before and open_tiers > 1
                if best.values[tier] <= lowest[tier] or stuck:
                    break
    return best.placement


class _Incumbent(NamedTuple):
    """A legal placement that walks can begin with, and the node ``[P]`` of each pod of an image."""

    placement: Placement
    values: tuple[int, ...]
    nodes: Ints


class _ChainResult(NamedTuple):
    """The best placement of a walk, which may be where it began, and the values of where it ended."""

    best: _Incumbent
    ended: tuple[int, ...]


class _Replica:
    """One walker: an image, and random numbers of its own.

    The image is drawn once, since that takes as long as a million steps; afterwards pods are put where they belong.
    """

    def __init__(self, evaluator: Evaluator, start: Placement, seed: int) -> None:
        self.evaluator, self.start = evaluator, start
        self.random = start_of(seed)
        self.rng = np.random.default_rng(seed)

    @cached_property
    def _state(self) -> SearchState:
        return build_state(self.evaluator, self.start)

    def draw(self, stand: _Incumbent) -> SearchState:
        """Return the image, with every pod where it stands."""
        place_all(self._state, stand.nodes)
        return self._state

    def tight(self, stand: _Incumbent) -> bool:
        """Whether little room is left of a capacity, on all nodes together."""
        state = self.draw(stand)
        nodes, number = int(state.head[at.H_NODES]), int(state.head[at.H_CAPACITIES])
        room, load = (state.head[first] + np.arange(number) for first in (at.H_F_ROOM, at.H_V_LOAD))
        taken = state.live[:nodes, load].sum(axis=0, dtype=float) >= TIGHT * state.fix[:nodes, room].sum(axis=0)
        return bool(taken.any())

    def uphill(self, stand: _Incumbent, tier: int) -> Ints:
        """Return, sorted, by how much steps of one pod alone would worsen a tier; none of them is taken."""
        state = self.draw(stand)
        pods, nodes = int(state.head[at.H_PODS]), int(state.head[at.H_NODES])
        chain = _chain(state, self.random.copy(), np.ones(OPERATORS))
        run_chain(state, chain, min(10 * SAMPLES, 10 * pods * nodes), tier, 0.0, 0.0, Penalties(0.0, 0.0, 0))
        steps: Ints = np.sort(chain.uphill[: min(SAMPLES, int(chain.counts[1]))])
        return steps

    def run(self, stand: _Incumbent, start: Schedule, tier: int, floor: int, deadline: Deadline) -> _ChainResult:
        """Walk once from hot to cold."""
        if deadline.over:
            return _ChainResult(stand, stand.values)
        state, tiers = self.draw(stand), len(stand.values)
        violating = (
            violating_pods(self.evaluator, stand.placement, state) if stand.values[0] else np.zeros(0, dtype=np.int64)
        )
        chain = _chain(state, self.random, _mix(self.evaluator.problem.tiers[tier], state))
        bias = _bias(self.evaluator.problem.tiers[tier])
        most = THOROUGH * int(state.head[at.H_PODS]) * int(state.head[at.H_NODES]) + BATCH // 10
        if deadline.deterministic:
            most = min(most, int(deadline.seconds * STEPS_PER_SECOND))
        sampler = PodSampler(state, tier, violating, self.rng)
        done, overloads = 0, start.overloads
        while done < most and not deadline.over and chain.best_value[tier] > floor:
            clock = 0.0 if deadline.deterministic else 1 - deadline.remaining / max(deadline.seconds, 1e-9)
            spent = max(done / most, clock)
            temperature = start.initial * (start.final / start.initial) ** spent if start.initial > 0 else 0.0
            batch = min(BATCH, most - done, max(100, most // 50))
            chain = chain._replace(sampled=sampler.pods())
            tie_break = bias * (1 - spent) + 1e-3 if bias else 0.0
            wrong = bool(state.value[tiers + at.ILLEGAL])
            if overloads and spent > CLOSING and (not wrong or spent > LATEST):
                # Where it could not be mended, all overfilling was in vain.
                overloads = False
                if wrong:
                    place_all(state, chain.best)
            penalized = overload_penalty(spent) * temperature / OVERLOAD if overloads else 0.0
            penalties = Penalties(
                HELD_PENALTY * temperature / HELD, penalized, int(MOST * OVERLOAD) if overloads else 0
            )
            run_chain(state, chain, batch, tier, temperature, tie_break, penalties)
            done += batch
        ended = chain.best_value if state.value[tiers + at.ILLEGAL] else state.value[:tiers]
        best = _Incumbent(placement_of(state, chain.best), tuple(chain.best_value.tolist()), chain.best)
        return _ChainResult(best, tuple(ended.tolist()))


def _chain(state: SearchState, random: RandomState, mix: Floats) -> Chain:
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
        uphill=np.zeros(SAMPLES, dtype=np.int64),
        path=np.zeros((LONGEST, 2), dtype=np.int64),
    )


def _holds_room(state: SearchState) -> bool:
    return bool(state.cls[:, state.head[at.H_C_MOVE] + state.head[at.H_TIERS]].any())


def _has_related(state: SearchState) -> bool:
    """Whether pods of different classes are counted together."""
    several = state.relation[:, at.R_PARTICIPANTS_END] - state.relation[:, at.R_PARTICIPANTS] > 1
    return bool((several & (state.relation[:, at.R_KIND] != at.MOVE_PEAK)).any())


def _mix(tier: Tier, state: SearchState) -> Floats:
    """``[OPERATORS]`` cumulative shares of the kinds of steps that suit a tier."""
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
    mix: Floats = np.cumsum(share) / share.sum()
    return mix


def _bias(tier: Tier) -> float:
    """Return the first temperature of the pull towards full and empty nodes; 0 where nothing asks for room."""
    terms = [weighted.term for weighted in tier.terms]
    wants_room = any(isinstance(term, Open | Unplaced) for term in terms)
    return 0.3 if wants_room and not any(isinstance(term, CURVES) for term in terms) else 0.0
