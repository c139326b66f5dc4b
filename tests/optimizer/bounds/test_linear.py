"""Bounds are below what is best, and never above; tight where the relaxation is exact."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import PRESETS
from stowplan.models.problem import (
    Capacity,
    Curves,
    Devices,
    Move,
    MovePeak,
    NodeCurve,
    Open,
    Origin,
    Placement,
    Prefer,
    Problem,
    Rule,
    Term,
    Tier,
    Unplaced,
    Violation,
    Weighted,
)
from stowplan.models.result import Status
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.bounds import curve_lines, linear
from stowplan.optimizer.bounds.linear import groups_of, kinds_of, linear_bound, reading_of_term
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.domains import upper_bounds
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options, solve
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.optimizer.test_each_rule import CASES
from tests.support.brute_force import best
from tests.support.cases import cases, count
from tests.support.clusters import node, pod, snapshot
from tests.support.problems import ints, problems
from tests.support.random_clusters import Setup, clusters, setups

ENOUGH = 60.0
COARSE = BoundParameters(linear_fine=0)
"""Nodes are aggregated however few there are."""
MEANINGFUL = {"above nothing": 24, "above nothing with nodes aggregated": 16}


@cases(15, at_least=MEANINGFUL, cluster=clusters(), setup=setups())
def test_the_relaxation_of_a_cluster_is_never_above_the_optimum(cluster: Snapshot, setup: Setup) -> None:
    never_above(setup.compile(cluster).problem.steered)


@cases(30, at_least=MEANINGFUL, problem=problems())
def test_the_relaxation_of_a_problem_that_no_cluster_compiles_to_is_never_above_the_optimum(problem: Problem) -> None:
    never_above(problem)


def never_above(problem: Problem) -> None:
    """Ask node by node, and with the nodes aggregated, as it is done where there are too many."""
    evaluator, upper, values = Evaluator(problem), upper_bounds(problem), best(problem)
    for parameters, said in ((None, "above nothing"), (COARSE, "above nothing with nodes aggregated")):
        for tier, value in enumerate(values):
            bound = linear_bound(evaluator, upper, tier, values[:tier], ENOUGH, parameters)
            assert bound is not None
            assert bound <= value, problem.tiers[tier].name
            count(said, bound > 0)


def test_aggregated_and_single_nodes_bound_alike_where_nodes_are_alike() -> None:
    """Jensen's inequality loses nothing where the best load is the mean."""
    cluster = snapshot(nodes=[node(f"n{i}") for i in range(4)], pods=[pod(f"p{i}", "n0") for i in range(3)])
    problem = compile_problem(cluster, default_profile(K36), PRESETS["balance"]).problem
    evaluator, upper = Evaluator(problem), upper_bounds(problem)
    tier = len(problem.tiers) - 1
    single = linear_bound(evaluator, upper, tier, [0] * tier, ENOUGH)
    aggregated = linear_bound(evaluator, upper, tier, [0] * tier, ENOUGH, COARSE)
    assert single is not None
    assert aggregated is not None
    assert 0 < aggregated <= single


def test_few_lines_of_a_curve_bound_nearly_as_much_as_all(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_problem(synthetic_snapshot(12, 100, 1, fill=0.8), default_profile(K36), PRESETS["balance"])
    evaluator, upper = Evaluator(compiled.problem), upper_bounds(compiled.problem)
    tier = len(compiled.problem.tiers) - 1
    reached = evaluator.evaluate(compiled.problem.start).values[:tier]

    def bound() -> int:
        found = linear_bound(evaluator, upper, tier, reached, ENOUGH)
        assert found is not None
        return found

    few = bound()
    with monkeypatch.context() as once:  # with the first lines alone, to see that others matter
        once.setattr(linear, "ROUNDS", 1)
        first = bound()
    # More than a curve has: every line is a row at once, which is what few of them are measured against.
    monkeypatch.setattr(curve_lines, "FIRST", 100_000)
    every = bound()
    assert first < few <= every
    assert few >= 0.999 * every


@pytest.mark.parametrize("pods", [50, 70, 200, 330, 670, 1000])
def test_nodes_that_are_alike_are_bounded_as_if_all_lines_were_rows(pods: int) -> None:
    """Loads that a line was added for can go to another node of ten, where none was yet."""
    squares = np.arange(400)
    curves = Curves(squares[None], 2 * squares[None] + 1, squares[None] ** 2)
    term = NodeCurve(HERE, ints([1]), np.zeros(10, dtype=np.int64), np.zeros(10, dtype=np.int64), curves)
    problem = Problem(
        tuple(f"n{n}" for n in range(10)),
        ("web",),
        ints([pods]),
        ints([0]),
        Placement.of([(0, 0, pods)]),
        (),
        (Tier("squares", (Weighted(1, term),)),),
    )
    bound = linear_bound(Evaluator(problem), upper_bounds(problem), 0, (), ENOUGH)
    assert bound == pytest.approx(pods**2 / 10, rel=0.01)
    assert bound <= pods**2 // 10


def test_a_problem_too_large_for_the_exact_model_is_answered_with_a_bound() -> None:
    compiled = compile_problem(synthetic_snapshot(30, 200), default_profile(K36), PRESETS["balance"])
    start = Evaluator(compiled.problem).evaluate(compiled.problem.start)
    outcome = solve(compiled.problem, Options(time_limit=6, largest_model=0))
    assert any("too large for the exact model" in note for note in outcome.notes)
    last = outcome.tiers[-1]
    assert 0 < last.bound <= last.value < start.values[-1]
    assert last.bound_by == "Lagrangian relaxation"
    assert last.status is Status.FEASIBLE
    assert Evaluator(compiled.problem).evaluate(outcome.placement).legal


HERE = Origin("test")
LINES = Curves(np.array([[0], [0]]), np.array([[1], [9]]), np.array([[0], [0]]))


CLASSES_DIFFER: dict[str, Term | Rule] = {
    "Unplaced": Unplaced(HERE, ints([9, 1])),
    "Move": Move(HERE, ints([9, 1])),
    "MovePeak": MovePeak(HERE, 1, ints([0, 1])),
    "Prefer": Prefer(HERE, ints([0, 1]), np.array([[9, 9], [1, 1]])),
    "NodeCurve": NodeCurve(HERE, ints([9, 1]), ints([0, 0]), ints([0, 0]), LINES),
    "Capacity": Capacity(HERE, ints([9, 1]), ints([9, 9]), ints([1, 1])),
    "Devices": Devices(HERE, ints([2, 1]), ints([0, 0]), 12, ints([2, 2]), ints([0, 0]), ints([]), ints([])),
}
"""Terms and rules that say something else about each of two classes."""

NODES_DIFFER: dict[str, Term] = {
    "Prefer": Prefer(HERE, ints([0, 0]), np.array([[9, 1]])),
    "NodeCurve": NodeCurve(HERE, ints([1, 1]), ints([0, 0]), ints([1, 0]), LINES),
    "Open": Open(HERE, ints([9, 1]), ints([0, 0])),
    "Open in use": Open(HERE, ints([1, 1]), ints([1, 0])),
}
"""Terms that say something else about each of two nodes."""


def of_two(part: Term | Rule, *, waits: bool) -> Problem:
    """Return two pods on two nodes, where nothing but one term or rule tells classes or nodes apart."""
    rules = (part,) if isinstance(part, Rule) else ()
    terms = (Unplaced(HERE, ints([1, 1])),) if isinstance(part, Rule) else (part,)
    tiers = (Tier("only", tuple(Weighted(1, term) for term in terms)),)
    one, two = ints([1, 1]), ints([1, 1]) if waits else ints([0, 0])
    start = Placement.of([] if waits else [(0, 0, 1), (1, 1, 1)])
    return Problem(("a", "b"), ("m", "n"), one, two, start, rules, tiers)


@pytest.mark.parametrize("kind", CLASSES_DIFFER)
def test_classes_that_a_term_or_rule_tells_apart_are_no_kind(kind: str) -> None:
    part = CLASSES_DIFFER[kind]
    problem = of_two(part, waits=isinstance(part, Unplaced | Rule))
    everywhere = np.ones((2, 2), dtype=np.int32)
    assert kinds_of(problem, problem.tiers, everywhere).tolist() == [0, 1]


@pytest.mark.parametrize("kind", NODES_DIFFER)
def test_nodes_that_a_term_tells_apart_are_no_group(kind: str) -> None:
    problem = of_two(NODES_DIFFER[kind], waits=False)
    everywhere = np.ones((2, 2), dtype=np.int32)
    assert len(set(groups_of(problem.tiers, everywhere, ints([0, 1]), 0).tolist())) == 2


def test_every_kind_of_term_that_has_a_cost_is_told_apart() -> None:
    """A kind that is new in the relaxation needs a case above, or kinds and groups might mix what differs in it."""
    terms = [*(term for case in CASES for term in case.terms), Unplaced(HERE, ints([1])), Violation(HERE)]
    read = {type(term).__name__ for term in terms if reading_of_term(term) is not None}
    assert read == {kind.split()[0] for kind in (*CLASSES_DIFFER, *NODES_DIFFER)} - {"Capacity", "Devices"}
