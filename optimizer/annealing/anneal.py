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
from stowplan.optimizer.annealing.kernel.chain import LONGEST, Prices, Walker
from stowplan.optimizer.annealing.kernel.metropolis import (
    CHAIN,
    EVACUATE,
    GROUP,
    HOME,
    INSERT,
    KINDS,
    MATE,
    RETURN,
    SHIFT,
    SWAP,
    TRADE,
    walk,
)
from stowplan.optimizer.annealing.kernel.moves import place_all
from stowplan.optimizer.annealing.kernel.state import Image
from stowplan.optimizer.annealing.sampling import Aim
from stowplan.optimizer.annealing.schedule import CLOSING, LATEST, MOST, RACES, RENT, Race, Start, overfill_price
from stowplan.optimizer.annealing.state_builder import HELD, OVERFILL, image_of, nodes_of_pods, placement_of
from stowplan.optimizer.annealing.violations import troubled
from stowplan.optimizer.compiled.random import State, start_of
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Judge

STEPS_PER_SECOND = 1_000_000
"""Steps that stand for a second where the answer must not depend on the clock."""

BATCH = 20_000
"""Steps between looks at the clock."""

ROUNDS = (0.04, 0.08, 0.2, 1.0)
"""Shares of the time that is left to a tier, turn by turn: `RACES` races, then a long walk, which gains most."""

THOROUGH = 1000
"""Steps after which a tier is left, for every pair of a pod and a node."""

TIGHT = 0.75
"""Share of a capacity that is taken, from which on it pays to look whether walks should overfill nodes."""

SAMPLES = 2000
"""Uphill steps by which temperatures are set."""

Found = Callable[[Placement], object]
"""Called with every best placement at the end of a round."""


def anneal(
    judge: Judge,
    start: Placement,
    deadline: Deadline,
    seed: int = 0,
    *,
    floor: Sequence[int] | None = None,
    races: dict[int, Race] | None = None,
    tiers: int | None = None,
    walkers: int = 2,
    found: Found = lambda placement: None,
) -> Placement:
    """Improve a legal placement until time is up, or until every tier is down to its floor.

    Parameters
    ----------
    floor
        Values below which no tier can get; 0 if nothing is known.
    races
        What earlier calls for the same problem have learned of each tier's temperatures; this one goes on from there.
    tiers
        How many tiers are improved, the most urgent ones; all if not given.
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
    best = _Stand(start, judge.evaluate(start).values, nodes_of_pods(problem, start))
    team = [_Walk(judge, start, seed * 1009 + i) for i in range(walkers)]
    lowest = [0] * len(problem.tiers) if floor is None else list(floor)
    races = {} if races is None else races
    last = len(problem.tiers) if tiers is None else tiers
    with ThreadPoolExecutor(walkers) as pool:
        for tier in range(last):
            open_tiers = sum(best.values[t] > lowest[t] for t in range(tier, last))
            if best.values[tier] <= lowest[tier]:
                continue
            list(pool.map(_Walk.draw, team, [best] * walkers))
            left = deadline.share(1 / open_tiers)
            if tier not in races:
                races[tier] = Race(team[0].uphill(best, tier), tight=team[0].tight(best))
            first, race = best, races[tier]
            for share in ROUNDS[race.turn :] or ROUNDS[-1:]:
                if left.over:
                    break
                starts, before = race.starts(walkers), best.values
                run = partial(_Walk.run, tier=tier, floor=lowest[tier], deadline=left.share(share))
                ways = list(pool.map(run, team, [first if race.afresh else best] * walkers, starts))
                best = min([best, *(way.best for way in ways)], key=lambda stand: stand.values)
                found(best.placement)
                if deadline.stop.is_set():
                    break  # who was cut short has not lost
                race.learn(starts, min(range(walkers), key=lambda i: ways[i].ended))
                stuck = race.turn >= RACES and best.values == before and open_tiers > 1
                if best.values[tier] <= lowest[tier] or stuck:
                    break
    return best.placement


class _Stand(NamedTuple):
    """A legal placement that walks can begin with, and the node ``[P]`` of each pod of an image."""

    placement: Placement
    values: tuple[int, ...]
    nodes: Ints


class _Way(NamedTuple):
    """The best placement of a walk, which may be where it began, and the values of where it ended."""

    best: _Stand
    ended: tuple[int, ...]


class _Walk:
    """One walker: an image, and random numbers of its own.

    The image is drawn once, since that takes as long as a million steps; afterwards pods are put where they belong.
    """

    def __init__(self, judge: Judge, start: Placement, seed: int) -> None:
        self.judge, self.start = judge, start
        self.chance = start_of(seed)
        self.rng = np.random.default_rng(seed)

    @cached_property
    def _image(self) -> Image:
        return image_of(self.judge, self.start)

    def draw(self, stand: _Stand) -> Image:
        """Return the image, with every pod where it stands."""
        place_all(self._image, stand.nodes)
        return self._image

    def tight(self, stand: _Stand) -> bool:
        """Whether little room is left of a capacity, on all nodes together."""
        image = self.draw(stand)
        nodes, number = int(image.head[at.H_NODES]), int(image.head[at.H_CAPACITIES])
        room, load = (image.head[first] + np.arange(number) for first in (at.H_F_ROOM, at.H_V_LOAD))
        taken = image.live[:nodes, load].sum(axis=0, dtype=float) >= TIGHT * image.fix[:nodes, room].sum(axis=0)
        return bool(taken.any())

    def uphill(self, stand: _Stand, tier: int) -> Ints:
        """Return, sorted, by how much steps of one pod alone would worsen a tier; none of them is taken."""
        image = self.draw(stand)
        pods, nodes = int(image.head[at.H_PODS]), int(image.head[at.H_NODES])
        walker = _walker(image, self.chance.copy(), np.ones(KINDS))
        walk(image, walker, min(10 * SAMPLES, 10 * pods * nodes), tier, 0.0, 0.0, Prices(0.0, 0.0, 0))
        steps: Ints = np.sort(walker.uphill[: min(SAMPLES, int(walker.counts[1]))])
        return steps

    def run(self, stand: _Stand, start: Start, tier: int, floor: int, deadline: Deadline) -> _Way:
        """Walk once from hot to cold."""
        if deadline.over:
            return _Way(stand, stand.values)
        image, tiers = self.draw(stand), len(stand.values)
        trouble = troubled(self.judge, stand.placement, image) if stand.values[0] else np.zeros(0, dtype=np.int64)
        walker = _walker(image, self.chance, _mix(self.judge.problem.tiers[tier], image))
        pull = _pulls(self.judge.problem.tiers[tier])
        most = THOROUGH * int(image.head[at.H_PODS]) * int(image.head[at.H_NODES]) + BATCH // 10
        if deadline.deterministic:
            most = min(most, int(deadline.seconds * STEPS_PER_SECOND))
        aim = Aim(image, tier, trouble, self.rng)
        done, overfills = 0, start.overfills
        while done < most and not deadline.over and walker.best_value[tier] > floor:
            clock = 0.0 if deadline.deterministic else 1 - deadline.remaining / max(deadline.seconds, 1e-9)
            spent = max(done / most, clock)
            heat = start.hot * (start.cold / start.hot) ** spent if start.hot > 0 else 0.0
            batch = min(BATCH, most - done, max(100, most // 50))
            walker = walker._replace(aimed=aim.pods())
            drift = pull * (1 - spent) + 1e-3 if pull else 0.0
            wrong = bool(image.value[tiers + at.BAD])
            if overfills and spent > CLOSING and (not wrong or spent > LATEST):
                # Where it could not be mended, all overfilling was in vain.
                overfills = False
                if wrong:
                    place_all(image, walker.best)
            price = overfill_price(spent) * heat / OVERFILL if overfills else 0.0
            prices = Prices(RENT * heat / HELD, price, int(MOST * OVERFILL) if overfills else 0)
            walk(image, walker, batch, tier, heat, drift, prices)
            done += batch
        ended = walker.best_value if image.value[tiers + at.BAD] else image.value[:tiers]
        best = _Stand(placement_of(image, walker.best), tuple(walker.best_value.tolist()), walker.best)
        return _Way(best, tuple(ended.tolist()))


def _walker(image: Image, chance: State, mix: Floats) -> Walker:
    pods, tiers = int(image.head[at.H_PODS]), int(image.head[at.H_TIERS])
    return Walker(
        chance=chance,
        mix=mix,
        aimed=np.zeros(1, dtype=np.int64),
        best=image.pod[:, at.P_NODE].copy(),
        best_value=image.value[:tiers].copy(),
        dirty=np.zeros(pods, dtype=np.int64),
        dirty_at=np.zeros(pods, dtype=np.bool_),
        counts=np.zeros(2, dtype=np.int64),
        change=np.zeros(tiers + 2, dtype=np.int64),
        before=np.zeros(tiers + 2, dtype=np.int64),
        uphill=np.zeros(SAMPLES, dtype=np.int64),
        path=np.zeros((LONGEST, 2), dtype=np.int64),
    )


def _holds_room(image: Image) -> bool:
    return bool(image.cls[:, image.head[at.H_C_MOVE] + image.head[at.H_TIERS]].any())


def _has_mates(image: Image) -> bool:
    """Whether pods of different classes are counted together."""
    several = image.relation[:, at.R_CREW_END] - image.relation[:, at.R_CREW] > 1
    return bool((several & (image.relation[:, at.R_KIND] != at.MOVE_PEAK)).any())


def _mix(tier: Tier, image: Image) -> Floats:
    """``[KINDS]`` cumulative shares of the kinds of steps that suit a tier."""
    terms = [weighted.term for weighted in tier.terms]
    share = np.zeros(KINDS)
    share[[SHIFT, SWAP, CHAIN]] = 50, 35, 2
    if any(isinstance(term, NodeCurve) for term in terms):
        share[[SHIFT, SWAP, TRADE]] = 40, 55, 10
    if image.value[image.head[at.H_TIERS] + at.WAITING]:
        share[INSERT] = 40 if any(isinstance(term, Unplaced) for term in terms) else 3
    if any(isinstance(term, Open) for term in terms):
        share[EVACUATE] = 5
    if len(image.relation):
        share[GROUP] = 0.3
    if _has_mates(image):
        share[MATE] = 10
    if any(isinstance(term, Move | MovePeak) for term in terms):
        share[[HOME, RETURN]] = 6, 100
    if _holds_room(image):
        share[[HOME, RETURN]] = 20, 60
        share[TRADE] = min(share[TRADE], 3)
    mix: Floats = np.cumsum(share) / share.sum()
    return mix


def _pulls(tier: Tier) -> float:
    """Return the first temperature of the pull towards full and empty nodes; 0 where nothing asks for room."""
    terms = [weighted.term for weighted in tier.terms]
    wants_room = any(isinstance(term, Open | Unplaced) for term in terms)
    return 0.3 if wants_room and not any(isinstance(term, CURVES) for term in terms) else 0.0
