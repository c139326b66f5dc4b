"""Steered plans carried out while processes are killed and workloads change."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from stowplan.applying.apply import apply
from stowplan.applying.dry_run import profile_of
from stowplan.emitters.emission import EmitOptions
from stowplan.emitters.extender import emit_extender
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K36
from tests.support.api_server import ApiServer, Cluster, Pace, Request
from tests.support.api_server.errors import Object
from tests.support.api_server.framework import ByFramework
from tests.support.api_server.resources import BY_KIND, PODS, REPLICA_SETS
from tests.support.api_server.workloads import roll_out
from tests.support.applying import UNUSED
from tests.support.campaign.clusters import FAST, planned_for, random_manifests, seen
from tests.support.campaign.outcomes import Outcome, judged
from tests.support.direct import DirectKubectl
from tests.support.extender import serving

ELSEWHERE = re.compile("came up on another node than planned|planned from no node, and the rest")


class Killed(BaseException):
    """The process is gone: no handler of an ordinary error sees it."""


# -- what happens meanwhile -----------------------------------------------------------------------------------


def _scaled_down(cluster: Cluster, rng: random.Random) -> str:
    """Let a Deployment want a pod less: budgets ask it, and its ReplicaSet follows."""
    sets = [found for found in cluster.store.all(REPLICA_SETS) if found["spec"]["replicas"] > 1]
    if not sets:
        return ""
    meta = rng.choice(sets)["metadata"]

    def fewer(found: Object) -> None:
        found["spec"]["replicas"] -= 1

    with cluster.store.changed:
        cluster.store.update(BY_KIND["Deployment"], "shop", meta["ownerReferences"][0]["name"], fewer)
        cluster.store.update(REPLICA_SETS, "shop", meta["name"], fewer)
    return f"scale-down of {meta['name']}"


def _rolled_out(cluster: Cluster, rng: random.Random) -> str:
    names = sorted({found["metadata"]["name"] for found in cluster.store.all(BY_KIND["Deployment"])})
    if not names:
        return ""
    name = rng.choice(names)
    roll_out(cluster.store, "shop", name, "7f7f")
    return f"rollout of {name}"


def _unready(cluster: Cluster, rng: random.Random) -> str:
    pods = [pod for pod in cluster.store.all(PODS) if pod["metadata"].get("ownerReferences")]
    name = rng.choice(pods)["metadata"]["ownerReferences"][0]["name"]
    cluster.never_ready.add(name)
    threading.Timer(3.0, cluster.heal).start()
    return f"new pods of {name} are not ready for 3 s"


EVENTS: Sequence[Callable[[Cluster, random.Random], str]] = (_scaled_down, _rolled_out, _unready)


def carried_out_steered(seed: int, home: Path) -> Outcome | None:
    """Carry out a steered plan while processes are killed and workloads change; ``None`` if it has no moves."""
    rng = random.Random(seed)
    planned = Cluster(random_manifests(rng, waiting=True)).store
    objects = [found for resource in BY_KIND.values() for found in planned.all(resource)]  # as old as they were then
    plan = planned_for(seen(planned), rng, steered=True)
    if not plan.moves:
        return None
    happened: list[str] = []
    with serving(plan, home) as first:
        (file,) = emit_extender(plan, EmitOptions(url=first.url)).files
        profile = make_profiles(yaml.safe_load(file.content), K36)["default-scheduler"]
        living = Cluster(
            objects,
            scheduler=ByFramework(profile, random.Random(seed)),
            pace=Pace(grace=0.03, schedule=0.01, ready=0.03),
            chance=random.Random(seed),
            budget_lag=rng.choice([0.0, 0.2]),
            flush=4.0,
        )
        before = seen(living.store)
        with ApiServer(living, without=UNUSED) as server:

            def event(request: Request) -> None:
                if said := rng.choice(EVENTS)(living, rng):
                    happened.append(said)

            def killed(request: Request) -> None:
                happened.append(f"apply killed at {request.wish}")
                fallen.append(True)

            def served_again(request: Request) -> None:
                happened.append(f"serve killed at {request.wish}")
                first.fall()

            fallen: list[bool] = []
            for _ in range(rng.choice([0, 0, 1, 2])):
                server.faults.on("any", served_again, matching="/pods", skip=rng.randrange(30))
            if rng.random() < 0.6:
                server.faults.on("evict", event, skip=rng.randrange(len(plan.moves)))
            kills = rng.randint(0, 2)
            client = Mortal(server=server, fallen=fallen)
            options = replace(FAST, serve=first.url)
            result = None
            for _ in range(kills):
                server.faults.on("any", killed, matching="/pods", skip=rng.randrange(30), after=rng.random() < 0.5)
                try:
                    result = apply(plan, client, home / "journal", profile_of(plan, None), options)
                except Killed:
                    fallen.clear()
                else:
                    break
            fallen.clear()
            server.faults.clear()
            for _ in range(3):
                if result is not None and not result.stopped:
                    break
                result = apply(plan, DirectKubectl(server=server), home / "journal", profile_of(plan, None), options)
            assert result is not None
            if ELSEWHERE.search(result.stopped):  # the operator accepts what has become worse, and wants the rest
                happened.append("pods elsewhere accepted by --allow-elsewhere")
                options = replace(options, elsewhere=len(plan.moves))
                result = apply(plan, DirectKubectl(server=server), home / "journal", profile_of(plan, None), options)
            living.settle()
    return judged(plan, before, living.store, result, None, tuple(happened))


@dataclass(frozen=True)
class Mortal(DirectKubectl):
    """A client whose process is killed once ``fallen`` is not empty."""

    fallen: list[bool] = field(default_factory=list)

    def _ask_server(self, method: str, path: str, body: Object | None = None) -> object:
        try:
            return super()._ask_server(method, path, body)
        finally:
            if self.fallen:
                raise Killed
