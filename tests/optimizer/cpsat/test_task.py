"""What becomes of a solver that ends with an exception of its own."""

from __future__ import annotations

from typing import Any

import pytest
from ortools.sat.python import cp_model

from stowplan.models.problem import Capacity, Move, Placement, Problem, Tier, Unplaced, Weighted
from stowplan.optimizer.cpsat.solve import solve_tier
from stowplan.optimizer.cpsat.task import SolverDied
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from tests.support.problems import WHERE, ints


def waiting_pod() -> Problem:
    """Return a problem in which one of two pods has to make room for a third."""
    room = Capacity(WHERE, ints([1, 2]), ints([2, 2]), ints([1, 1]))
    tiers = (
        Tier("pending", (Weighted(1, Unplaced(WHERE, ints([0, 1]))),)),
        Tier("moves", (Weighted(1, Move(WHERE, ints([1, 1]))),)),
    )
    start = Placement.of([(0, 0, 1), (0, 1, 1)])
    return Problem(("a", "b"), ("small", "large"), ints([2, 1]), ints([0, 1]), start, (room,), tiers)


def dies(monkeypatch: pytest.MonkeyPatch, *, with_hints_alone: bool) -> list[int]:
    """Let CP-SAT die as it does where presolve loses a hint; return the numbers of hints that it was given."""
    given: list[int] = []
    real = cp_model.CpSolver.solve

    def solve_or_die(solver: cp_model.CpSolver, model: cp_model.CpModel, *more: Any) -> Any:
        given.append(len(model.proto.solution_hint.vars))
        if given[-1] or not with_hints_alone:
            raise IndexError("absl::btree_map::at")
        return real(solver, model, *more)

    monkeypatch.setattr(cp_model.CpSolver, "solve", solve_or_die)
    return given


def test_a_solver_that_dies_of_its_hints_gets_none(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    given = dies(monkeypatch, with_hints_alone=True)
    problem = waiting_pod()
    found = solve_tier(Evaluator(problem), 0, (), problem.start, Deadline(20.0))
    assert (found.bound, found.optimal) == (0, True)
    assert found.placement is not None
    assert Evaluator(problem).evaluate(found.placement).values == (0, 1)
    assert [bool(hints) for hints in given] == [True, False]
    assert capfd.readouterr().err == ""


def test_where_it_dies_anyway_it_is_one_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    dies(monkeypatch, with_hints_alone=False)
    problem = waiting_pod()
    with pytest.raises(SolverDied, match=r"^CP-SAT died without an answer: absl::btree_map::at$"):
        solve_tier(Evaluator(problem), 0, (), problem.start, Deadline(20.0))
    assert capfd.readouterr().err == ""
