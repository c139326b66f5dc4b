"""A sub-problem as plain data, and how CP-SAT solves it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from stowplan.models.arrays import Ints
from stowplan.models.errors import InternalError
from stowplan.optimizer.cpsat.builder import Model
from stowplan.optimizer.cpsat.parameters import CpSatParameters

POLL = 0.05
"""Seconds between checks of the stop signal."""


@dataclass(frozen=True, slots=True)
class SolverLimits:
    """How long CP-SAT may take, and its settings.

    Parameters
    ----------
    seconds
        Time on the clock, or ``None`` where the answer must not depend on it.
    work
        CP-SAT's deterministic time, or ``None``.
    workers
        Threads.
    gap
        Relative gap between objective and bound at which the solver ends.
    symmetry_variables
        Variables above which symmetry detection is off.
    linear
        Whether the linear relaxation has all constraints, also those that are costly to state there.
    """

    seconds: float | None = None
    work: float | None = None
    workers: int = 1
    seed: int = 0
    gap: float = 0.0
    symmetry_variables: int = CpSatParameters().symmetry_variables
    linear: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A model, and the limits of its solution.

    Parameters
    ----------
    feasible
        Whether it is known to have one.
    """

    model: Model
    limits: SolverLimits
    feasible: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class TaskResult:
    """The result of a task.

    Parameters
    ----------
    values
        ``[v]`` the best solution found, or ``None``.
    bound
        Proven lower bound of the objective, or ``None``.
    optimal
        Whether ``values`` is proven optimal.
    work
        Deterministic time spent.
    """

    values: Ints | None
    bound: int | None
    optimal: bool
    work: float


class SolverDied(InternalError):
    """The solver ended without a status."""


def solve_task(task: Task, stopped: Callable[[], bool] = lambda: False) -> TaskResult:
    """Solve a task.

    Raises
    ------
    InternalError
        If CP-SAT rejects the model, or reports it infeasible although it has a solution.
    """
    model = written(task.model)
    solver = cp_model.CpSolver()
    parameters, limits = solver.parameters, task.limits
    parameters.random_seed = limits.seed
    # The solver runs on a thread of its own, where its signal handler would abort the process.
    parameters.catch_sigint_signal = False
    parameters.relative_gap_limit = limits.gap
    parameters.absolute_gap_limit = 0.99
    parameters.num_workers = limits.workers
    if limits.linear:
        parameters.linearization_level = 2
    if len(task.model.hints) > limits.symmetry_variables:
        parameters.symmetry_level = 0
    if limits.seconds is not None:
        parameters.max_time_in_seconds = limits.seconds
    if limits.work is not None:
        parameters.max_deterministic_time = limits.work
    begun = time.monotonic()
    try:
        status = run_stoppable(solver, model, stopped)
    except SolverDied:
        # Presolve of OR-tools 9.15 may lose a hint that it has moved out of a domain (google/or-tools#5288).
        model.proto.clear_solution_hint()
        if limits.seconds is not None:
            parameters.max_time_in_seconds = max(0.0, limits.seconds - (time.monotonic() - begun))
        status = run_stoppable(solver, model, stopped)
    if status == cp_model.MODEL_INVALID:
        raise InternalError(f"CP-SAT refuses the model: {model.validate()}")
    if status == cp_model.INFEASIBLE:
        if task.feasible:
            raise InternalError("CP-SAT calls a model infeasible that holds a legal placement")
        return TaskResult(None, None, False, solver.deterministic_time)
    bound, work = lower_bound(task.model, solver, status), solver.deterministic_time
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return TaskResult(None, bound, False, work)
    values = np.asarray(solver.response_proto.solution, dtype=np.int64)
    return TaskResult(values, bound, task.model.value(values) <= bound, work)


def lower_bound(model: Model, solver: cp_model.CpSolver, status: int) -> int:
    """Return the proven lower bound, exactly.

    CP-SAT's ``best_objective_bound`` is a floating-point number, whose last digits may be wrong where costs are large.
    It is computed from an integer, the bound of the objective without its offset; that is 0 while nothing is known.
    """
    known = int(solver.response_proto.inner_objective_lower_bound)
    if known or status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return max(model.least, model.offset + known)
    return model.least


def written(plain: Model) -> cp_model.CpModel:
    """Return a model as CP-SAT reads it."""
    model = cp_model.CpModel()
    proto = model.proto
    for bounds in zip(plain.lower.tolist(), plain.upper.tolist(), strict=True):
        proto.variables.add().domain.extend(bounds)
    variables, coeffs, when = plain.vars.tolist(), plain.coeffs.tolist(), plain.when.tolist()
    first = first_when = 0
    for end, end_when, *domain in zip(
        plain.ends.tolist(), plain.when_ends.tolist(), plain.low.tolist(), plain.high.tolist(), strict=True
    ):
        constraint = proto.constraints.add()
        linear = constraint.linear
        linear.vars.extend(variables[first:end])
        linear.coeffs.extend(coeffs[first:end])
        linear.domain.extend(domain)
        if end_when > first_when:
            constraint.enforcement_literal.extend(when[first_when:end_when])
        first, first_when = end, end_when
    literals, first = plain.clauses.tolist(), 0
    for end in plain.clause_ends.tolist():
        proto.constraints.add().bool_or.literals.extend(literals[first:end])
        first = end
    for product in plain.products.tolist():
        argument = proto.constraints.add().int_prod
        for var, expression in zip(product, (argument.target, argument.exprs.add(), argument.exprs.add()), strict=True):
            expression.vars.append(var)
            expression.coeffs.append(1)
    proto.objective.vars.extend(plain.objective_vars.tolist())
    proto.objective.coeffs.extend(plain.objective_coeffs.tolist())
    proto.objective.offset = float(plain.offset)
    proto.solution_hint.vars.extend(list(range(len(plain.hints))))
    proto.solution_hint.values.extend(plain.hints.tolist())
    return model


def run_stoppable(solver: cp_model.CpSolver, model: cp_model.CpModel, stopped: Callable[[], bool]) -> int:
    """Solve on another thread, so that this one can listen for the stop signal; return CP-SAT's status.

    Raises
    ------
    SolverDied
        If there is no status, but an exception of the solver's own.
    """
    outcome: list[int] = []
    died: list[Exception] = []
    done = threading.Event()

    def work() -> None:
        try:
            outcome.append(int(solver.solve(model)))
        except Exception as error:  # whatever C++ throws becomes some exception of Python's
            died.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, name="cp-sat", daemon=True)
    thread.start()
    while not done.wait(POLL):
        if stopped():
            solver.stop_search()
    thread.join()
    if died:
        raise SolverDied(f"CP-SAT died without an answer: {died[0]}")
    return outcome[0]
