"""A tier on some of the nodes, as a program of CP-SAT with all rules."""

from __future__ import annotations

from collections.abc import Callable

from stowplan.models.problem import Placement
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.solve import build
from stowplan.optimizer.cpsat.task import SolverLimits, Task, solve_task
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.scope import Free, replaced


def rearranged(
    index: Index,
    tier: int,
    placement: Placement,
    free: Free,
    limits: SolverLimits,
    parameters: CpSatParameters,
    stopped: Callable[[], bool],
) -> tuple[Placement | None, float]:
    """Return the best placement found that changes the free part alone, and the deterministic time that it took.

    Parameters
    ----------
    placement
        A legal placement; tiers before ``tier`` get no worse.
    """
    values = index.evaluator.evaluate(placement).values
    model = build(
        index,
        tier,
        values[:tier],
        placement,
        values,
        free,
        lexicographic=True,
        largest_span=parameters.largest_span,
    )
    found = solve_task(Task(model.model, limits), stopped)
    if found.values is None:
        return None, found.work
    return replaced(placement, free, model.variables.table(found.values)), found.work
