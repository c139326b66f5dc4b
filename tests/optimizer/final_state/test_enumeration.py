"""Placements are listed once each, and counted before they are listed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import strategies as st

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.final_state.enumeration import Enumeration
from stowplan.settings.problem import make_problem
from tests.support.cases import cases, count
from tests.support.random_clusters import clusters


@cases(
    30,
    at_least={"several": 5},
    cluster=clusters(),
    limit=st.integers(0, 3),
    most=st.integers(0, 3),
)
def test_rows_of_a_class_are_those_within_the_limit(cluster: Snapshot, limit: int, most: int) -> None:
    problem = make_problem(cluster, Settings(objective="kube", max_moves=limit)).problem
    classes, nodes = problem.shape
    upper = np.full((classes, nodes), most, dtype=np.int64)
    rows = Enumeration(problem, upper, 10**6).rows
    assert rows is not None
    start = problem.start.table(classes, nodes)
    for c in range(classes):
        size, optional = int(problem.size[c]), int(problem.optional[c])
        held = start[c].tolist()
        expected = []
        for row in product(*(range(max(min(most, size), pods) + 1) for pods in held)):
            moves = sum(max(0, before - now) for before, now in zip(held, row, strict=True))
            if moves <= limit and size - optional <= sum(row) <= size:
                expected.append((moves, row))
        assert sorted(rows[c]) == sorted(expected)
        count("several", len(expected) > 1)


@pytest.mark.parametrize("limit", [1, 2, None])
def test_many_placements_of_a_large_cluster_are_not_listed(limit: int | None) -> None:
    problem = make_problem(synthetic_snapshot(100, 900, 102), Settings(objective="kube", max_moves=limit)).problem
    every = Enumeration(problem, np.full(problem.shape, 5, dtype=np.int64), 4_000)
    assert every.rows is None
    with pytest.raises(ValueError, match="too many placements"):
        next(every.placements())
