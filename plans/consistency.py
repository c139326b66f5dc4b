"""Checks that the parts of a plan agree with each other and with a snapshot."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.models.kubernetes import Pod
from stowplan.models.plan import MoveDocument, Plan
from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import Budgets
from stowplan.plans.document import quantities
from stowplan.plans.movability.workloads import keeps_name
from stowplan.plans.tokens import needed, promised
from stowplan.plugins_compat.release import Release


def contradictions(plan: Plan) -> Iterator[str]:
    """Yield contradictions inside a plan: its executor, its number of waves, moves that follow others."""
    if plan.settings.executor is not None and plan.executor != plan.settings.executor:
        yield f"the plan is for {plan.executor}, and was made with the settings of {plan.settings.executor}"
    if plan.waves and plan.least_waves > len(plan.waves):
        yield f"leastWaves is {plan.least_waves}, and the plan has {len(plan.waves)}"
    moves = {move.id: move for move in plan.moves}
    for move in plan.moves:
        before = moves.get(move.follows) if move.follows else None
        if before is not None and before.pod != move.pod:
            yield f"{move.id}, {move.pod.key}: follows {before.id}, which moves {before.pod.key}"
        elif before is not None and before.target != move.source:
            yield f"{move.id}, {move.pod.key}: leaves {move.source}, and {before.id} takes it to {before.target}"


def miscounted_tokens(plan: Plan) -> Iterator[str]:
    """Compare the tokens with the moves, by wave, node, and who may take them."""
    has, wants = promised(plan.tokens), needed(plan.waves)
    for claim in sorted(has.keys() | wants.keys()):
        if has[claim] != wants[claim]:
            said = "1 token" if has[claim] == 1 else f"{has[claim]} tokens"
            goes = "1 move goes" if wants[claim] == 1 else f"{wants[claim]} moves go"
            yield f"wave {claim.wave}: {said} for {claim}, and {goes} there"


def wrong_cordons(plan: Plan, snapshot: Snapshot) -> Iterator[str]:
    """Yield cordons that are impossible, that exclude the plan's own moves, or that are missing."""
    for name in plan.cordon:
        if name not in snapshot.node_index:
            yield f"node {name}, to be cordoned, is gone"
    for wave in plan.waves:
        for name in wave.cordon:
            if name not in snapshot.node_index:
                yield f"node {name}, to be cordoned in wave {wave.number}, is gone"
        closed = {*plan.cordon, *wave.cordon}
        for move in wave.moves:
            if move.target in closed:
                yield f"wave {wave.number}, {move.id}, {move.pod.key}: goes to {move.target}, which the plan cordons"
    for name in plan.settings.drain:
        if name not in snapshot.node_index:
            yield f"node {name}, to be drained, is gone"
        elif name not in plan.cordon and not snapshot.nodes[snapshot.node_index[name]].unschedulable:
            yield f"node {name} is to be drained, and the plan does not cordon it"


def misdescribed(move: MoveDocument, pod: Pod, budgets: Budgets, release: Release) -> Iterator[str]:
    """Yield what a plan states wrongly about a pod: whether it keeps its name, its requests, its budgets."""
    keeps = move.source is not None and keeps_name(pod.metadata.controller)
    if move.same_name != keeps:
        yield "its replacement has its name" if keeps else "its replacement does not have its name"
    asked = quantities(pod, release)
    if move.requests != asked:
        yield f"requests {_listed(asked)}, not {_listed(move.requests)}"
    positions = () if move.source is None else budgets.covering(pod) if move.follows else budgets.asked(pod)
    names = {budgets.all[i].name for i in positions}
    if set(move.budgets) != names:
        yield f"draws on {_budgets(names)}, not on {_budgets(set(move.budgets))}"


def _listed(amounts: dict[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in sorted(amounts.items())) or "nothing"


def _budgets(names: set[str]) -> str:
    return f"PodDisruptionBudget {', '.join(sorted(names))}" if names else "no PodDisruptionBudget"
