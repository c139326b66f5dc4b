"""From changes of nodes to a placement: which pods leave and which come, so that all rules hold.

Changes count pods by kind. Pods of one kind differ in the rules that changes do not read, such as anti-affinity, so a
class is chosen for every pod, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import NOWHERE, Placement
from stowplan.optimizer.bounds.node_programs import Programs
from stowplan.optimizer.constructive.state import State
from stowplan.optimizer.evaluate import Evaluator


def realize(evaluator: Evaluator, programs: Programs, changes: Sequence[tuple[int, Ints]]) -> Placement:
    """Return the start with changes ``(node, [k])`` made, as far as rules allow; pods left over return.

    The placement may be illegal where pods could not return, so the caller evaluates it.
    """
    problem = evaluator.problem
    state = State(evaluator, problem.start)
    pool: dict[int, list[tuple[int, int]]] = {}
    missing = problem.size - problem.start.placed(len(problem.classes))
    for c in np.flatnonzero(missing).tolist():
        pool.setdefault(int(programs.kind[c]), []).extend([(c, NOWHERE)] * int(missing[c]))
    for n, change in changes:
        for k in np.flatnonzero(change < 0).tolist():
            for _ in range(-int(change[k])):
                leaver = _leaver(state, programs, n, k)
                if leaver is not None:
                    state.shift(leaver, n, NOWHERE)
                    pool.setdefault(k, []).append((leaver, n))
    for n, change in changes:
        for k in np.flatnonzero(change > 0).tolist():
            for _ in range(int(change[k])):
                waiting = pool.get(k, [])
                fit = next((i for i, (c, _) in enumerate(waiting) if _admits(state, c, n)), None)
                if fit is not None:
                    c, _ = waiting.pop(fit)
                    state.shift(c, NOWHERE, n)
    for c, source in (pod for waiting in pool.values() for pod in waiting):
        if source != NOWHERE:
            state.shift(c, NOWHERE, source)
    return state.placement


def _admits(state: State, c: int, n: int) -> bool:
    """Whether a pod without a node may come to one."""
    return bool(state.fits(np.array([c]), np.array([n]))[0, 0]) and state.legal(c, NOWHERE, n)


def _leaver(state: State, programs: Programs, n: int, k: int) -> int | None:
    """Return the class of a kind with the most pods on a node: those that are left hold fewer rules back."""
    here = state.placement.node == n
    cls, count = state.placement.cls[here], state.placement.count[here]
    mine = programs.kind[cls] == k
    return int(cls[mine][count[mine].argmax()]) if mine.any() else None
