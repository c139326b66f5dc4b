"""Exact parts: what one of them does has no effect on the others, and their values add up to that of the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from stowplan.models.problem import NO_LIMIT, Allow, MoveBudget, Origin, Placement, Problem
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.parts.parameters import PartParameters
from stowplan.optimizer.parts.partition import Part, exact_parts
from stowplan.optimizer.parts.restricted import RestrictedProblem
from tests.support.cases import cases, count
from tests.support.choices import Choices, Seeded
from tests.support.problems import problems
from tests.support.random_clusters import Setup, clusters, setups

SEEDS = st.integers(0, 10**6)

EVERY = PartParameters(least_pairs=1, least_share=1e-9)
"""All parts, however small."""


@cases(
    120,
    at_least={"several parts": 10, "several parts, legal": 10, "several parts, illegal": 10},
    cluster=clusters(nodes=5, pods=8, pools=2),
    setup=setups(),
    seed=SEEDS,
)
def test_values_and_legality_of_a_cluster_are_those_of_its_parts(cluster: Snapshot, setup: Setup, seed: int) -> None:
    add_up(setup.compile(cluster).problem.steered, Seeded(seed))


@cases(60, at_least={"several parts": 5}, problem=problems(), seed=SEEDS)
def test_values_and_legality_of_problems_that_no_cluster_compiles_to_are_those_of_their_parts(
    problem: Problem, seed: int
) -> None:
    """Classes of even numbers may use nodes of even numbers, and odd ones odd ones."""
    even, odd = (np.arange(len(problem.nodes)) % 2 == remainder for remainder in (0, 1))
    allow = Allow(Origin("test"), np.arange(len(problem.classes)) % 2, np.stack([even, odd]))
    start = Placement.of((c, n, k) for c, n, k in problem.start.entries() if c % 2 == n % 2)
    divided = replace(problem, rules=(*problem.rules, allow), start=start, optional=problem.size)
    add_up(divided, Seeded(seed))


def add_up(problem: Problem, chosen: Choices) -> None:
    upper = upper_bounds(problem)
    parts = exact_parts(problem, upper, EVERY)
    apart(parts)
    restricted = [RestrictedProblem(problem, part) for part in parts]
    whole, inner = Evaluator(problem), [Evaluator(part.problem) for part in restricted]
    start = whole.evaluate(problem.start).values
    starts = [each.evaluate(part.problem.start).values for each, part in zip(inner, restricted, strict=True)]
    if len(parts) > 1:
        count("several parts")
        budget = MoveBudget(Origin("test"), NO_LIMIT)
        assert exact_parts(replace(problem, rules=(*problem.rules, budget)), upper, EVERY) == []
    for _ in range(5):
        placement = problem.start
        for part in restricted:
            placement = part.outside(placement, part.inside(anywhere(chosen, problem, upper)))
        now = whole.evaluate(placement)
        found = [each.evaluate(part.inside(placement)) for each, part in zip(inner, restricted, strict=True)]
        for t, value in enumerate(now.values):
            change = sum(one.values[t] - before[t] for one, before in zip(found, starts, strict=True))
            assert value - start[t] == change
        if parts:
            assert now.legal == all(one.legal for one in found)
            assert now.moves == sum(one.moves for one in found)
        if len(parts) > 1:
            count("several parts, legal" if now.legal else "several parts, illegal")


def anywhere(chosen: Choices, problem: Problem, upper: NDArray[np.int32]) -> Placement:
    """Return a placement of all pods but some that may wait, each on a node that is open to it."""
    entries = []
    for c in range(len(problem.classes)):
        open_to = np.flatnonzero(upper[c])
        for pod in range(int(problem.size[c])):
            if len(open_to) and (pod >= problem.optional[c] or chosen.chance(0.6)):
                entries.append((c, chosen.one(open_to.tolist()), 1))
    return Placement.of(entries)


def apart(parts: list[Part]) -> None:
    for kind in ("classes", "nodes"):
        total = sum((getattr(part, kind).astype(int) for part in parts), start=np.zeros(1, dtype=int))
        assert total.max() <= 1
    assert [part.pairs for part in parts] == sorted(part.pairs for part in parts)
    assert len(parts) != 1
