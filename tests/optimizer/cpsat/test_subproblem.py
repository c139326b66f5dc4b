"""A model of a part of a placement finds what enumeration finds among the placements that agree in the rest.

``STOWPLAN_SEEDS`` sets how many clusters are tried.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import numpy as np
import pytest

from stowplan.models.objective import PRESETS
from stowplan.models.problem import (
    CURVES,
    AtMost,
    Capacity,
    Curves,
    DomainCurve,
    MoveBudget,
    Origin,
    Placement,
    Prefer,
    Problem,
    Rule,
    Spread,
    Tier,
    Topology,
    Weighted,
)
from stowplan.optimizer.cpsat.solve import build, solve_tier
from stowplan.optimizer.cpsat.task import SolverLimits, Task, solve_task
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import cost
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.scope import Free
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36
from tests.optimizer.test_each_rule import CASES, Case
from tests.support.brute_force import agreeing
from tests.support.clusters import random_cluster
from tests.support.problems import ints, random_affinity, random_problem, random_start

SEEDS = range(int(os.environ.get("STOWPLAN_SEEDS", "80")))
NAMES = list(PRESETS)
TRIED = 60
"""Placements that are looked at for a legal one to start from."""


def random_part(problem: Problem, incumbent: Placement, rng: random.Random) -> Free:
    """Free some nodes, and some of the classes that stand there or wait."""
    nodes = sorted(rng.sample(range(len(problem.nodes)), rng.randint(1, len(problem.nodes))))
    missing = problem.size - incumbent.placed(len(problem.classes))
    here = {c for c, n, _ in incumbent.entries() if n in nodes} | set(np.flatnonzero(missing).tolist())
    classes = sorted(c for c in here if rng.random() < 0.8)
    waiting = sorted(c for c in classes if rng.random() < 0.7)
    return Free(*(np.array(part, dtype=np.int64) for part in (nodes, classes, waiting)))


def random_legal(evaluator: Evaluator, rng: random.Random) -> Placement:
    """Return a legal placement found by chance; the start is always one."""
    tried = (random_start(evaluator.problem, rng) for _ in range(TRIED))
    return next((placement for placement in tried if evaluator.evaluate(placement).legal), evaluator.problem.start)


def check(problem: Problem, seed: int) -> None:
    """Solve a random part tier by tier, and compare with enumeration."""
    evaluator, rng = Evaluator(problem), random.Random(seed)
    incumbent = random_legal(evaluator, rng) if rng.random() < 0.7 else problem.start
    free = random_part(problem, incumbent, rng)
    around = [evaluator.evaluate(placement) for placement in agreeing(problem, incumbent, free)]
    expected = min(evaluation.values for evaluation in around if evaluation.legal)
    reached: list[int] = []
    for tier in range(len(problem.tiers)):
        attempt = solve_tier(evaluator, tier, reached, incumbent, Deadline(20, deterministic=True), free=free)
        assert attempt.optimal
        assert attempt.placement is not None
        evaluation = evaluator.evaluate(attempt.placement)
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


@pytest.mark.parametrize("seed", range(3 * len(SEEDS)))
def test_a_part_of_random_company(seed: int) -> None:
    """What others may do depends on frozen pods, and what frozen pods may depends on others."""
    check(random_affinity(seed, broken=seed % 2 == 1), seed)


@pytest.mark.parametrize("lexicographic", [False, True])
@pytest.mark.parametrize("seed", range(2 * len(SEEDS)))
def test_a_part_with_curves_held_keeps_to_each_and_is_best_in_the_rest(seed: int, lexicographic: bool) -> None:
    problem, rng = random_problem(seed, broken=seed % 2 == 1), random.Random(seed)
    *first, curve, rest = problem.tiers
    terms = (*curve.terms, *rest.terms, Weighted(3, evenness(problem, rng)))
    problem = replace(problem, tiers=(*first, Tier("curves", terms), Tier("later", (wishes(problem, rng),))))
    evaluator, tier = Evaluator(problem), len(first)
    incumbent = random_legal(evaluator, rng)
    free = random_part(problem, incumbent, rng)
    values = evaluator.evaluate(incumbent).values

    def held(placement: Placement) -> list[int]:
        return [cost(w.term, problem, placement, 0) for w in terms if isinstance(w.term, CURVES)]

    def worth(placement: Placement) -> list[int]:
        others = sum(w.weight * cost(w.term, problem, placement, 0) for w in terms if not isinstance(w.term, CURVES))
        return [others, evaluator.evaluate(placement).values[-1]][: 1 + lexicographic]

    def admits(placement: Placement) -> bool:
        evaluation = evaluator.evaluate(placement)
        now, before = [*evaluation.values[:tier], *held(placement)], [*values[:tier], *held(incumbent)]
        return evaluation.legal and all(a <= b for a, b in zip(now, before, strict=True))

    assert len(held(incumbent)) == 2
    expected = min(worth(placement) for placement in agreeing(problem, incumbent, free) if admits(placement))
    options = {"lexicographic": lexicographic, "curves_held": True}
    restricted = build(Index(evaluator), tier, values[:tier], incumbent, values, free, **options)
    found = solve_task(Task(restricted.model, SolverLimits(work=20)))
    assert found.optimal
    assert found.values is not None
    placement = restricted.variables.placement(found.values)
    assert admits(placement)
    assert worth(placement) == expected
    assert outside(placement, free).same_as(outside(incumbent, free))


def evenness(problem: Problem, rng: random.Random) -> DomainCurve:
    """Return a cost of how many pods of the first two classes there are on each node."""
    nodes = len(problem.nodes)
    topology = Topology("host", np.arange(nodes), problem.nodes)
    curves = Curves(ints([0, 1, 2])[None], ints([0, rng.randint(1, 3), 5])[None], ints([0, 0, 4])[None])
    return DomainCurve(HERE, ints([0, 1]), topology, np.zeros(nodes, dtype=np.int64), curves)


def wishes(problem: Problem, rng: random.Random) -> Weighted:
    classes, nodes = problem.shape
    table = ints([rng.randint(0, 9) for _ in range(classes * nodes)]).reshape(classes, nodes)
    return Weighted(1, Prefer(HERE, np.arange(classes), table))


# -- what frozen pods forbid, each case alone -------------------------------------------------------------------

HERE = Origin("test")


def tempted(rules: list[Rule], start: Placement, table: list[list[int]], size: list[int]) -> Problem:
    """Build a problem in which pods would rather be where ``table`` costs nothing."""
    classes, nodes = len(size), len(table[0])
    # No tier for repair: the rules alone have to keep pods where they are.
    tiers = (Tier("wish", (Weighted(1, Prefer(HERE, np.arange(classes), ints(table))),)),)
    names = tuple(f"n{n}" for n in range(nodes)), tuple(f"c{c}" for c in range(classes))
    return Problem(*names, ints(size), ints([0] * classes), start, tuple(rules), tiers)


def stays(problem: Problem, incumbent: Placement, nodes: list[int], classes: list[int]) -> None:
    """Check that a part has to stay as it is, although something better is in reach."""
    evaluator = Evaluator(problem)
    assert evaluator.evaluate(incumbent).legal
    free = Free(ints(nodes), ints(classes), ints([]))
    values = evaluator.evaluate(incumbent).values
    attempt = solve_tier(evaluator, 0, [], incumbent, Deadline(5, deterministic=True), free=free)
    assert attempt.optimal
    assert attempt.placement is not None
    assert attempt.placement.same_as(incumbent)
    assert attempt.bound == values[0] > 0


def test_a_frozen_domain_does_not_become_uneven_because_another_empties() -> None:
    # 2, 1 and 1 pods; the last would rather be on n3, which is in no domain. Then n0 had 2 more than n2.
    hosts = Topology("host", ints([0, 1, 2, -1]), ("a", "b", "c"))
    none = ints([0, 0, 0])
    rule = Spread(HERE, ints([0]), ints([0]), hosts, 1, 1, none, none)
    start = Placement.of([(0, 0, 2), (0, 1, 1), (0, 2, 1)])
    stays(tempted([rule], start, [[0, 0, 1, 0]], [4]), start, [2, 3], [0])


def test_nobody_comes_back_to_a_mended_place_where_a_frozen_pod_has_come() -> None:
    # Two of class 0 stood on n0, where one may. Both left, and one of class 1 came: n0 may not be exceeded again.
    rule = AtMost(HERE, ints([0, 1]), Topology("host", ints([0, -1]), ("a",)), 1, ints([0]))
    start = Placement.of([(0, 0, 2), (1, 1, 1)])
    incumbent = Placement.of([(0, 1, 2), (1, 0, 1)])
    stays(tempted([rule], start, [[0, 1], [0, 0]], [2, 1]), incumbent, [0, 1], [0])


def test_frozen_pods_have_used_up_the_budget_of_moves() -> None:
    start = Placement.of([(0, 0, 1), (1, 0, 1)])
    incumbent = Placement.of([(0, 1, 1), (1, 0, 1)])
    stays(tempted([MoveBudget(HERE, 1)], start, [[0, 0], [1, 0]], [1, 1]), incumbent, [0, 1], [1])


def test_a_frozen_pod_that_has_come_takes_room_beside_those_that_left() -> None:
    # n0 has room for two: what stood there at the start, although it left, and class 1, which came.
    rule = Capacity(HERE, ints([1, 1, 1]), ints([2, 9]), ints([1, 1]), held_on_source=True)
    start = Placement.of([(0, 0, 1), (1, 1, 1), (2, 1, 1)])
    incumbent = Placement.of([(0, 1, 1), (1, 0, 1), (2, 1, 1)])
    stays(tempted([rule], start, [[0, 0], [0, 0], [0, 1]], [1, 1, 1]), incumbent, [0, 1], [2])
