"""Capacities in which some classes ask for less than nothing, as items of published packings do."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.instances.suites.packing import Packing, packing_problem
from stowplan.models.problem import Capacity, Open, Origin, Placement, Problem, Tier, Unplaced, Weighted
from stowplan.models.result import Status
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options, solve
from tests.support.brute_force import best


def answered(problem: Problem) -> None:
    """Solve, and compare with enumeration."""
    outcome = solve(problem, Options(time_limit=5, deterministic=True))
    assert outcome.status is Status.OPTIMAL
    assert outcome.values == best(problem)
    assert Evaluator(problem).evaluate(outcome.placement).legal
    assert not outcome.notes


@pytest.mark.parametrize("seed", range(12))
def test_bins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    packing = Packing(np.array([8, 9]), rng.integers(-3, 7, (5, 2)), np.ones(5, dtype=np.int64))
    answered(packing_problem(packing).problem)


@pytest.mark.parametrize("seed", range(12))
def test_nodes_some_of_which_hold_too_much(seed: int) -> None:
    rng = np.random.default_rng(seed)
    demand, free = rng.integers(-3, 6, 3), rng.integers(0, 7, 3)
    size = rng.integers(1, 3, 3)
    started = [(c, int(rng.integers(3)), 1) for c in range(3) if rng.random() < 0.7]
    start = Placement.of(started)
    names, ones, zero = ("a", "b", "c"), np.ones(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    tiers = (
        Tier("unplaced", (Weighted(1, Unplaced(Origin("unplaced"), ones)),)),
        Tier("open", (Weighted(1, Open(Origin("open"), ones, zero)),)),
    )
    rules = (Capacity(Origin("room"), demand, free, ones),)
    answered(Problem(names, names, size, size - start.placed(3), start, rules, tiers))
