"""A tier on some of the nodes, as a program of CP-SAT with all rules: which pods are free there, and what is found."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Placement, Problem
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.cpsat.solve import build
from stowplan.optimizer.cpsat.task import SolverLimits, Task, solve_task
from stowplan.optimizer.subproblem.index import Index
from stowplan.optimizer.subproblem.scope import Free, replaced


def changed(problem: Problem, placement: Placement) -> Placement:
    """Return the pods that a placement has elsewhere than the start: where they were, and where they are."""
    nodes = len(problem.nodes)
    return Placement.together([placement.beyond(problem.start, nodes), problem.start.beyond(placement, nodes)], nodes)


def freed(problem: Problem, placement: Placement, nodes: Collection[int], kinds: Collection[int], kind: Ints) -> Free:
    """Return the free part: some nodes, and the classes of some kinds that are there, now or at the start, or wait.

    Parameters
    ----------
    kind
        ``[c]`` the kind of each class.
    """
    chosen = np.array(sorted(nodes), dtype=np.int64)
    there = np.concatenate([one.cls[np.isin(one.node, chosen)] for one in (placement, problem.start)])
    there = there[np.isin(kind[there], list(kinds))]
    missing = problem.size - placement.placed(len(problem.classes))
    waiting = np.flatnonzero((missing > 0) & (problem.optional > 0))
    classes = np.union1d(there, waiting)
    return Free(chosen, classes, classes[problem.optional[classes] > 0])


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
    limits = replace(limits, symmetry_variables=parameters.symmetry_variables)
    found = solve_task(Task(model.model, limits), stopped)
    if found.values is None:
        return None, found.work
    return replaced(placement, free, model.variables.table(found.values)), found.work
