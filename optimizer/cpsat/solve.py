"""Solves one tier of a problem with CP-SAT, from an incumbent, under what earlier tiers have reached."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from models.arrays import Ints
from models.errors import InternalError
from models.problem import Placement
from optimizer.control import Deadline
from optimizer.cpsat.builder import Builder, Linear
from optimizer.cpsat.rules import Place, Rules
from optimizer.cpsat.terms import Terms
from optimizer.cpsat.variables import Variables
from optimizer.evaluate.evaluation import Judge, severity
from optimizer.evaluate.excess import excess

MANY_WORKERS = 8
"""Workers share two cores well: each runs another strategy."""

POLL = 0.05
"""Seconds between looks at the stop signal."""

LARGE = 20_000
"""Variables above which symmetry detection costs more than it brings."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What CP-SAT made of a tier.

    Parameters
    ----------
    placement
        The best placement found, or ``None``.
    bound
        A proven lower bound of the tier's value, or ``None``.
    optimal
        Whether the placement is proven to be optimal.
    """

    placement: Placement | None
    bound: int | None
    optimal: bool


def solve_tier(
    judge: Judge,
    tier: int,
    reached: Sequence[int],
    incumbent: Placement,
    deadline: Deadline,
    *,
    workers: int = MANY_WORKERS,
    seed: int = 0,
) -> Attempt:
    """Minimise one tier.

    Parameters
    ----------
    reached
        Values of the earlier tiers, which must not get worse.
    incumbent
        A legal placement that has them; it becomes a complete hint.
    """
    builder, variables, objective = build(judge, tier, reached, incumbent)
    builder.minimize(objective)
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.random_seed = seed
    # The solver runs on a thread of its own, where its signal handler would abort the process.
    parameters.catch_sigint_signal = False
    parameters.relative_gap_limit = 0.0
    parameters.absolute_gap_limit = 0.99
    if len(builder.hints) > LARGE:
        parameters.symmetry_level = 0
    if deadline.deterministic:
        parameters.num_workers = 1
        parameters.max_deterministic_time = deadline.seconds
    else:
        parameters.num_workers = workers
        parameters.max_time_in_seconds = max(0.1, deadline.remaining)
    status = _run(solver, builder.model, deadline)
    if status == cp_model.MODEL_INVALID:
        raise InternalError(f"CP-SAT refuses the model: {builder.model.validate()}")
    if status == cp_model.INFEASIBLE:
        raise InternalError("CP-SAT calls a model infeasible that holds a legal placement")
    proven = solver.best_objective_bound
    bound = math.ceil(proven - 1e-3) if math.isfinite(proven) else None
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Attempt(None, bound, False)
    values: Ints = np.asarray(solver.response_proto.solution, dtype=np.int64)
    return Attempt(variables.placement(values), bound, status == cp_model.OPTIMAL)


def build(judge: Judge, tier: int, reached: Sequence[int], incumbent: Placement) -> tuple[Builder, Variables, Linear]:
    """Build the model of one tier: variables, rules, what earlier tiers have reached, objective."""
    problem = judge.problem
    builder = Builder()
    variables = Variables(builder, problem, incumbent)
    rules = Rules(builder, variables)
    for rule, before in zip(problem.rules, judge.start_excess, strict=True):
        now = excess(rule, problem, incumbent) if before.any() else before
        rules.post(rule, Place(before, now, severity(rule, len(before))))
    terms = Terms(builder, variables, rules.excess)

    def total(index: int) -> Linear:
        expression = Linear()
        for weighted in problem.tiers[index].terms:
            expression.extend(terms.expression(weighted.term), weighted.weight)
        return expression

    for earlier, value in enumerate(reached):
        builder.at_most(total(earlier), value)
    return builder, variables, total(tier)


def _run(solver: cp_model.CpSolver, model: cp_model.CpModel, deadline: Deadline) -> int:
    """Solve on another thread, so that this one can listen for the stop signal."""
    outcome: list[int] = []
    done = threading.Event()

    def work() -> None:
        try:
            outcome.append(int(solver.solve(model)))
        finally:
            done.set()

    thread = threading.Thread(target=work, name="cp-sat", daemon=True)
    thread.start()
    while not done.wait(POLL):
        if deadline.stop.is_set():
            solver.stop_search()
    thread.join()
    if not outcome:
        raise InternalError("CP-SAT died without an answer")
    return outcome[0]
