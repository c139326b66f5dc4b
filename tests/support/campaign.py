"""Many plans of random clusters carried out by ``apply`` while chance decides, and what came of them.

``python -m tests.support.campaign none [--plans 200] [--seed 0]``: plans of ``plan --steer none``, with a scheduler
that takes any of several best nodes. Told are the share of plans that come to their end, how often the gain that is
kept lies in the range that ``replay`` gave for nine of ten runs, plans that end worse than they began, cordons, waves.

``python -m tests.support.campaign extender [--plans 200] [--seed 0]``: steered plans. ``apply`` is killed at random
requests and started again, and so is ``serve``; meanwhile a workload may be scaled down or rolled out, new pods may not
be ready for a while, pods of one owner wait for nodes, and the status of budgets may lag. A run that stops since pods
elsewhere make it worse is started once more with ``--allow-elsewhere``. Told are pods deleted twice, or although their
budget had no more to give, why plans did not end, and how often the rest was feasible nevertheless.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from stowplan.applying.apply import Applied, apply
from stowplan.applying.dry_run import profile_of
from stowplan.applying.options import ApplyOptions
from stowplan.emitters.emission import EmitOptions
from stowplan.emitters.extender import emit_extender
from stowplan.instances.documents import Document
from stowplan.instances.manifests import READ, read_snapshot
from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.plan import Plan
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.planning.plan import make_plan
from stowplan.planning.replay import CompiledObjective, replay_plan
from stowplan.planning.unassisted import arrange_unassisted, planned_alone
from stowplan.plans.replacements import group_of_pod
from stowplan.plans.replay.distribution import HIGH, LOW
from stowplan.plans.replay.outcome import share_kept
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K36
from stowplan.settings.problem import same_problem
from stowplan.settings.terms import Terms
from tests.support.api_server import ApiServer, Cluster, Pace, Request
from tests.support.api_server.errors import Object
from tests.support.api_server.eviction import is_ready
from tests.support.api_server.framework import ByFramework
from tests.support.api_server.manifests import budget, deployment, namespace, node, stateful_set
from tests.support.api_server.resources import BY_KIND, PODS, REPLICA_SETS
from tests.support.api_server.store import Store
from tests.support.api_server.workloads import roll_out
from tests.support.applying import UNUSED
from tests.support.direct import DirectKubectl
from tests.support.extender import serving

FAST = ApplyOptions(timeout=20, pending=2, poll=0.05, pause_scale=0.02, lease=False, events=False)
ELSEWHERE = re.compile("came up on another node than planned|planned from no node, and the rest")
OPTIONS = Options(time_limit=0.5, deterministic=True, kernels=False)


def random_manifests(rng: random.Random, *, waiting: bool = False) -> list[Object]:
    """Return a random cluster of nodes of one size, on which kube-scheduler finds several equally good.

    Parameters
    ----------
    waiting
        Whether Deployments may have pods without a node.
    """
    names = [f"n{i}" for i in range(rng.randint(3, 7))]
    found = [namespace("kube-system"), namespace("shop"), *(node(name, cpu="8") for name in names)]
    room = dict.fromkeys(names, 8)
    crowded = names[: max(2, len(names) // 2)]
    for i in range(rng.randint(2, 5)):
        cpu = rng.choice([1, 1, 2, 3])
        on: list[str] = []
        for _ in range(rng.randint(1, 4)):
            open_nodes = [name for name in (crowded if rng.random() < 0.8 else names) if room[name] >= cpu]
            if open_nodes:
                on.append(rng.choice(open_nodes))
                room[on[-1]] -= cpu
        if not on:
            continue
        if rng.random() < 0.25:
            found += stateful_set("shop", f"db{i}", on, str(cpu), "Parallel")
        else:
            found += deployment("shop", f"web{i}", on + [""] * (rng.choice([0, 0, 2, 3]) if waiting else 0), str(cpu))
            if rng.random() < 0.5:
                found.append(budget("shop", f"web{i}", f"web{i}", maxUnavailable=rng.randint(1, 2)))
    return found


def seen(store: Store) -> Snapshot:
    """Return what a dump of the cluster would show."""
    items = [found for kind in READ if kind in BY_KIND for found in store.all(BY_KIND[kind])]
    data = {"kind": "List", "apiVersion": "v1", "items": items}
    return read_snapshot(iter([Document("store", json.dumps(data).encode())]))


def as_pods_of(before: Snapshot, after: Snapshot) -> Assignment:
    """Return where the pods of a snapshot, or their replacements, are in a later one; as many as can stay."""
    there: dict[object, Counter[str]] = defaultdict(Counter)
    for pod in after.pods:
        if pod.node_name and not pod.finished and not pod.terminating:
            there[group_of_pod(pod)][pod.node_name] += 1
    where: dict[str, str] = {}
    for pod in before.pods:
        if there[group_of_pod(pod)][pod.node_name] > 0:
            there[group_of_pod(pod)][pod.node_name] -= 1
            where[pod.key] = pod.node_name
    for pod in before.pods:
        left = +there[group_of_pod(pod)]
        if pod.key not in where and left:
            where[pod.key] = next(iter(left))
            there[group_of_pod(pod)][where[pod.key]] -= 1
    return Assignment(where)


@dataclass(frozen=True)
class Outcome:
    """What became of a plan.

    Parameters
    ----------
    stopped
        Why it did not come to its end; empty if it did.
    kept, low, high
        Share of the gain that was there at the end, and the range that replays gave; ``None`` without a gain.
    worse
        Whether it ended worse than it began; not told of plans whose workloads were changed.
    twice
        Number of pods that were deleted twice.
    broken
        Number of pods that were deleted although fewer were ready than their budget keeps; not told of workloads that
        were changed meanwhile.
    hopeless
        Whether it stopped although a replay of the rest, from where pods are, comes to its end and makes nothing worse;
        told of steered plans.
    """

    moves: int
    waves: int
    cordons: int
    stopped: str
    kept: float | None
    low: float | None
    high: float | None
    worse: bool
    twice: int
    broken: int = 0
    hopeless: bool = False
    events: tuple[str, ...] = ()

    @property
    def in_range(self) -> bool:
        """Whether the gain is what replays said."""
        assert self.kept is not None
        assert self.low is not None
        assert self.high is not None
        return self.low - 1e-9 <= self.kept <= self.high + 1e-9


def planned_for(snapshot: Snapshot, rng: random.Random, *, steered: bool) -> Plan:
    """Return a plan for one of two objectives: even nodes, on which many are equally good, or few of them."""
    settings = Settings(objective=rng.choice(["balance", "pack"]), release="1.36")
    planned = make_plan(snapshot, settings, OPTIONS, Terms())
    return (planned if steered else planned_alone(planned, arrange_unassisted(planned, OPTIONS))).plan


def carried_out_alone(seed: int, home: Path) -> Outcome | None:
    """Carry out a plan of ``--steer none``; ``None`` if nothing is to be gained."""
    rng = random.Random(seed)
    profile = default_profile(K36)
    living = Cluster(
        random_manifests(rng),
        scheduler=ByFramework(profile, random.Random(seed)),
        pace=Pace(grace=0.03, schedule=0.01, ready=0.03),
        chance=random.Random(seed),
    )
    before = seen(living.store)
    plan = planned_for(before, rng, steered=False)
    if not plan.moves:
        return None
    told = replay_plan(plan, before, profile, seed=seed + 1, runs=20).distribution
    with ApiServer(living, without=UNUSED) as server:
        result = apply(plan, DirectKubectl(server=server), home / "journal", profile_of(plan, None), FAST)
        living.settle()
    return _judged(plan, before, living.store, result, told and (told.quantile(LOW), told.quantile(HIGH)))


def _judged(
    plan: Plan,
    before: Snapshot,
    store: Store,
    result: Applied,
    told: tuple[float | None, float | None] | None,
    events: tuple[str, ...] = (),
) -> Outcome:
    compiled = same_problem(before, plan.settings, default_profile(K36), limited=False)
    objective = CompiledObjective(compiled)
    start = Assignment(before.assignment)
    planned = start.moved((move.pod.key, move.target) for move in plan.moves)
    end = objective(as_pods_of(before, seen(store)))
    kept = share_kept(objective(start), objective(planned), end)
    low, high = told or (None, None)
    cordons = sum(len(wave.cordon) for wave in plan.waves)
    changed = any(event.startswith(("scale-down", "rollout")) for event in events)  # the pods are others then
    worse = not changed and (not end.legal or end.values > objective(start).values)
    twice, broken = _deleted_twice(store), _budgets_broken(store, events)
    hopeless = told is None and bool(result.stopped) and _rest_holds(plan, result, seen(store))
    about = (len(plan.moves), len(plan.waves), cordons, result.stopped, kept, low, high)
    return Outcome(*about, worse, twice, broken, hopeless, events)


def _rest_holds(plan: Plan, result: Applied, snapshot: Snapshot) -> bool:
    """Whether a replay of what is left, from where pods are, comes to its end and makes nothing worse."""
    ledger, there = result.ledger, {pod.key: pod for pod in snapshot.pods}
    waves = []
    for wave in plan.waves:
        moves = []
        for move in wave.moves:
            name = ledger.name(move)
            pod = there.get(f"{move.pod.namespace}/{name}")
            is_placed = move.kind == "place" and pod is not None and pod.node_name
            if pod is None or is_placed or ledger.stage(move) not in {"waiting", "asked"}:
                continue
            about = move.pod.model_copy(update={"name": name, "uid": pod.metadata.uid})
            moves.append(move.model_copy(update={"pod": about, "source": pod.node_name or None}))
        waves.append(wave.model_copy(update={"moves": tuple(moves)}))
    rest = plan.model_copy(update={"waves": tuple(waves)})
    try:
        found = replay_plan(rest, snapshot, default_profile(K36), steered=True, runs=0).outcome
    except InputError:
        return False
    return not found.halted and not found.waiting and found.actual.as_good_as(found.before)


def _deleted_twice(store: Store) -> int:
    leaving: Counter[str] = Counter()
    before: dict[str, bool] = {}
    for _, kind, resource, pod in store.events:
        if resource == PODS.name:
            uid, gone = pod["metadata"]["uid"], kind == "DELETED" or "deletionTimestamp" in pod["metadata"]
            leaving[uid] += gone and not before.get(uid, False)
            before[uid] = gone
    return sum(number > 1 for number in leaving.values())


def _budgets_broken(store: Store, events: Sequence[str]) -> int:
    """Count ready pods that were deleted although their budget then kept too few, by what etcd was told."""
    changed = {event.split()[2].split("-")[0] for event in events if event.startswith(("scale-down", "rollout"))}
    broken = 0
    for found in store.all(BY_KIND["PodDisruptionBudget"]):
        app = found["spec"]["selector"]["matchLabels"]["app"]
        if app in changed:
            continue
        (above,) = (made for made in store.all(BY_KIND["Deployment"]) if made["metadata"]["name"] == app)
        least = above["spec"]["replicas"] - found["spec"]["maxUnavailable"]
        healthy: set[str] = set()
        for _, kind, resource, pod in store.events:
            if resource != PODS.name or pod["metadata"]["labels"].get("app") != app:
                continue
            uid, leaves = pod["metadata"]["uid"], kind == "DELETED" or "deletionTimestamp" in pod["metadata"]
            if leaves and uid in healthy:
                healthy.remove(uid)
                broken += len(healthy) < least
            elif not leaves and is_ready(pod):
                healthy.add(uid)
            else:
                healthy.discard(uid)
    return broken


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
    objects = random_manifests(rng, waiting=True)
    plan = planned_for(seen(Cluster(objects).store), rng, steered=True)
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
    return _judged(plan, before, living.store, result, None, tuple(happened))


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


# -- reports --------------------------------------------------------------------------------------------------


def _reason(stopped: str) -> str:
    """Return a reason without names, so that equal reasons are counted together."""
    return re.sub(r"\b(shop/)?(web|db)\d+[-\w]*|\bn\d\b|\d+(\.\d+)?", "…", stopped)[:110]


def told_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what a campaign has shown, one line each."""
    number, moves, finished = len(outcomes), sum(f.moves for f in outcomes), sum(not f.stopped for f in outcomes)
    lines = [
        f"{number} plans, {moves} moves, {sum(f.waves for f in outcomes)} waves, {sum(f.cordons for f in outcomes)} "
        f"cordons; {finished} came to their end, {sum(f.worse for f in outcomes)} ended worse than they began, "
        f"{sum(f.twice for f in outcomes)} pods deleted twice, {sum(f.broken for f in outcomes)} against their budget, "
        f"{sum(f.hopeless for f in outcomes)} stopped although the rest was feasible"
    ]
    measured = [found for found in outcomes if None not in (found.kept, found.low, found.high)]
    if measured:
        inside = sum(found.in_range for found in measured)
        mean = sum(found.kept or 0.0 for found in measured) / len(measured)
        lines.append(f"gain kept: {mean:.1%} on average; in the range of the replays in {inside} of {len(measured)}")
    events = Counter(re.sub(r" (of|at) \S+", "", event) for found in outcomes for event in found.events)
    lines += [f"{count} times {event}" for event, count in events.most_common()]
    reasons = Counter(_reason(found.stopped) for found in outcomes if found.stopped)
    return lines + [f"{count} stopped: {reason}" for reason, count in reasons.most_common()]


CAMPAIGNS = {"none": carried_out_alone, "extender": carried_out_steered}


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry plans out; exit 1 if one ended worse than it began, or a pod was deleted that should not have been."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.campaign")
    parser.add_argument("steer", choices=sorted(CAMPAIGNS))
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first plan")
    given = parser.parse_args(arguments)
    outcomes: list[Outcome] = []
    seed, began = given.seed, time.monotonic()
    while len(outcomes) < given.plans:
        with tempfile.TemporaryDirectory() as folder:
            found = CAMPAIGNS[given.steer](seed, Path(folder))
        if found is not None:
            outcomes.append(found)
            if found.stopped or found.worse or found.twice or found.broken or found.hopeless:
                print(f"seed {seed}: {found}", flush=True)
        seed += 1
    print("\n".join(told_of(outcomes)))
    print(f"seeds {given.seed} to {seed - 1}, {time.monotonic() - began:.0f} s")
    return 1 if any(found.worse or found.twice or found.broken for found in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
