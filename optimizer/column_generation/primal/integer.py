"""The integer program over a set of patterns, solved with CP-SAT."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from stowplan.models.arrays import Ints
from stowplan.optimizer.column_generation.budget import Budget
from stowplan.optimizer.column_generation.master.restricted import PatternPool
from stowplan.optimizer.column_generation.structure import Structure
from stowplan.optimizer.cpsat.builder import Builder, Linear, Model
from stowplan.optimizer.cpsat.task import lower_bound, run_stoppable, written


@dataclass(frozen=True, slots=True, eq=False)
class IntegerSolution:
    """The result of the integer program.

    Parameters
    ----------
    count
        ``[p]`` how often each pattern is used, or ``None`` if nothing below the target was found.
    bound
        Lower bound of all solutions over these patterns.
    """

    count: Ints | None
    bound: int


def solve_integer(
    structure: Structure,
    tier: int,
    limits: Ints,
    pool: PatternPool,
    chosen: Ints,
    target: int,
    lowest: int,
    budget: Budget,
    missing: Ints,
) -> IntegerSolution:
    """Minimize a tier over the ``chosen`` patterns, among solutions below ``target``.

    Parameters
    ----------
    limits
        ``[s]`` what the earlier tiers reached, less their constants.
    lowest
        A known lower bound.
    missing
        ``[k]`` how many pods of each kind may be without a node.
    """
    s = structure
    builder = Builder()
    without = [builder.var(0, int(most), 0) for most in missing]
    pattern, group = pool.pattern[chosen], pool.group[chosen]
    used = [builder.var(0, _most(s, row, int(g)), 0) for row, g in zip(pattern, group, strict=True)]
    first = len(without)
    covered = [Linear([k], [1]) for k in range(s.kinds)]
    rows, kinds = np.nonzero(pattern)
    for p, k in zip(rows.tolist(), kinds.tolist(), strict=True):
        covered[k].add(first + p, int(pattern[p, k]))
    for k in range(s.kinds):
        builder.at_least(covered[k], int(s.size[k]))
    for g in range(s.groups):
        members = np.flatnonzero(group == g)
        builder.at_most(Linear((first + members).tolist(), [1] * len(members)), int(s.nodes[g]))

    def cost(t: int) -> Linear:
        total = Linear(constant=int(s.constant[t]))
        for k in range(s.kinds):
            total.add(without[k], int(s.missing[t, k]))
        for p, g in enumerate(group.tolist()):
            total.add(used[p], int(s.opening[t, g]))
        return total

    for t in range(tier):
        builder.at_most(cost(t), int(limits[t] + s.constant[t]))
    objective = cost(tier)
    builder.at_most(objective, target - 1)
    builder.at_least(objective, lowest)
    model = builder.minimize(objective)
    solver, status = run(model, budget)
    if status == cp_model.INFEASIBLE:
        return IntegerSolution(None, target)
    bound = max(lowest, lower_bound(model, solver, status))
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return IntegerSolution(None, min(bound, target))
    values = np.asarray(solver.response_proto.solution, dtype=np.int64)[first:]
    count = np.zeros(pool.size, dtype=np.int64)
    count[chosen] = values
    return IntegerSolution(count, bound)


def run(plain: Model, budget: Budget) -> tuple[cp_model.CpSolver, int]:
    """Minimize with CP-SAT, without a hint; return the solver and its status."""
    model = written(plain)
    model.proto.clear_solution_hint()
    solver = cp_model.CpSolver()
    solver.parameters.catch_sigint_signal = False
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 2
    if budget.deterministic:
        solver.parameters.max_deterministic_time = max(0.01, budget.seconds)
    else:
        solver.parameters.max_time_in_seconds = max(0.05, budget.seconds)
    status = run_stoppable(solver, model, lambda: budget.stopped)
    budget.spend(solver.response_proto.deterministic_time * budget.rate)
    return solver, status


def _most(structure: Structure, row: Ints, group: int) -> int:
    """Return how often a pattern can be useful: until every kind in it is covered."""
    kinds = np.flatnonzero(row)
    needed = -(-structure.size[kinds] // row[kinds])
    return int(min(structure.nodes[group], needed.max(initial=0)))
