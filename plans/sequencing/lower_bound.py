"""A lower bound on the number of waves that the moves need in any order.

Three arguments, each valid for every order in which only the given pods are moved, over third nodes or not:

*Budgets.* Of a budget that allows ``a`` disruptions now, ``n`` ready pods have to leave. After the first wave it
allows at most ``b``, once all unhealthy pods of it that take part have been replaced by ready ones. So ``T`` waves
suffice only if ``a + (T - 1)·b >= n``.

*Limits.* ``n`` evictions that share a limit of ``m`` a wave need ``ceil(n / m)`` waves.

*Room.* Let ``free(w)`` be the room of each node at the beginning of wave ``w`` if every pod that could have left by
then had left and none had come. A pod cannot leave in wave ``w`` unless some node that it may use has room for it in
``free(w)``, and room that it leaves counts from ``w + 1`` on. All that is to arrive at a node cannot be there at the
end of wave ``w`` unless ``free(w)`` of that node holds it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.plans.move import Move
from stowplan.plans.sequencing.allowances import Allowances, EvictionLimit
from stowplan.plans.sequencing.problem import SequencingProblem
from stowplan.plans.sequencing.wave_state import NOWHERE, WaveState
from stowplan.plugins_compat.plugins.node_resources_fit import NodeResourcesFit
from stowplan.plugins_compat.plugins.static_filter import passing


def least_waves(problem: SequencingProblem, moves: Sequence[Move]) -> tuple[int, str]:
    """Return a number of waves that no order of these moves can be below, and what proves it.

    Parameters
    ----------
    moves
        Moves that can all be made.
    """
    if not moves:
        return 0, "nothing moves"
    claims = [
        (1, "something moves"),
        *_by_budget(problem, moves),
        *_by_limit(problem, moves),
        *_by_room(problem, moves),
    ]
    return max(claims, key=lambda claim: claim[0])


def _by_budget(problem: SequencingProblem, moves: Sequence[Move]) -> Iterator[tuple[int, str]]:
    leaving: Counter[int] = Counter()
    recovering: Counter[int] = Counter()
    for move in moves:
        for i in problem.budgets.covering(move.pod):
            counted = bool(move.source) and move.pod.ready and bool(problem.budgets.asked(move.pod))
            leaving[i] += counted
            recovering[i] += not move.pod.ready
    for i, pods in leaving.items():
        budget = problem.budgets.all[i]
        later = max(0, budget.healthy + recovering[i] - budget.desired)
        if pods > budget.allowed and later > 0:
            waves = 1 + math.ceil((pods - budget.allowed) / later)
            yield waves, f"PodDisruptionBudget {budget.key}: {pods} pods leave, {later} at a time"


def _by_limit(problem: SequencingProblem, moves: Sequence[Move]) -> Iterator[tuple[int, str]]:
    allowances = Allowances(problem.snapshot, problem.budgets, problem.limits)
    index = problem.snapshot.node_index
    used: Counter[EvictionLimit] = Counter()
    for move in moves:
        if move.source:
            used.update(allowances.limits_on(move.pod, index[move.source]))
    for limit, number in used.items():
        yield math.ceil(number / limit.most), f"{number} evictions {limit.kind}, {limit.most} at a time"


def _by_room(problem: SequencingProblem, moves: Sequence[Move]) -> Iterator[tuple[int, str]]:
    wave_state = WaveState(problem)
    fit = next((p for p in wave_state.framework.filters if isinstance(p, NodeResourcesFit)), None)
    if fit is None:
        return
    indexed = [wave_state.indexed(move) for move in moves]
    rows = fit.compared_rows
    state = wave_state.state
    demand = {move.signature.index: state.vector(move.signature)[rows] for move in indexed}
    usable = {move.signature.index: passing(wave_state.framework.filters, move.signature) for move in indexed}
    arriving: defaultdict[int, Ints] = defaultdict(lambda: np.zeros(len(rows), dtype=np.int64))
    for move in indexed:
        if move.target != NOWHERE:
            arriving[move.target] = arriving[move.target] + demand[move.signature.index]
    free = state.allocatable[rows] - state.requested[rows]
    waiting = [move for move in indexed if move.source != NOWHERE]
    short = dict(arriving)
    wave = 1
    while True:
        short = {node: coming for node, coming in short.items() if not _holds(coming, free[:, node])}
        if not short:
            return
        goes = {
            signature: bool((((need[:, None] <= free) | (need[:, None] == 0)).all(axis=0) & usable[signature]).any())
            for signature, need in demand.items()
        }
        left = [move for move in waiting if move.target == NOWHERE or goes[move.signature.index]]
        if not left:
            return
        waiting = [move for move in waiting if not (move.target == NOWHERE or goes[move.signature.index])]
        free = free.copy()
        for move in left:
            free[:, move.source] += demand[move.signature.index]
        wave += 1
        node = state.nodes[next(iter(short))].name
        yield wave, f"what comes to {node} has room only once others have left, in wave {wave} at the earliest"


def _holds(coming: Ints, free: Ints) -> bool:
    return bool(((coming <= free) | (coming == 0)).all())
