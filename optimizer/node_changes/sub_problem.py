"""A tier on some of the nodes, as a program of CP-SAT with all rules: which pods are free there, and what is found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from stowplan.models.arrays import Bools, Ints
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


def freed(
    problem: Problem,
    placement: Placement,
    nodes: Collection[int],
    kinds: Collection[int],
    kind: Ints,
    counted: Bools | None = None,
) -> Free:
    """Return the free part: some nodes, and the classes of some kinds that are there, now or at the start, or wait.

    Parameters
    ----------
    kind
        ``[c]`` the kind of each class.
    counted
        ``[c]`` whether pods of a class that wait are free; those of the kinds are in any case, and by default all.
    """
    chosen = np.array(sorted(nodes), dtype=np.int64)
    there = np.concatenate([one.cls[np.isin(one.node, chosen)] for one in (placement, problem.start)])
    there = there[np.isin(kind[there], list(kinds))]
    missing = problem.size - placement.placed(len(problem.classes))
    waiting = np.flatnonzero((missing > 0) & (problem.optional > 0))
    if counted is not None:
        waiting = waiting[counted[waiting] | np.isin(kind[waiting], list(kinds))]
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
    reached: Sequence[int] | None = None,
    *,
    below: int | None = None,
    most_moves: int | None = None,
) -> tuple[Placement | None, float]:
    """Return the best placement found that changes the free part alone, and the deterministic time that it took.

    Parameters
    ----------
    placement
        A legal placement.
    reached
        What tiers before ``tier`` may come to, by default what they are in the placement.
    below
        What the tier must be below, whatever later tiers are; else these break ties.
    most_moves
        A limit on moves besides those of the problem.
    """
    values = index.evaluator.evaluate(placement).values
    model = build(
        index,
        tier,
        values[:tier] if reached is None else reached,
        placement,
        values,
        free,
        lexicographic=below is None,
        below=below,
        most_moves=most_moves,
        largest_span=parameters.largest_span,
    )
    limits = replace(limits, symmetry_variables=parameters.symmetry_variables)
    found = solve_task(Task(model.model, limits, feasible=reached is None), stopped)
    if found.values is None:
        return None, found.work
    return replaced(placement, free, model.variables.table(found.values)), found.work
