"""Load duals of the relaxation of single nodes: any are valid, and these are better than those of a placement."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.settings import Settings
from stowplan.optimizer.bounds.interior_point import Dual
from stowplan.optimizer.bounds.lagrangian import LagrangianDual, side_duals, whole
from stowplan.optimizer.bounds.node_programs import Programs, node_programs
from stowplan.optimizer.bounds.node_relaxation import relaxed_load_duals
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.node_changes.generation import patterns_by_program, patterns_of, slopes
from stowplan.settings.problem import make_problem


@pytest.fixture(scope="module")
def programs() -> Programs:
    problem = make_problem(synthetic_snapshot(30, 300, 5), Settings(max_moves=10)).problem
    evaluator = Evaluator(problem)
    *reached, _ = evaluator.evaluate(problem.start).values
    found = node_programs(evaluator, upper_bounds(problem), len(reached), reached, 10**6, 10**4)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(6))
def test_they_bound_nodes_better_than_the_slopes_at_the_start(programs: Programs, seed: int) -> None:
    random = np.random.default_rng(seed)
    tables = programs.tables
    at_start = slopes(tables, patterns_by_program(programs, tables.start[programs.program]))
    costs = (tables.linear + at_start @ tables.demand).min(axis=0)
    multipliers = costs * random.uniform(0.9, 1.1, len(costs))
    prices = np.full(len(programs.limits.most), random.uniform(0.1, 2.0) * np.abs(costs).mean())
    dual = Dual(multipliers, at_start, prices)
    penalized = programs.penalized(side_duals(programs, dual))
    relaxed = relaxed_load_duals(penalized, whole(penalized, dual)[0])
    before, after = (
        LagrangianDual(programs, Dual(multipliers, loads, prices)) for loads in (at_start, relaxed.astype(np.float64))
    )
    assert (after.bounds >= before.bounds - 1e-3 * np.abs(before.bounds)).all()
    assert after.total > before.total


def test_where_nothing_pays_they_are_the_slopes_at_the_start(programs: Programs) -> None:
    tables = programs.tables
    dear = programs.penalized(np.full(len(programs.limits.most), 1 << 55))
    at_start = slopes(tables, patterns_by_program(programs, tables.start[programs.program]))
    worthless = np.full(len(programs.size), -(1 << 52))
    assert np.array_equal(relaxed_load_duals(dear, worthless), at_start)


def test_patterns_of_the_start_are_those_of_the_tables(programs: Programs) -> None:
    problem = make_problem(synthetic_snapshot(30, 300, 5), Settings(max_moves=10)).problem
    patterns = patterns_of(programs, len(problem.nodes), problem.start)
    assert np.array_equal(patterns, programs.tables.start[programs.program])
