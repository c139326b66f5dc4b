"""Emptying and water-filling bounds: no legal placement of a tiny problem is below them, and they are often met."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.problem import (
    Capacity,
    Curves,
    DomainCurve,
    MoveBudget,
    Open,
    Origin,
    Placement,
    Problem,
    Tier,
    Topology,
    Weighted,
)
from stowplan.optimizer.bounds.emptying import emptying_bound
from stowplan.optimizer.bounds.water_filling import water_filling_bound
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.brute_force import legal_values, placements
from tests.support.clusters import random_cluster

HERE = Origin("test")
CHOOSE = Curves(
    np.array([[0, 1, 2, 3, 4, 5, 6]]), np.array([[0, 1, 2, 3, 4, 5, 6]]), np.array([[0, 0, 1, 3, 6, 10, 15]])
)
"""Pairs of pods in one domain, up to 7 pods."""


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("objective", ["pack", "spread"])
def test_no_placement_of_a_cluster_is_below(seed: int, objective: str) -> None:
    snapshot = random_cluster(seed, broken=seed % 2 == 1)
    problem = compile_problem(
        snapshot, default_profile(K36), PRESETS[objective], max_moves=seed % 4 if objective == "pack" else None
    ).problem
    values, upper = legal_values(problem), upper_bounds(problem)
    for tier in range(len(problem.tiers)):
        least = min(value[tier] for value in values)
        assert emptying_bound(problem, tier) <= least
        assert water_filling_bound(problem, upper, tier) <= least


def made(seed: int) -> Problem:
    """Return a random problem of pods that stand anywhere, nodes with different costs, and domains with few places."""
    rng = np.random.default_rng(seed)
    classes, nodes = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    size = rng.integers(1, 4 if classes < 3 else 3, classes)
    optional = rng.integers(0, 2, classes)
    start = Placement.of((c, int(rng.integers(nodes)), 1) for c in range(classes) for _ in range(size[c]))
    domain = rng.integers(-1 if seed % 3 == 0 else 0, 2, nodes)
    held = rng.integers(0, 3, 2)
    group = np.sort(rng.choice(classes, int(rng.integers(1, classes + 1)), replace=False))
    free = start.per_node(nodes) + rng.integers(0, 3, nodes)
    one = np.ones(classes, dtype=np.int64)
    curve = DomainCurve(HERE, group, Topology("zone", domain, ("a", "b")), held, CHOOSE)
    cost = rng.integers(0, 5, nodes) if seed % 2 else np.ones(nodes, dtype=np.int64)
    nodes_in_use = Open(HERE, cost, rng.integers(0, 2, nodes))
    return Problem(
        tuple(f"n{n}" for n in range(nodes)),
        tuple(f"c{c}" for c in range(classes)),
        size,
        optional,
        start,
        (Capacity(HERE, one, free, np.ones(nodes, dtype=np.int64)), MoveBudget(HERE, int(rng.integers(0, 5)))),
        (Tier("nodes", (Weighted(2, nodes_in_use),)), Tier("spread", (Weighted(3, curve),))),
    )


@pytest.mark.parametrize("seed", range(150))
def test_no_placement_of_a_made_problem_is_below(seed: int) -> None:
    problem = made(seed)
    values, upper = legal_values(problem), upper_bounds(problem)
    assert emptying_bound(problem, 0) <= min(value[0] for value in values)
    assert water_filling_bound(problem, upper, 1) <= min(value[1] for value in values)


def test_they_are_often_met() -> None:
    """Also: without the limit on moves and with room for all, water filling is exact for a group by itself."""
    emptied = spread = 0
    for seed in range(1, 25):
        problem = made(seed)
        evaluator = Evaluator(problem)
        emptied += emptying_bound(problem, 0) == min(value[0] for value in legal_values(problem))
        roomy = replace(problem, rules=(), optional=0 * problem.optional)
        best = min(evaluator.evaluate(p).values[1] for p in placements(roomy) if p.count.sum() == roomy.pods)
        spread += water_filling_bound(roomy, upper_bounds(roomy), 1) == best
        if seed % 3:
            assert water_filling_bound(roomy, upper_bounds(roomy), 1) == best
    assert emptied >= 6
    assert spread >= 16
