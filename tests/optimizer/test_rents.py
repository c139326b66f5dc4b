"""Room that moved pods hold on the nodes they left: what the search books of them, and how it begins."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from models.arrays import Ints
from models.problem import Capacity, Problem
from optimizer.control import Deadline
from optimizer.evaluate import Judge
from optimizer.search.annealing import anneal
from optimizer.search.imaging import image_of
from optimizer.search.kernel import layout as at
from optimizer.search.kernel.moves import shift
from optimizer.search.temperature import Race
from tests.support.problems import random_company


def _held(problem: Problem, where: Ints, held: list[int]) -> int:
    """Count what moved pods hold, class by class."""
    classes = np.repeat(np.arange(len(problem.classes)), problem.size)
    now = Counter(zip(classes.tolist(), where.tolist(), strict=True))
    return sum(held[c] * max(0, k - now[c, n]) for c, n, k in problem.start.entries())


@pytest.mark.parametrize("seed", range(60))
def test_held_room_follows_every_move(seed: int) -> None:
    problem = random_company(seed)
    image = image_of(Judge(problem), problem.start)
    tiers = len(problem.tiers)
    held = image.cls[:, image.head[at.H_C_MOVE] + tiers].tolist()
    base = int(image.value[tiers + at.HELD]) - _held(problem, image.pod[:, at.P_NODE], held)
    rng = random.Random(seed)
    for _ in range(100):
        p, target = rng.randrange(problem.pods), rng.randrange(len(problem.nodes) + 1)
        if image.pod[p, at.P_NODE] != target:
            shift(image, p, target)
        assert image.value[tiers + at.HELD] - base == _held(problem, image.pod[:, at.P_NODE], held)


def test_only_capacities_that_stay_charged_are_held() -> None:
    some = False
    for seed in range(60):
        problem = random_company(seed)
        image = image_of(Judge(problem), problem.start)
        held = image.cls[:, image.head[at.H_C_MOVE] + len(problem.tiers)]
        charged = [rule for rule in problem.rules if isinstance(rule, Capacity) and rule.held_on_source]
        assert held.any() == any(rule.demand.any() for rule in charged)
        some = some or bool(charged)
    assert some


@pytest.mark.parametrize("walkers", [1, 2, 3])
def test_a_race_goes_on_around_what_won(walkers: int) -> None:
    uphill = np.arange(100, 10_100, 10, dtype=np.int64)
    race = Race(uphill)
    first = race.starts(walkers)
    assert len(first) == walkers
    assert all(start.hot >= start.cold > 0 for start in first)
    for _ in range(6):
        starts = race.starts(walkers)
        race.learn(starts, 0)
        after = race.starts(walkers)
        low, high = min(s.hot for s in after), max(s.hot for s in after)
        assert low <= starts[0].hot * 1.001
        assert starts[0].hot <= high * 1.001
        long = race.lengthened(walkers)
        assert low <= min(start.hot for start in long) * 1.001
        assert walkers == 1 or max(start.hot for start in long) > high
    warm = race.reheated(walkers)
    assert all(start.cold <= start.hot < max(s.hot for s in race.starts(walkers)) for start in warm)


def test_only_the_first_race_for_the_temperature_begins_afresh() -> None:
    for tight in (False, True):
        race, afresh = Race(np.arange(100, 10_100, 10, dtype=np.int64), tight=tight), []
        for _ in range(4):
            starts = race.starts(2)
            afresh.append(race.afresh)
            race.learn(starts, 1)
        assert afresh == [False, True, False, False] if tight else [True, False, False, False]


@pytest.mark.parametrize("seed", range(10))
def test_annealing_with_rents_stays_legal(seed: int) -> None:
    problem = random_company(seed)
    judge = Judge(problem)
    found = judge.evaluate(anneal(judge, problem.start, Deadline(0.2, deterministic=True), seed))
    assert found.legal
    assert found.values <= judge.evaluate(problem.start).values
