"""The rest of a plan made anew, for a cluster that the plan does not fit any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from stowplan.models.errors import InputError
from stowplan.models.moments import require_time
from stowplan.models.move_limits import read_group
from stowplan.models.options import Options
from stowplan.models.plan import MoveDocument, Plan
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.planning.plan import make_plan
from stowplan.planning.unassisted import arrange_unassisted, planned_alone
from stowplan.plans.unassisted import ACCEPTED, UnassistedLimits
from stowplan.settings.move_limits import group_limits
from stowplan.settings.terms import Terms


@dataclass(frozen=True, slots=True)
class MadeEviction:
    """An eviction that a plan has made.

    Parameters
    ----------
    move
        The move that it was made for.
    replacement
        Key of the pod that came in its place; empty if it is not known.
    """

    move: MoveDocument
    replacement: str = ""


def replan(
    plan: Plan,
    snapshot: Snapshot,
    evictions: Sequence[MadeEviction],
    options: Options,
    *,
    refused: Mapping[str, str] = MappingProxyType({}),
    config: str | None = None,
    steered: bool = False,
    stop: Stop | None = None,
) -> Plan:
    """Plan from a snapshot what a plan was made for, within what is left of its limits.

    The settings, the executor, and the limits on waves are those of the plan, and the new plan expires when the plan
    does. Every eviction so far counts against the limits on moves. A plan without a limit on all moves may not evict
    more pods than it still had to evict.

    Parameters
    ----------
    evictions
        What the plan has evicted.
    refused
        Pods whose eviction was refused for good, by key, each with the reason; they stay.
    config
        Path of the scheduler configuration that the plan was made with, if it was made with one.
    steered
        Whether the new plan's replacements will be steered to their nodes. Otherwise it is arranged for kube-scheduler
        alone, with at most as many cordons for waves as the plan has.

    Raises
    ------
    InputError
        If the plan has expired, or its settings name what the cluster does not have any more.
    """
    if require_time(plan.expires_at, "expiresAt") <= datetime.now(UTC):
        raise InputError(f"expired at {plan.expires_at}", obj=plan.id)
    terms = Terms(
        limits=plan.limits,
        wave_timeout=timedelta(seconds=max(wave.barrier.timeout_seconds for wave in plan.waves)),
        frozen=refused,
    )
    settings = remaining_settings(plan, snapshot, evictions, config)
    planned = make_plan(snapshot, settings, options, terms, stop=stop)
    if not steered:
        cordons = sum(len(wave.cordon) for wave in plan.waves)
        limits = UnassistedLimits(cordons, max(ACCEPTED.waves, len(plan.waves)))
        planned = planned_alone(planned, arrange_unassisted(planned, options, limits=limits, stop=stop))
    nodes = {node.name: node for node in snapshot.nodes}
    cordon = tuple(name for name in settings.drain if not nodes[name].unschedulable)
    return planned.plan.model_copy(update={"cordon": cordon, "steered": steered, "expires_at": plan.expires_at})


def remaining_settings(
    plan: Plan, snapshot: Snapshot, evictions: Sequence[MadeEviction], config: str | None = None
) -> Settings:
    """Return the settings of a plan, with what its evictions so far leave of its limits on moves.

    Pods that were to be scheduled, and that the cluster does not have any more, are left out: where their controller
    made others, those are pending pods like any other.

    Raises
    ------
    InputError
        If a node that was to be drained is gone.
    """
    made_with = plan.settings
    for name in made_with.drain:
        if name not in snapshot.node_index:
            raise InputError("is gone", obj=f"Node {name}")
    there = {pod.key: pod for pod in snapshot.pods}
    spent: Counter[str] = Counter()
    for limit in group_limits(snapshot, made_with.max_moves_of):
        # A pod that is not known counts in every group: a limit may be kept too strictly, never violated.
        spent[limit.name] = sum(
            (pod := there.get(eviction.replacement)) is None or limit.holds(pod) for eviction in evictions
        )
    groups = [read_group(word) for word in made_with.max_moves_of]
    left = sum(move.kind != "place" for move in plan.moves) if made_with.max_moves is None else made_with.max_moves
    changes = {
        "executor": plan.executor,
        "config": config,
        "max_moves": max(0, left - len(evictions)),
        "max_moves_of": tuple(f"{group.pods.name}:{max(0, group.limit - spent[group.pods.name])}" for group in groups),
        "admit": tuple(key for key in made_with.admit if key in there),
    }
    return Settings(**({name: getattr(made_with, name) for name in Settings.model_fields} | changes))
