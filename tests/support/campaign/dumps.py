"""Dumps of real clusters that live on, and what has happened in them before a plan is made.

A dump shows one moment. What is varied is what goes on in such clusters: workloads are scaled, pods are made again, a
node is cordoned, and kube-scheduler takes any of several best nodes each time. A variant is what is there afterwards,
so that no pod waits for a node that it would get at once.
"""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
from pathlib import Path

from stowplan.models.options import Options
from stowplan.models.plan import Plan
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.planning.drain import drain
from stowplan.planning.plan import make_plan
from stowplan.planning.unassisted import arrange_unassisted, planned_alone
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.settings.terms import Terms
from tests.support.api_server import Cluster, Pace
from tests.support.api_server.errors import Object
from tests.support.api_server.eviction import is_ready
from tests.support.api_server.framework import ByFramework
from tests.support.api_server.manifests import namespace
from tests.support.api_server.resources import BY_KIND, DEPLOYMENTS, NODES, PODS, REPLICA_SETS
from tests.support.api_server.store import Store

OPTIONS = Options(time_limit=2, deterministic=True)
SHOWN = ("Running", "Pending")
MOST_PODS = 6
"""A workload is not scaled beyond."""


def dumps_of_data() -> list[Path]:
    """Return the dumps in the folder that ``STOWPLAN_DATA`` names."""
    return sorted(Path(os.environ["STOWPLAN_DATA"], "snapshots").glob("*.json.gz"))


def objects_of(dump: Path) -> list[Object]:
    """Return the objects of a dump, and those that the API server must have had although the dump lacks them."""
    data = gzip.decompress(dump.read_bytes()) if dump.suffix == ".gz" else dump.read_bytes()
    items = [item for item in json.loads(data)["items"] if item.get("kind") in BY_KIND]
    pods = [item for item in items if item["kind"] == "Pod"]
    for pod in pods:
        pod["metadata"].setdefault("labels", {})
    there = {(item["kind"], item["metadata"]["name"]) for item in items}
    spaces = {"kube-system"} | {item["metadata"]["namespace"] for item in items if "namespace" in item["metadata"]}
    items += [namespace(name) for name in sorted(spaces) if ("Namespace", name) not in there]
    return items + _missing_classes(pods, there) + _missing_sets(pods, items)


def _missing_classes(pods: list[Object], there: set[tuple[str, str]]) -> list[Object]:
    values = {p["spec"]["priorityClassName"]: p["spec"]["priority"] for p in pods if p["spec"].get("priorityClassName")}
    return [
        {"kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in sorted(values.items())
        if ("PriorityClass", name) not in there
    ]


def _missing_sets(pods: list[Object], items: list[Object]) -> list[Object]:
    """Return the ReplicaSets that pods name and that the dump lacks: one without them would lose evicted pods."""
    known = {item["metadata"].get("uid") for item in items}
    found: dict[str, Object] = {}
    for pod in pods:
        for owner in pod["metadata"].get("ownerReferences") or ():
            if owner["kind"] != "ReplicaSet" or owner["uid"] in known:
                continue
            labels = dict(pod["metadata"]["labels"])
            spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
            made = found.setdefault(
                owner["uid"],
                {
                    "kind": "ReplicaSet",
                    "metadata": {
                        "name": owner["name"],
                        "namespace": pod["metadata"]["namespace"],
                        "uid": owner["uid"],
                        "labels": labels,
                    },
                    "spec": {
                        "replicas": 0,
                        "selector": {"matchLabels": labels},
                        "template": {"metadata": {"labels": labels}, "spec": spec},
                    },
                },
            )
            made["spec"]["replicas"] += pod["status"]["phase"] in SHOWN
    return list(found.values())


def stuck_pods(objects: list[Object]) -> set[str]:
    """Return the names of the pods that have a node and are not ready, and stay so."""
    return {
        item["metadata"]["name"]
        for item in objects
        if item["kind"] == "Pod" and item["spec"].get("nodeName") and not is_ready(item)
    }


def variant(objects: list[Object], rng: random.Random, profile: Profile) -> list[Object]:
    """Return what is there after some changes of workloads and nodes, once the cluster has come to rest."""
    cluster = Cluster(
        copy.deepcopy(objects),
        scheduler=ByFramework(profile, random.Random(rng.random())),
        pace=Pace(grace=0, schedule=0, ready=0),
        never_ready=stuck_pods(objects),
        chance=random.Random(rng.random()),
    )
    for _ in range(rng.randint(1, 3)):
        _scale(cluster.store, rng)
    for _ in range(rng.randint(0, 4)):
        _make_again(cluster.store, rng)
    if rng.random() < 0.3:
        name = rng.choice(cluster.store.all(NODES))["metadata"]["name"]
        cluster.store.update(NODES, "", name, lambda node: node["spec"].update(unschedulable=True))
    cluster.come_to_rest()
    return [copy.deepcopy(found) for resource in BY_KIND.values() for found in cluster.store.all(resource)]


def _scale(store: Store, rng: random.Random) -> None:
    """Scale a workload of one or more pods, to none at the least."""
    sets = [found for found in store.all(REPLICA_SETS) if found["spec"].get("replicas")]
    chosen = rng.choice(sets)
    meta, now = chosen["metadata"], chosen["spec"]["replicas"]
    wanted = rng.choice([number for number in range(MOST_PODS + 1) if number != now and abs(number - now) <= 3])
    store.update(REPLICA_SETS, meta["namespace"], meta["name"], lambda found: found["spec"].update(replicas=wanted))
    for owner in meta.get("ownerReferences") or ():
        if store.find(DEPLOYMENTS, meta["namespace"], owner["name"]) is not None:
            store.update(
                DEPLOYMENTS, meta["namespace"], owner["name"], lambda found: found["spec"].update(replicas=wanted)
            )


def _make_again(store: Store, rng: random.Random) -> None:
    """Delete a pod of a ReplicaSet, which makes another."""
    pods = [
        pod
        for pod in store.all(PODS)
        if pod["status"]["phase"] in SHOWN
        and any(owner["kind"] == "ReplicaSet" for owner in pod["metadata"].get("ownerReferences") or ())
    ]
    if pods:
        meta = rng.choice(pods)["metadata"]
        store.delete(PODS, meta["namespace"], meta["name"], {})


def planned_for_dump(snapshot: Snapshot, rng: random.Random) -> Plan:
    """Return a plan of ``--steer none`` that balances, packs, or drains a node; data on nodes may be given up."""
    may_move = rng.choice([(), ("local-storage",)])
    kind = rng.choice(["balance", "pack", "drain"])
    settings = Settings(objective="pack" if kind == "pack" else "balance", release="1.36", may_move=may_move)
    if kind == "drain":
        node = rng.choice(snapshot.nodes).name
        planned = drain(snapshot, [node], settings, OPTIONS).planned
    else:
        planned = make_plan(snapshot, settings, OPTIONS, Terms())
    return planned_alone(planned, arrange_unassisted(planned, OPTIONS)).plan
