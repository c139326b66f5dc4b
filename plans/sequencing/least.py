"""How many waves the moves need at least, whoever puts them in order.

Three arguments, each valid for every order in which only the given pods are moved, over third nodes or not:

*Budgets.* Of a budget that allows ``a`` disruptions now, ``n`` ready pods have to leave. After the first wave it
allows at most ``b``, once all unhealthy pods of it that take part have been replaced by ready ones. So ``T`` waves
suffice only if ``a + (T - 1)·b >= n``.

*Limits.* ``n`` evictions that share a limit of ``m`` a wave need ``ceil(n / m)`` waves.

*Room.* Let ``free(w)`` be the room of each node at the beginning of wave ``w`` if every pod that could have left by
then had left and nobody had come. A pod cannot leave in wave ``w`` unless some node that it may use has room for it in
``free(w)``, and room that it leaves counts from ``w + 1`` on. All that is to arrive at a node cannot be there at the
end of wave ``w`` unless ``free(w)`` of that node holds it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.plans.sequencing.allowances import Allowances, Limit
from stowplan.plans.sequencing.stage import NOWHERE, Part, Stage
from stowplan.plans.sequencing.task import Relocation, Task
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.plugins.node_resources_fit import NodeResourcesFit
from stowplan.plugins_compat.plugins.static_filter import StaticFilter


def least_waves(task: Task, moves: Sequence[Relocation]) -> tuple[int, str]:
    """Return a number of waves that no order of these moves can be below, and what proves it.

    Parameters
    ----------
    moves
        Moves that can all be made.
    """
    if not moves:
        return 0, "nothing moves"
    claims = [(1, "something moves"), *_by_budget(task, moves), *_by_limit(task, moves), *_by_room(task, moves)]
    return max(claims, key=lambda claim: claim[0])


def _by_budget(task: Task, moves: Sequence[Relocation]) -> Iterator[tuple[int, str]]:
    leaving: Counter[int] = Counter()
    recovering: Counter[int] = Counter()
    for move in moves:
        for i in task.budgets.covering(move.pod):
            counted = bool(move.source) and move.pod.ready and bool(task.budgets.asked(move.pod))
            leaving[i] += counted
            recovering[i] += not move.pod.ready
    for i, pods in leaving.items():
        budget = task.budgets.all[i]
        later = max(0, budget.healthy + recovering[i] - budget.desired)
        if pods > budget.allowed and later > 0:
            waves = 1 + math.ceil((pods - budget.allowed) / later)
            yield waves, f"PodDisruptionBudget {budget.key}: {pods} pods leave, {later} at a time"


def _by_limit(task: Task, moves: Sequence[Relocation]) -> Iterator[tuple[int, str]]:
    allowances = Allowances(task.snapshot, task.budgets, task.limits)
    index = task.snapshot.node_index
    used: Counter[Limit] = Counter()
    for move in moves:
        if move.source:
            used.update(allowances.limits_on(move.pod, index[move.source]))
    for limit, number in used.items():
        yield math.ceil(number / limit.most), f"{number} evictions {limit.kind}, {limit.most} at a time"


def _by_room(task: Task, moves: Sequence[Relocation]) -> Iterator[tuple[int, str]]:
    stage = Stage(task)
    fit = next((p for p in stage.framework.filters if isinstance(p, NodeResourcesFit)), None)
    if fit is None:
        return
    index = task.snapshot.node_index
    parts = [
        Part(m.pod, stage.state.signatures.of(m.pod), index.get(m.source, NOWHERE), index.get(m.target, NOWHERE), False)
        for m in moves
    ]
    rows = fit.compared_rows
    state = stage.state
    demand = {part.signature.index: state.vector(part.signature)[rows] for part in parts}
    usable = {part.signature.index: _usable(stage.framework.filters, part) for part in parts}
    arriving: defaultdict[int, Ints] = defaultdict(lambda: np.zeros(len(rows), dtype=np.int64))
    for part in parts:
        if part.target != NOWHERE:
            arriving[part.target] = arriving[part.target] + demand[part.signature.index]
    free = state.allocatable[rows] - state.requested[rows]
    waiting = [part for part in parts if part.source != NOWHERE]
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
        left = [part for part in waiting if part.target == NOWHERE or goes[part.signature.index]]
        if not left:
            return
        waiting = [part for part in waiting if not (part.target == NOWHERE or goes[part.signature.index])]
        free = free.copy()
        for part in left:
            free[:, part.source] += demand[part.signature.index]
        wave += 1
        node = state.nodes[next(iter(short))].name
        yield wave, f"what comes to {node} has room only once others have left, in wave {wave} at the earliest"


def _holds(coming: Ints, free: Ints) -> bool:
    return bool(((coming <= free) | (coming == 0)).all())


def _usable(filters: Sequence[Plugin], part: Part) -> Bools:
    """``[n]`` the nodes that filters leave open which look at no other pod."""
    masks = [plugin.mask(part.signature) for plugin in filters if isinstance(plugin, StaticFilter)]
    usable: Bools = np.logical_and.reduce([np.ones(filters[0].state.size, dtype=np.bool_), *masks])
    return usable
