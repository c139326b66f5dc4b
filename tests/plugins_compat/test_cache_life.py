"""The scheduler's cache, on random events, against the article's rules a second time."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from stowplan.models.interning import FrozenMap
from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.cache import CacheError, SchedulerCache
from stowplan.plugins_compat.isolation import POOL
from tests.plugins_compat.test_isolated_cpus import USE, machine, profile
from tests.support.cases import WANTED
from tests.support.clusters import pod, snapshot

CPU = {"default/p0": 1000, "default/p1": 1500, "default/p2": 250, "default/p3": 0}
EVENTS = ("assume", "finish", "forget", "add", "add", "update", "remove", "expire", "add node", "remove node")
Charge = dict[str, int]


def charge(one: Pod) -> Charge:
    """Return what a pod is charged: marked ones whole cores of the pool, others CPU."""
    cpu = CPU[one.key]
    marked = one.metadata.annotations.get(USE) == "true"
    return {"pods": 1, "memory": 2**30, **({POOL: -(-cpu // 1000)} if marked else {"cpu": cpu})}


@dataclass
class Known:
    """A pod that the cache knows."""

    node: str
    charge: Charge
    assumed: bool = False
    deadline: float | None = None


@dataclass
class Cache:
    """What the article's cache comes to: each method says whether it is an error."""

    lifetime: float | None
    nodes: set[str] = field(default_factory=set)
    pods: dict[str, Known] = field(default_factory=dict)
    expired: list[str] = field(default_factory=list)

    def does(self, event: str, one: Pod, node: str, now: float) -> bool:
        """Do as the event says; return whether that is an error."""
        known, added = self.pods.get(one.key), Known(node, charge(one))
        match event:
            case "assume":
                if known:
                    return True
                self.pods[one.key] = replace(added, assumed=True)
            case "finish":
                if known and known.assumed and self.lifetime is not None:
                    known.deadline = now + self.lifetime
            case "forget":
                if not known or not known.assumed or known.node != node:
                    return True
                del self.pods[one.key]
            case "add":
                if known and not known.assumed:
                    return True
                stays = known is not None and known.node == node
                self.pods[one.key] = replace(known, assumed=False) if known and stays else added
            case "update":
                if not known or known.assumed:
                    return True
                known.charge = charge(one)
            case "remove":
                return self.pods.pop(one.key, None) is None
            case "expire":
                late = {k: p for k, p in self.pods.items() if p.assumed and p.deadline is not None}
                self.expired = [key for key, late_one in late.items() if now > (late_one.deadline or 0.0)]
                for key in self.expired:
                    del self.pods[key]
            case "add node":
                self.nodes.add(node)
            case _:
                if node not in self.nodes | {p.node for p in self.pods.values()}:
                    return True
                self.nodes.discard(node)
        return False

    def requested(self, node: str) -> Charge:
        """Return what the pods on a node are charged."""
        total: Charge = {}
        for known in self.pods.values():
            if known.node == node:
                total = {name: total.get(name, 0) + known.charge.get(name, 0) for name in {*total, *known.charge}}
        return {name: amount for name, amount in total.items() if amount}


def do(cache: SchedulerCache, event: str, one: Pod, node: str, now: float, cluster: Snapshot) -> list[str]:
    """Let the product do the same."""
    match event:
        case "assume" | "forget" | "add":
            getattr(cache, event)(one, node)
        case "update" | "remove":
            getattr(cache, event)(one)
        case "finish":
            cache.finish_binding(one, now)
        case "expire":
            return cache.expire(now)
        case "add node":
            cache.add_node(cluster.nodes[cluster.node_index[node]])
        case _:
            cache.remove_node(node)
    return []


@pytest.mark.parametrize("seed", range(max(60, WANTED)))
def test_random_events(seed: int) -> None:
    rng = random.Random(seed)
    names = [key.partition("/")[2] for key in CPU]
    pods = [pod(name, cpu=f"{CPU[f'default/{name}']}m") for name in names]
    cluster = snapshot(nodes=[machine(name) for name in "abc"], pods=pods)
    lifetime = rng.choice([None, 30.0])
    cache, expected = SchedulerCache(profile().release, lifetime), Cache(lifetime)
    now, latest = 0.0, {one.key: one for one in cluster.pods}
    for step in range(50):
        now += rng.choice([0, 1, 15, 30])
        key, node, event = rng.choice(list(latest)), rng.choice("abc"), rng.choice(EVENTS)
        if rng.random() < 0.3:  # someone changes the annotation
            marks = FrozenMap({USE: rng.choice(["true", "false"])})
            latest[key] = replace(latest[key], metadata=replace(latest[key].metadata, annotations=marks))
        refused, gone = False, list[str]()
        try:
            gone = do(cache, event, latest[key], node, now, cluster)
        except CacheError:
            refused = True
        expected.expired = []
        assert refused == expected.does(event, latest[key], node, now), (step, event, key, node)
        assert gone == expected.expired, (step, event)
        used = {known.node for known in expected.pods.values()}
        assert set(cache.nodes) == expected.nodes | used, (step, event)
        for name, account in cache.nodes.items():
            assert (account.node is not None) == (name in expected.nodes)
            assert {r: n for r, n in account.requested.items() if n} == expected.requested(name), (step, event, name)
