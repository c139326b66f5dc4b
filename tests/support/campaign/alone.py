"""Plans of ``plan --steer none`` carried out."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from stowplan.applying.apply import apply
from stowplan.applying.dry_run import profile_of
from stowplan.applying.options import ApplyOptions
from stowplan.models.plan import Plan
from stowplan.planning.replay import replay_plan
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.api_server import ApiServer, Cluster, Pace
from tests.support.api_server.errors import Object
from tests.support.api_server.framework import ByFramework
from tests.support.api_server.resources import PODS
from tests.support.applying import UNUSED
from tests.support.campaign.clusters import FAST, planned_for, random_manifests, seen
from tests.support.campaign.dumps import objects_of, planned_for_dump, stuck_pods, variant
from tests.support.campaign.outcomes import Outcome, judged
from tests.support.direct import DirectKubectl

GRACE = 4.0
"""Seconds that pods of dumps take to go: longer than the scheduler needs for their replacements, as on real nodes."""

PATIENT = replace(FAST, timeout=300, pending=60)
"""Options for dumps, with whose many objects the scheduler takes its time."""


def carried_out_alone(seed: int, home: Path) -> Outcome | None:
    """Carry out a plan of ``--steer none`` of a random cluster; ``None`` if nothing is to be gained."""
    rng = random.Random(seed)
    living = _living(random_manifests(rng), seed)
    plan = planned_for(seen(living.store), rng, steered=False)
    return _carried_out(plan, living, seed, home, UNUSED, FAST) if plan.moves else None


def carried_out_of_dump(seed: int, home: Path, dump: Path) -> Outcome | None:
    """Carry out a plan of ``--steer none`` of a variant of a dump; ``None`` if nothing is to be gained."""
    rng = random.Random(seed)
    living = _living(variant(objects_of(dump), rng, default_profile(K36)), seed, GRACE)
    living.never_ready |= stuck_pods(living.store.all(PODS))
    plan = planned_for_dump(seen(living.store), rng)
    return _carried_out(plan, living, seed, home, (), PATIENT) if plan.moves else None


def _living(objects: list[Object], seed: int, grace: float = 0.03) -> Cluster:
    return Cluster(
        objects,
        scheduler=ByFramework(default_profile(K36), random.Random(seed)),
        pace=Pace(grace=grace, schedule=0.01, ready=0.03),
        chance=random.Random(seed),
    )


def _carried_out(
    plan: Plan, living: Cluster, seed: int, home: Path, unserved: tuple[str, ...], options: ApplyOptions
) -> Outcome:
    before, profile = seen(living.store), default_profile(K36)
    told = replay_plan(plan, before, profile, seed=seed + 1, runs=20).distribution
    with ApiServer(living, without=unserved) as server:
        result = apply(plan, DirectKubectl(server=server), home / "journal", profile_of(plan, None), options)
        living.settle(60)
    return judged(plan, before, living.store, result, told)
