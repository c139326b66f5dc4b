"""The master of patterns: it raises bounds above those of subgradient steps, up to its own value and no further."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.settings import Settings
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.final_state.bound import FinalStateBound
from stowplan.optimizer.final_state.master import Load, PatternMaster
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.settings.problem import make_problem

NONE = np.zeros(1, dtype=np.int64)
PATTERNS = replace(FinalStateParameters(), most_steps=20)
SUBGRADIENT = replace(PATTERNS, largest_program=0)


@pytest.mark.parametrize("seed", range(2))
def test_patterns_raise_the_bound(seed: int) -> None:
    problem = make_problem(synthetic_snapshot(8, 40, seed, fill=0.5), Settings(objective="global")).problem
    tier = problem.tiers[-1]
    assert tier.final is not None
    value = Evaluator(problem).evaluate(problem.start).values[-1]
    parts, upper = tier.final.relaxation(problem.start), upper_bounds(problem)
    steps, patterns = (
        FinalStateBound(problem, tier, parts, upper, problem.start, value, parameters).solve(
            Deadline(4, deterministic=True)
        )
        for parameters in (SUBGRADIENT, PATTERNS)
    )
    assert max(0.0, 1.02 * steps) < patterns <= value


def test_duals_of_two_nodes_and_a_curve() -> None:
    """Two pods of one class; both on the first node cost 6, one on each node 2 and 3, a unit of the second's load 1."""
    load = Load(np.ones(1), np.zeros(2), np.array([False, True]))
    master = PatternMaster(
        np.array([2]),
        np.array([0]),
        np.zeros(1),
        np.ones((1, 1)),
        np.array([[2.0, 2.0]]),
        [load],
        None,
        6.0,
        np.zeros(1),
        np.zeros(1),
    )
    assert master.add_pattern(0, np.array([2]), 6.0, NONE)
    assert not master.add_pattern(0, np.array([2]), 6.0, NONE)
    assert master.add_pattern(0, np.array([1]), 2.0, NONE)
    assert master.add_pattern(1, np.array([1]), 3.0, NONE)
    assert master.add_load(0, 1, 0.0, 0.0)
    assert master.add_load(0, 1, 2.0, 2.0)
    found = master.solve(None)
    assert found is not None
    # No pattern and no load has a negative reduced cost, and the dual is the cost of the best mixture: 2 + 3 + 1.
    price, room, slope = found.price[0], found.room[0], found.slopes[0]
    first = min(0.0, 6 - 2 * price + 2 * room[0], 2 - price + room[0])
    second = min(0.0, 3 - price + room[1] + slope[1])
    lowest = min(0.0, 2 - 2 * slope[1])
    assert 2 * price + first + second + lowest - 2 * room.sum() == pytest.approx(6.0)
    assert found.moves == 0.0


def test_no_duals_without_a_solution() -> None:
    master = PatternMaster(
        np.array([2]),
        np.array([0]),
        np.zeros(1),
        np.zeros((0, 1)),
        np.zeros((0, 2)),
        [],
        1.0,
        6.0,
        np.zeros(1),
        np.ones(1),
    )
    master.add_pattern(0, np.array([1]), 6.0, NONE)
    assert master.solve(None) is None
