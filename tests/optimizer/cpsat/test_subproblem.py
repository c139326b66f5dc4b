"""A model of a part of a placement finds what enumeration finds among the placements that agree in the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

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
from tests.optimizer.test_each_rule import CASES, Case
from tests.support.brute_force import agreeing
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.problems import ints, random_affinity, random_legal_move, random_problem
from tests.support.random_clusters import random_cluster, random_setup

MEANINGFUL = {"better": 2, "frozen": 4}
"""How often a part has to be worth solving, and to leave pods where they are."""


@dataclass(frozen=True)
class Part:
    """A problem, a legal placement of it, and what of that is free."""

    problem: Problem
    incumbent: Placement
    free: Free


def random_part(choices: Choices, problem: Problem, moved: float = 0.7) -> Part:
    """Move some pods, and free some nodes and some of the classes that are there or wait.

    Parameters
    ----------
    moved
        In such a share of the cases; otherwise, and where moves lead to nothing legal, the start is the incumbent.
    """
    incumbent = problem.start
    if choices.chance(moved):
        incumbent = random_legal_move(choices, problem)
    nodes = sorted(choices.some(range(len(problem.nodes)), choices.integer(1, len(problem.nodes))))
    missing = problem.size - incumbent.placed(len(problem.classes))
    here = {c for c, n, _ in incumbent.entries() if n in nodes} | set(np.flatnonzero(missing).tolist())
    classes = choices.subset(sorted(here), 0.8)
    waiting = choices.subset(classes, 0.7)
    return Part(problem, incumbent, Free(*(np.array(part, dtype=np.int64) for part in (nodes, classes, waiting))))


def part_of_a_cluster(choices: Choices) -> Part:
    setup = random_setup(choices)
    return random_part(choices, setup.compile(random_cluster(choices, broken=None)).problem.steered)


def part_of_a_problem(choices: Choices) -> Part:
    return random_part(choices, random_problem(choices, broken=None))


def part_with_affinity(choices: Choices) -> Part:
    return random_part(choices, random_affinity(choices, broken=None))


def part_of_a_case(choices: Choices, case: Case) -> Part:
    return random_part(choices, case.problem())


def check(part: Part) -> None:
    """Solve a part tier by tier, and compare with enumeration."""
    problem, incumbent, free = part.problem, part.incumbent, part.free
    evaluator = Evaluator(problem)
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
    before = evaluator.evaluate(part.incumbent)
    count("better", tuple(reached) < before.values)
    count("frozen", len(outside(part.incumbent, free).cls) > 0)


def outside(placement: Placement, free: Free) -> Placement:
    entries = placement.entries()
    return Placement.of((c, n, k) for c, n, k in entries if c not in free.classes or n not in free.nodes)


@cases(23, at_least=MEANINGFUL, part=drawn(part_of_a_cluster))
def test_a_part_of_a_cluster_is_solved_to_the_optimum(part: Part) -> None:
    check(part)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_part_of_each_case_is_solved_to_the_optimum(case: Case) -> None:
    @cases(3, part=drawn(part_of_a_case, case))
    def solved(part: Part) -> None:
        check(part)

    solved()


@cases(40, at_least=MEANINGFUL, part=drawn(part_of_a_problem))
def test_a_part_of_a_problem_that_no_cluster_compiles_to_is_solved_to_the_optimum(part: Part) -> None:
    check(part)


@cases(60, at_least=MEANINGFUL, part=drawn(part_with_affinity))
def test_a_part_of_pods_with_affinity_is_solved_to_the_optimum(part: Part) -> None:
    """What others may do depends on frozen pods, and what frozen pods may depends on others."""
    check(part)


def part_with_curves(choices: Choices) -> Part:
    """Return a part of a problem with two curves in a tier, and with a later tier."""
    problem = random_problem(choices, broken=None)
    *first, curve, rest = problem.tiers
    # Pods that no curve counts are free to go where it costs less.
    counted = choices.array(len(problem.classes), 0, 1)
    loads = [replace(w, term=replace(w.term, demand=w.term.demand * counted)) for w in curve.terms[:1]]
    terms = (*loads, *curve.terms[1:], *rest.terms, Weighted(3, evenness(choices, problem)))
    tiers = (*first, Tier("curves", terms), Tier("later", (wishes(choices, problem),)))
    return random_part(choices, replace(problem, tiers=tiers), moved=1.0)


@cases(30, at_least=MEANINGFUL, part=drawn(part_with_curves))
def test_a_part_with_curves_held_keeps_to_each_and_is_best_in_the_rest(part: Part) -> None:
    problem, incumbent, free = part.problem, part.incumbent, part.free
    *first, curves, _ = problem.tiers
    terms = curves.terms
    evaluator, tier = Evaluator(problem), len(first)
    values = evaluator.evaluate(incumbent).values

    def held(placement: Placement) -> list[int]:
        return [cost(w.term, problem, placement, 0) for w in terms if isinstance(w.term, CURVES)]

    def worth(placement: Placement) -> list[int]:
        others = sum(w.weight * cost(w.term, problem, placement, 0) for w in terms if not isinstance(w.term, CURVES))
        return [others, evaluator.evaluate(placement).values[-1]]

    def admits(placement: Placement) -> bool:
        evaluation = evaluator.evaluate(placement)
        now, before = [*evaluation.values[:tier], *held(placement)], [*values[:tier], *held(incumbent)]
        return evaluation.legal and all(a <= b for a, b in zip(now, before, strict=True))

    assert len(held(incumbent)) == 2
    expected = min(worth(placement) for placement in agreeing(problem, incumbent, free) if admits(placement))
    for lexicographic in (False, True):
        options = {"lexicographic": lexicographic, "curves_held": True}
        restricted = build(Index(evaluator), tier, values[:tier], incumbent, values, free, **options)
        found = solve_task(Task(restricted.model, SolverLimits(work=20)))
        assert found.optimal
        assert found.values is not None
        placement = restricted.variables.placement(found.values)
        assert admits(placement)
        assert worth(placement)[: 1 + lexicographic] == expected[: 1 + lexicographic]
        assert outside(placement, free).same_as(outside(incumbent, free))
    count("better", expected < worth(incumbent))
    count("frozen", len(outside(incumbent, free).cls) > 0)


def evenness(choices: Choices, problem: Problem) -> DomainCurve:
    """Return a cost of how many pods of some of the first two classes there are on each node."""
    nodes = len(problem.nodes)
    topology = Topology("host", np.arange(nodes), problem.nodes)
    curves = Curves(ints([0, 1, 2])[None], ints([0, choices.integer(1, 3), 5])[None], ints([0, 0, 4])[None])
    return DomainCurve(HERE, ints(choices.subset([0, 1])), topology, np.zeros(nodes, dtype=np.int64), curves)


def wishes(choices: Choices, problem: Problem) -> Weighted:
    classes = len(problem.classes)
    return Weighted(1, Prefer(HERE, np.arange(classes), choices.array(problem.shape, 0, 9)))


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
