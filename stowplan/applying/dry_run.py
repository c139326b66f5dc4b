"""Whether the scheduler's filters would admit a wave in the cluster as it is now."""

from __future__ import annotations

import random
from dataclasses import replace

from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import PodIdentity
from stowplan.models.errors import InputError
from stowplan.models.plan import Plan, WaveDocument
from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import Budgets
from stowplan.plans.dry_run import DryRun
from stowplan.plans.move import Move
from stowplan.plugins_compat.feature_gates import gated
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.profiles import choose_release, default_profile, read_profiles
from stowplan.settings.problem import require_config

ORDERS = 3
"""Random orders of evictions, ends and arrivals in which a wave is played through."""


def profile_of(plan: Plan, config: str | None) -> Profile:
    """Return the scheduler profile that a plan was made for.

    Parameters
    ----------
    config
        The configuration that the plan was made with, if it was made with one.

    Raises
    ------
    InputError
        If the plan was made with a configuration that is not given, or that has no such profile.
    """
    made_with = plan.settings
    release = gated(choose_release(made_with.release), made_with.feature_gates)
    require_config(made_with, config)
    if config is None:
        return default_profile(release)
    profiles = read_profiles(config, release)
    if made_with.scheduler not in profiles:
        raise InputError(f"has no profile {made_with.scheduler!r}", config, None, "profiles")
    return profiles[made_with.scheduler]


def dry_run_on(wave: WaveDocument, ledger: ApplyLedger, snapshot: Snapshot, profile: Profile) -> list[str]:
    """Play a wave that was not begun through, in random orders; return what the filters refuse, one line each.

    Budgets are left out: what they refuse now they may allow when others of the wave are ready again.
    """
    there = {pod.key: pod for pod in snapshot.pods if not pod.finished}
    pending = ledger.pending({key: PodIdentity.of(pod) for key, pod in there.items()})
    moves: list[Move] = []
    for move in wave.moves:
        key = pending.get(move.id, f"{move.pod.namespace}/{ledger.name(move)}")
        if key in there and ledger.stage(move) == "waiting":
            planned = Move(there[key], move.source or "", move.target or "", waits=move.waits)
            if planned.source or not planned.pod.node_name:
                moves.append(planned)
    unlimited = Budgets(replace(snapshot, pod_disruption_budgets=()))
    found: dict[str, None] = {}
    for order in range(ORDERS):
        run = DryRun(snapshot, profile, budgets=unlimited)
        for failure in run.carry_out(moves, random.Random(order)):
            found[f"pod {failure.key}: {failure.problem}"] = None
    return list(found)
