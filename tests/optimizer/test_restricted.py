"""A model of a part of a placement finds what enumeration finds among the placements that agree in the rest.

``STOWPLAN_SEEDS`` sets how many clusters are tried.
"""

from __future__ import annotations

import itertools
import os
import random

import numpy as np
import pytest

from models.objective import PRESETS
from models.problem import Placement, Problem
from optimizer.control import Deadline
from optimizer.cpsat.scope import Free
from optimizer.cpsat.solve import solve_tier
from optimizer.evaluate import Judge
from plugins_compat.compiler.compile import compile_problem
from plugins_compat.profiles import default_profile
from plugins_compat.release import K24, K36
from tests.optimizer.test_each_rule import CASES, Case
from tests.support.brute_force import agreeing, placements
from tests.support.clusters import random_cluster
from tests.support.problems import random_problem

SEEDS = range(int(os.environ.get("STOWPLAN_SEEDS", "120")))
NAMES = list(PRESETS)
TRIED = 400
"""Placements that are looked at for a legal one to start from."""


def random_part(problem: Problem, incumbent: Placement, rng: random.Random) -> Free:
    """Free some nodes, and some of the classes that stand there or wait."""
    nodes = sorted(rng.sample(range(len(problem.nodes)), rng.randint(1, len(problem.nodes))))
    missing = problem.size - incumbent.placed(len(problem.classes))
    here = {c for c, n, _ in incumbent.entries() if n in nodes} | set(np.flatnonzero(missing).tolist())
    classes = sorted(c for c in here if rng.random() < 0.8)
    waiting = sorted(c for c in classes if rng.random() < 0.7)
    return Free(*(np.array(part, dtype=np.int64) for part in (nodes, classes, waiting)))


def random_legal(judge: Judge, rng: random.Random) -> Placement:
    """Return one of the first legal placements, in an order by chance; the start is always one."""
    tried = list(itertools.islice(placements(judge.problem), TRIED))
    rng.shuffle(tried)
    legal = (placement for placement in tried[:40] if judge.evaluate(placement).legal)
    return next(legal, judge.problem.start)


def check(problem: Problem, seed: int) -> None:
    """Solve a random part tier by tier, and compare with enumeration."""
    judge, rng = Judge(problem), random.Random(seed)
    incumbent = random_legal(judge, rng) if rng.random() < 0.7 else problem.start
    free = random_part(problem, incumbent, rng)
    around = [judge.evaluate(placement) for placement in agreeing(problem, incumbent, free)]
    expected = min(evaluation.values for evaluation in around if evaluation.legal)
    reached: list[int] = []
    for tier in range(len(problem.tiers)):
        attempt = solve_tier(judge, tier, reached, incumbent, Deadline(20, deterministic=True), free=free)
        assert attempt.optimal
        assert attempt.placement is not None
        evaluation = judge.evaluate(attempt.placement)
        assert evaluation.legal
        assert list(evaluation.values[:tier]) == reached
        assert evaluation.values[tier] == attempt.bound
        assert outside(attempt.placement, free).same_as(outside(incumbent, free))
        reached.append(evaluation.values[tier])
        incumbent = attempt.placement
    assert tuple(reached) == expected


def outside(placement: Placement, free: Free) -> Placement:
    entries = placement.entries()
    return Placement.of((c, n, k) for c, n, k in entries if c not in free.classes or n not in free.nodes)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_part_of_a_random_cluster(seed: int) -> None:
    objective = PRESETS[NAMES[seed % len(NAMES)]]
    if seed % 7 == 0:
        objective = objective.model_copy(update={"preemption": "by-priority"})
    profile = default_profile(K24 if seed % 3 == 0 else K36)
    snapshot = random_cluster(seed, broken=seed % 2 == 1)
    check(compile_problem(snapshot, profile, objective, max_moves=2 if seed % 11 == 0 else None).problem, seed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_part_of_each_case(case: Case, seed: int) -> None:
    check(case.problem(), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_part_of_a_random_problem(seed: int) -> None:
    check(random_problem(seed, broken=seed % 2 == 1), seed)
