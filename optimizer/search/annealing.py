"""Simulated annealing, tier after tier, by several walkers that meet after every round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.problem import DomainCurve, Move, MovePeak, NodeCurve, Open, Placement, Tier, Unplaced
from optimizer.control import Deadline
from optimizer.evaluate import Judge
from optimizer.search.imaging import image_of, placement_of
from optimizer.search.kernel import layout as at
from optimizer.search.kernel.chance import State, start_of
from optimizer.search.kernel.image import Image
from optimizer.search.kernel.walk import CHAIN, EVACUATE, GROUP, HOME, INSERT, KINDS, LONGEST, SHIFT, SWAP, Walker, walk
from optimizer.search.trouble import troubled

STEPS_PER_SECOND = 1_000_000
"""Steps that stand for a second where the answer must not depend on the clock."""

BATCH = 20_000
"""Steps between looks at the clock."""

ROUNDS = (0.12, 0.28, 1.0)
"""Each round's share of the time that is left to a tier; the walkers meet in between."""

THOROUGH = 1000
"""Steps after which a tier is left, for every pair of a pod and a node."""

COOLEST = 3
"""Rounds after which they do not begin less hot any more."""

SAMPLES = 2000
"""Uphill steps by which temperatures are set."""

HOT, COLD = 0.35, 0.002
"""Quantiles of uphill steps that are the first and the last temperature of the first round."""

Found = Callable[[Placement], object]
"""Called with every best placement at the end of a round."""


def anneal(
    judge: Judge,
    start: Placement,
    deadline: Deadline,
    seed: int = 0,
    *,
    floor: Sequence[int] | None = None,
    rounds_before: int = 0,
    walkers: int = 2,
    found: Found = lambda placement: None,
) -> Placement:
    """Improve a legal placement until time is up, or until every tier is down to its floor.

    Parameters
    ----------
    floor
        Values below which no tier can get; 0 if nothing is known.
    rounds_before
        How often the placement has been annealed before: later rounds begin less hot.
    walkers
        Independent walks, each on a thread of its own. The answer depends on their number, not on the cores.

    Returns
    -------
    Placement
        A legal placement whose tiers are no worse.
    """
    problem = judge.problem
    if not problem.pods or not problem.tiers:
        return start
    values = judge.evaluate(start).values
    team = [_Walk(judge, start, values, seed * 1009 + i) for i in range(walkers)]
    lowest = [0] * len(problem.tiers) if floor is None else list(floor)
    with ThreadPoolExecutor(walkers) as pool:
        for tier in range(len(problem.tiers)):
            open_tiers = sum(team[0].values[t] > lowest[t] for t in range(tier, len(lowest)))
            if team[0].values[tier] <= lowest[tier]:
                continue
            left = deadline.share(1 / open_tiers)
            for number, share in enumerate(ROUNDS):
                before = team[0].values
                round_ = _Round(tier, lowest[tier], number + min(rounds_before, COOLEST), left.share(share))
                list(pool.map(lambda walk, round_=round_: walk.run(round_), team))
                best = min(team, key=lambda walk: walk.values)
                found(best.placement)
                for other in team:
                    if other.values > best.values:
                        other.follow(best)
                if best.values[tier] <= lowest[tier] or deadline.over or (number and best.values == before):
                    break
    return min(team, key=lambda walk: walk.values).placement


@dataclass(frozen=True, slots=True)
class _Round:
    """A stretch of annealing on one tier, with a temperature that falls from hot to cold."""

    tier: int
    floor: int
    number: int
    deadline: Deadline


class _Walk:
    """One walker: the best placement it has seen, and the random numbers that are its own."""

    def __init__(self, judge: Judge, start: Placement, values: tuple[int, ...], seed: int) -> None:
        self.judge = judge
        self.placement = start
        self.values = values
        self.chance = start_of(seed)

    def follow(self, other: _Walk) -> None:
        """Go on from where another walker was best."""
        self.placement, self.values = other.placement, other.values

    def run(self, round_: _Round) -> None:
        """Walk for a round."""
        tier, deadline = round_.tier, round_.deadline
        if deadline.over:
            return
        image = image_of(self.judge, self.placement)
        aimed = troubled(self.judge, self.placement, image) if self.values[0] else np.zeros(0, dtype=np.int64)
        walker = _walker(image, self.chance, _mix(self.judge.problem.tiers[tier], image), np.append(aimed, 0))
        pull = _pulls(self.judge.problem.tiers[tier])
        most = THOROUGH * int(image.head[at.H_PODS]) * int(image.head[at.H_NODES]) + BATCH // 10
        if deadline.deterministic:
            most = min(most, int(deadline.seconds * STEPS_PER_SECOND))
        hot, cold = _temperatures(image, walker, tier, round_.number, min(10 * SAMPLES, most // 5))
        done = 0
        while done < most and not deadline.over and walker.best_value[tier] > round_.floor:
            clock = 0.0 if deadline.deterministic else 1 - deadline.remaining / max(deadline.seconds, 1e-9)
            spent = max(done / most, clock)
            heat = hot * (cold / hot) ** spent if hot > 0 else 0.0
            batch = min(BATCH, most - done, max(100, most // 50))
            walk(image, walker, batch, tier, heat, pull * (1 - spent) + 1e-3 if pull else 0.0)
            done += batch
        self.placement, self.values = placement_of(image, walker.best), tuple(walker.best_value.tolist())


def _temperatures(image: Image, walker: Walker, tier: int, number: int, steps: int) -> tuple[float, float]:
    """Return first and last temperature of a round; later rounds begin less hot, since they begin with less."""
    # Steps of one pod alone, and downhill: what they pass by is what the round will meet.
    walk(image, walker._replace(mix=np.ones(KINDS), aimed=np.zeros(1, dtype=np.int64)), steps, tier, 0.0, 0.0)
    uphill = np.sort(walker.uphill[: min(SAMPLES, int(walker.counts[1]))])
    if not len(uphill):
        return 0.0, 0.0
    hot, cold = (float(uphill[int(q * (len(uphill) - 1))]) for q in (HOT, COLD))
    hot = max(hot, 1.0) / 4**number
    return hot, max(0.1, min(cold, hot / 100) / 4)


def _walker(image: Image, chance: State, mix: Floats, aimed: Ints) -> Walker:
    pods, tiers = int(image.head[at.H_PODS]), int(image.head[at.H_TIERS])
    return Walker(
        chance=chance,
        mix=mix,
        aimed=aimed,
        best=image.pod[:, at.P_NODE].copy(),
        best_value=image.value[:tiers].copy(),
        dirty=np.zeros(pods, dtype=np.int64),
        dirty_at=np.zeros(pods, dtype=np.bool_),
        counts=np.zeros(2, dtype=np.int64),
        change=np.zeros(tiers, dtype=np.int64),
        before=np.zeros(tiers, dtype=np.int64),
        uphill=np.zeros(SAMPLES, dtype=np.int64),
        path=np.zeros((LONGEST, 2), dtype=np.int64),
    )


def _mix(tier: Tier, image: Image) -> Floats:
    """``[KINDS]`` cumulative shares of the kinds of steps that suit a tier."""
    terms = [weighted.term for weighted in tier.terms]
    share = np.zeros(KINDS)
    share[[SHIFT, SWAP, CHAIN]] = 50, 35, 1
    if any(isinstance(term, NodeCurve) for term in terms):
        share[SWAP] = 45
    if image.value[image.head[at.H_TIERS] + at.WAITING]:
        share[INSERT] = 40 if any(isinstance(term, Unplaced) for term in terms) else 3
    if any(isinstance(term, Open) for term in terms):
        share[EVACUATE] = 5
    if len(image.relation):
        share[GROUP] = 0.3
    if any(isinstance(term, Move | MovePeak) for term in terms):
        share[HOME] = 6
    mix: Floats = np.cumsum(share) / share.sum()
    return mix


def _pulls(tier: Tier) -> float:
    """Return the first temperature of the pull towards full and empty nodes; 0 where nothing asks for room."""
    terms = [weighted.term for weighted in tier.terms]
    wants_room = any(isinstance(term, Open | Unplaced) for term in terms)
    return 0.3 if wants_room and not any(isinstance(term, NodeCurve | DomainCurve) for term in terms) else 0.0
