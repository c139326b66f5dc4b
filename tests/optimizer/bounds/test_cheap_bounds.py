"""Emptying and water-filling bounds: no legal placement of a tiny problem is below them, and they are often met."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from stowplan.models.problem import (
    Capacity,
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
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.bounds.emptying import emptying_bound
from stowplan.optimizer.bounds.water_filling import water_filling_bound
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from tests.support.brute_force import legal_values, placements
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import CHOOSE
from tests.support.random_clusters import Setup, clusters, setups

HERE = Origin("test")


@cases(
    8,
    at_least={"above nothing": 1},
    cluster=clusters(broken=True),
    setup=setups("pack", "spread"),
    limit=st.integers(0, 4),
)
def test_no_placement_of_a_cluster_is_below(cluster: Snapshot, setup: Setup, limit: int) -> None:
    problem = replace(setup, max_moves=limit if limit < 4 else None).compile(cluster).problem
    values, upper = legal_values(problem), upper_bounds(problem)
    for tier in range(len(problem.tiers)):
        least = min(value[tier] for value in values)
        bounds = emptying_bound(problem, tier), water_filling_bound(problem, upper, tier)
        assert max(bounds) <= least
        count("above nothing", max(bounds) > 0)


def random_emptying(choices: Choices) -> Problem:
    """Build pods that stand anywhere, nodes with different costs, and domains with few places."""
    classes, nodes = choices.integer(1, 3), choices.integer(2, 4)
    size = choices.array(classes, 1, 3 if classes < 3 else 2)
    optional = choices.array(classes, 0, 1)
    start = Placement.of((c, choices.integer(0, nodes - 1), 1) for c in range(classes) for _ in range(size[c]))
    domain = choices.array(nodes, -1 if choices.chance(0.33) else 0, 1)
    held = choices.array(2, 0, 2)
    group = np.array(sorted(choices.some(range(classes), choices.integer(1, classes))))
    free = start.per_node(nodes) + choices.array(nodes, 0, 2)
    one = np.ones(classes, dtype=np.int64)
    curve = DomainCurve(HERE, group, Topology("zone", domain, ("a", "b")), held, CHOOSE)
    cost = choices.array(nodes, 0, 4) if choices.chance(0.5) else np.ones(nodes, dtype=np.int64)
    nodes_in_use = Open(HERE, cost, choices.array(nodes, 0, 1))
    return Problem(
        tuple(f"n{n}" for n in range(nodes)),
        tuple(f"c{c}" for c in range(classes)),
        size,
        optional,
        start,
        (Capacity(HERE, one, free, np.ones(nodes, dtype=np.int64)), MoveBudget(HERE, choices.integer(0, 4))),
        (Tier("nodes", (Weighted(2, nodes_in_use),)), Tier("spread", (Weighted(3, curve),))),
    )


@cases(38, at_least={"emptying met": 6, "water filling met": 6}, problem=drawn(random_emptying))
def test_no_placement_of_a_problem_made_of_arrays_is_below(problem: Problem) -> None:
    values, upper = legal_values(problem), upper_bounds(problem)
    for tier, bound, said in (
        (0, emptying_bound(problem, 0), "emptying met"),
        (1, water_filling_bound(problem, upper, 1), "water filling met"),
    ):
        least = min(value[tier] for value in values)
        assert bound <= least
        count(said, bound == least > 0)


@cases(8, at_least={"above nothing": 1}, problem=drawn(random_emptying))
def test_water_filling_is_exact_for_a_group_by_itself_with_room_for_all(problem: Problem) -> None:
    (curve,) = (weighted.term for weighted in problem.tiers[1].terms)
    assert isinstance(curve, DomainCurve)
    assume((curve.topology.domain >= 0).all())
    roomy = replace(problem, rules=(), optional=0 * problem.optional)
    evaluator = Evaluator(roomy)
    best = min(evaluator.evaluate(p).values[1] for p in placements(roomy) if p.count.sum() == roomy.pods)
    assert water_filling_bound(roomy, upper_bounds(roomy), 1) == best
    count("above nothing", best > 0)
