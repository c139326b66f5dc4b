"""Clusters at random, what is seen of them, and plans for them."""

from __future__ import annotations

import json
import random

from stowplan.applying.options import ApplyOptions
from stowplan.instances.documents import Document
from stowplan.instances.manifests import READ, read_snapshot
from stowplan.models.options import Options
from stowplan.models.plan import Plan
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.planning.plan import make_plan
from stowplan.planning.unassisted import arrange_unassisted, planned_alone
from stowplan.settings.terms import Terms
from tests.support.api_server.errors import Object
from tests.support.api_server.manifests import budget, deployment, namespace, node, stateful_set
from tests.support.api_server.resources import BY_KIND
from tests.support.api_server.store import Store

FAST = ApplyOptions(timeout=20, pending=2, poll=0.05, pause_scale=0.02, lease=False, events=False)
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


def planned_for(snapshot: Snapshot, rng: random.Random, *, steered: bool) -> Plan:
    """Return a plan for one of two objectives: even nodes, on which many are equally good, or few of them."""
    settings = Settings(objective=rng.choice(["balance", "pack"]), release="1.36")
    planned = make_plan(snapshot, settings, OPTIONS, Terms())
    return (planned if steered else planned_alone(planned, arrange_unassisted(planned, OPTIONS))).plan
