"""Synthetic clusters: seeded, of any size, with the mix of rules that real ones have.

A cluster is made as the manifests that ``kubectl get … -o json`` would print, so it takes the same way in as a real
one. It looks like a cluster that has been running for a while: pods are where an uneven history left them, and all
rules are kept. Pods that found no room wait.
"""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from stowplan.instances.completeness import ASKED, statement_of
from stowplan.instances.documents import Document
from stowplan.instances.manifests import read_snapshot
from stowplan.models.snapshot import Snapshot

Manifest = dict[str, Any]
Scarce = Literal["cpu", "memory"]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
DRIVER = "block.csi.example.com"
GPU = "example.com/gpu"
TIME = "2026-01-01T00:00:00Z"
ZONES = ("zone-a", "zone-b", "zone-c")
TEAMS = ("shop", "pay", "search", "data", "media", "infra", "mail", "auth")


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one kind. CPU in millicores, memory in MiB."""

    name: str
    share: float
    cpu: int
    memory: int
    labels: tuple[tuple[str, str], ...] = ()
    taint: str = ""
    gpu: int = 0


POOLS = (
    Pool("general", 0.6, 15_890, 58_000, (("disk", "hdd"),)),
    Pool("compute", 0.2, 31_850, 60_000, (("disk", "ssd"),)),
    Pool("memory", 0.15, 15_890, 125_000, (("disk", "ssd"),)),
    Pool("gpu", 0.05, 31_850, 120_000, (("disk", "ssd"),), taint=GPU, gpu=8),
)
DAEMONS = (
    ("kube-proxy", 100, 128, 0),
    ("cni", 150, 256, 0),
    ("node-exporter", 50, 64, 9100),
    ("log-agent", 100, 256, 0),
)
PRIORITIES = {"low": -10, "default": 0, "high": 1000}
MEMORY_PER_CPU: dict[Scarce, tuple[float, ...]] = {"cpu": (1.0, 2.0, 4.0, 6.0), "memory": (2.0, 4.0, 8.0, 12.0)}
"""What workloads ask for, in MiB per millicore, each as often as another; nodes have about 3.5."""


@dataclass(slots=True)
class _Room:
    """A node while the cluster is being filled."""

    name: str
    zone: str
    pool: Pool
    cpu: int
    memory: int
    gpu: int
    pods: int = 110
    weight: float = 1.0
    volumes: int = 24
    apps: Counter[str] = field(default_factory=Counter)
    ports: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _App:
    """A workload: what its pods ask for and which rules bind them."""

    name: str
    namespace: str
    kind: str
    replicas: int
    cpu: int
    memory: int
    gpu: int = 0
    priority: str = "default"
    node_selector: tuple[tuple[str, str], ...] = ()
    spread_zone: bool = False
    prefer_spread: bool = False
    alone_on_node: bool = False
    prefer_apart: bool = False
    near: str = ""
    port: int = 0
    volume: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def generate(nodes: int, pods: int, seed: int = 0, *, fill: float = 0.65, scarce: Scarce = "cpu") -> Manifest:
    """Return a cluster as one ``List`` of manifests.

    Parameters
    ----------
    nodes, pods
        How many; DaemonSet pods come on top.
    fill
        Share of the cluster's CPU, or memory, that the pods request, about.
    scarce
        Of which resource the pods request that share. Of the other they request less.
    """
    rng = random.Random(f"{nodes}/{pods}/{seed}/{fill}" + (f"/{scarce}" if scarce != "cpu" else ""))
    rooms = list(_rooms(rng, nodes))
    items = [_node(room) for room in rooms] + [_csi_node(room) for room in rooms]
    items += [_object("v1", "Namespace", _meta(rng, team, labels={"team": team})) for team in TEAMS]
    items += [
        _object("scheduling.k8s.io/v1", "PriorityClass", _meta(rng, name), value=value)
        for name, value in PRIORITIES.items()
    ]
    items.append(_storage_class(rng))
    items += _daemon_sets(rng, rooms)
    mean_cpu = max(50, int(_cpu(rooms, scarce) * fill / max(1, pods)))
    history: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for app in _apps(rng, pods, mean_cpu, MEMORY_PER_CPU[scarce]):
        items += _workload(rng, app)
        items += _pods(rng, app, rooms, history)
    metadata = {"annotations": {ASKED: statement_of(items)}}
    return {"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items}


def synthetic_snapshot(nodes: int, pods: int, seed: int = 0, *, fill: float = 0.65, scarce: Scarce = "cpu") -> Snapshot:
    """Return a synthetic cluster as a snapshot, read the way a dump is.

    Parameters
    ----------
    nodes, pods
        Number of nodes, and of pods besides those of DaemonSets.
    seed
        Seed of all random choices.
    fill
        Share of the nodes' CPU, or memory, that pods request, approximately.
    scarce
        Of which resource they request that share.
    """
    data = json.dumps(generate(nodes, pods, seed, fill=fill, scarce=scarce)).encode()
    return read_snapshot(iter([Document(f"synthetic {nodes}x{pods} seed {seed}", data)]))


def _cpu(rooms: list[_Room], scarce: Scarce) -> float:
    """Return how much CPU (millicores) pods request that fill all ordinary nodes with what is scarce."""
    ordinary = [room for room in rooms if not room.gpu]
    if scarce == "cpu":
        return sum(room.cpu for room in ordinary)
    ratios = MEMORY_PER_CPU[scarce]
    return sum(room.memory for room in ordinary) * len(ratios) / sum(ratios)


# -- nodes ----------------------------------------------------------------------------------------------------


def _rooms(rng: random.Random, nodes: int) -> Iterator[_Room]:
    zones = ZONES[:nodes]
    quota = [(pool, round(pool.share * nodes)) for pool in POOLS]
    pools = [pool for pool, number in quota for _ in range(number)][:nodes]
    pools += [POOLS[0]] * (nodes - len(pools))
    for i, pool in enumerate(pools):
        room = _Room(f"{pool.name}-{i:04d}", zones[i % len(zones)], pool, pool.cpu, pool.memory, pool.gpu)
        room.weight = rng.choice((0.3, 1.0, 1.0, 2.0, 4.0))  # some nodes joined late, some have seen it all
        yield room


def _node(room: _Room) -> Manifest:
    labels = {
        HOSTNAME: room.name,
        ZONE: room.zone,
        "topology.kubernetes.io/region": "region-1",
        "node.example.com/pool": room.pool.name,
        **dict(room.pool.labels),
    }
    allocatable = {
        "cpu": f"{room.pool.cpu}m",
        "memory": f"{room.pool.memory}Mi",
        "pods": "110",
        "ephemeral-storage": "100Gi",
    }
    if room.pool.gpu:
        allocatable[GPU] = str(room.pool.gpu)
    taints = [{"key": room.pool.taint, "value": "present", "effect": "NoSchedule"}] if room.pool.taint else []
    meta = {"name": room.name, "uid": f"node-{room.name}", "labels": labels, "creationTimestamp": TIME}
    ready = {"type": "Ready", "status": "True"}
    status = {"allocatable": allocatable, "capacity": allocatable, "conditions": [ready]}
    return _object("v1", "Node", meta, spec={"taints": taints} if taints else {}, status=status)


def _csi_node(room: _Room) -> Manifest:
    driver = {"name": DRIVER, "nodeID": room.name, "allocatable": {"count": room.volumes}, "topologyKeys": [ZONE]}
    return _object("storage.k8s.io/v1", "CSINode", {"name": room.name}, spec={"drivers": [driver]})


def _storage_class(rng: random.Random) -> Manifest:
    mode = "WaitForFirstConsumer"
    return _object("storage.k8s.io/v1", "StorageClass", _meta(rng, "block"), provisioner=DRIVER, volumeBindingMode=mode)


# -- workloads ------------------------------------------------------------------------------------------------


def _apps(rng: random.Random, pods: int, mean_cpu: int, ratios: tuple[float, ...]) -> Iterator[_App]:
    left, number, caches = pods, 0, dict.fromkeys(TEAMS, "")
    while left > 0:
        number += 1
        team = rng.choice(TEAMS)
        kind = rng.choices(("web", "worker", "cache", "database", "ingress", "training"), (45, 30, 8, 10, 3, 4))[0]
        replicas = min(
            left, {"database": 3, "ingress": 3, "training": 2}.get(kind) or rng.choice((1, 2, 2, 3, 4, 6, 8, 12, 20))
        )
        cpu = max(10, int(mean_cpu * rng.choice((0.2, 0.4, 0.7, 1.0, 1.5, 2.5)))) // 10 * 10
        memory = max(32, int(cpu * rng.choice(ratios))) // 32 * 32
        name = f"{kind}-{number}"
        app = _App(
            name, team, "Deployment", replicas, cpu, memory, priority=rng.choice(("low", "default", "default", "high"))
        )
        yield _with_rules(rng, app, kind, caches[team])
        if kind == "cache":
            caches[team] = name
        left -= replicas


def _with_rules(rng: random.Random, app: _App, kind: str, cache: str) -> _App:
    """Give a workload the rules that workloads of its kind have."""
    rules: dict[str, Any] = {}
    match kind:
        case "web":
            rules["spread_zone"] = app.replicas > 1 and rng.random() < 0.4
            rules["prefer_apart"] = rng.random() < 0.3
            rules["near"] = cache if not rules["spread_zone"] and rng.random() < 0.2 else ""
        case "worker":
            rules["node_selector"] = (("disk", "ssd"),) if rng.random() < 0.25 else ()
            rules["prefer_spread"] = rng.random() < 0.3
        case "cache":
            rules["prefer_apart"] = True
        case "database":
            rules |= {"kind": "StatefulSet", "volume": True, "alone_on_node": True, "spread_zone": rng.random() < 0.5}
        case "ingress":
            rules |= {"alone_on_node": True, "port": 443}
        case "training":
            rules |= {"gpu": rng.choice((1, 2, 4))}
    values = {name: getattr(app, name) for name in _App.__slots__}
    return _App(**(values | rules))


def _workload(rng: random.Random, app: _App) -> Iterator[Manifest]:
    labels = {"app": app.name}
    spec = {"replicas": app.replicas, "selector": {"matchLabels": labels}}
    meta = _meta(rng, app.name, app.namespace) | {"uid": _uid(app.kind, app)}
    yield _object("apps/v1", app.kind, meta, spec=spec)
    if app.kind == "Deployment":
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": app.name, "controller": True}
        owner["uid"] = _uid("Deployment", app)
        meta = _meta(rng, f"{app.name}-rs", app.namespace)
        meta |= {"uid": _uid("ReplicaSet", app), "ownerReferences": [owner]}
        yield _object("apps/v1", "ReplicaSet", meta, spec=spec)
    service = {"selector": labels, "ports": [{"port": 80}]}
    yield _object("v1", "Service", _meta(rng, app.name, app.namespace), spec=service)
    if app.replicas > 1:
        budget = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
        status = {"disruptionsAllowed": 1, "expectedPods": app.replicas}
        meta = _meta(rng, app.name, app.namespace)
        yield _object("policy/v1", "PodDisruptionBudget", meta, spec=budget, status=status)


def _daemon_sets(rng: random.Random, rooms: list[_Room]) -> Iterator[Manifest]:
    for name, cpu, memory, port in DAEMONS:
        for room in rooms:
            app = _App(name, "infra", "DaemonSet", 1, cpu, memory, port=port, priority="high")
            spec = _pod_spec(app) | {"tolerations": [{"operator": "Exists"}], "nodeName": room.name}
            yield _pod(rng, app, f"{name}-{room.name}", spec)
            room.cpu -= cpu
            room.memory -= memory
            room.pods -= 1


# -- pods -----------------------------------------------------------------------------------------------------


def _pods(
    rng: random.Random, app: _App, rooms: list[_Room], history: defaultdict[str, Counter[str]]
) -> Iterator[Manifest]:
    """Yield the pods of a workload; ``history`` counts the pods of each workload by zone."""
    for i in range(app.replicas):
        name = f"{app.name}-{i}" if app.kind == "StatefulSet" else f"{app.name}-rs-{rng.getrandbits(40):010x}"
        room = _choose(rng, app, rooms, history)
        spec = _pod_spec(app)
        if app.volume:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]
            yield from _volume(rng, app, name, room.zone if room else None)
        if room is not None:
            _take(room, app)
            history[app.key][room.zone] += 1
            spec["nodeName"] = room.name
        yield _pod(rng, app, name, spec)


def _choose(rng: random.Random, app: _App, rooms: list[_Room], history: defaultdict[str, Counter[str]]) -> _Room | None:
    """Pick a node that keeps every rule, by the uneven weights of history."""
    zones, near = history[app.key], history[f"{app.namespace}/{app.near}"]
    least = min(zones[zone] for zone in ZONES[: len(rooms)])

    def admits(room: _Room) -> bool:
        return (
            room.cpu >= app.cpu
            and room.memory >= app.memory
            and room.gpu >= app.gpu
            and room.pods > 0
            and (not room.pool.taint or app.gpu > 0)
            and all(dict(room.pool.labels).get(key) == value for key, value in app.node_selector)
            and not (app.alone_on_node and room.apps[app.key])
            and not (app.spread_zone and zones[room.zone] + 1 - least > 1)
            and not (app.port and app.port in room.ports)
            and not (app.volume and not room.volumes)
            and not (app.near and not near[room.zone])
        )

    # Looking at a sample first keeps large clusters quick to make.
    sample = rng.sample(rooms, min(len(rooms), 40))
    found = [room for room in sample if admits(room)] or [room for room in rooms if admits(room)]
    return rng.choices(found, [room.weight for room in found])[0] if found else None


def _take(room: _Room, app: _App) -> None:
    room.cpu -= app.cpu
    room.memory -= app.memory
    room.gpu -= app.gpu
    room.pods -= 1
    room.volumes -= app.volume
    room.apps[app.key] += 1
    if app.port:
        room.ports.add(app.port)


def _pod(rng: random.Random, app: _App, name: str, spec: Manifest) -> Manifest:
    kind = "ReplicaSet" if app.kind == "Deployment" else app.kind
    owner = f"{app.name}-rs" if app.kind == "Deployment" else app.name
    meta = _meta(rng, name, app.namespace, labels={"app": app.name})
    meta["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": _uid(kind, app), "controller": True}
    ]
    bound = "nodeName" in spec
    status: Manifest = {"phase": "Running" if bound else "Pending"}
    if bound:
        status |= {"startTime": TIME, "conditions": [{"type": "Ready", "status": "True"}]}
    return _object("v1", "Pod", meta, spec=spec, status=status)


def _pod_spec(app: _App) -> Manifest:
    requests = {"cpu": f"{app.cpu}m", "memory": f"{app.memory}Mi"} | ({GPU: str(app.gpu)} if app.gpu else {})
    container: Manifest = {
        "name": "main",
        "image": f"registry.example.com/{app.name}:1",
        "resources": {"requests": requests},
    }
    if app.port:
        container["ports"] = [{"containerPort": app.port, "hostPort": app.port, "protocol": "TCP"}]
    spec: Manifest = {
        "containers": [container],
        "schedulerName": "default-scheduler",
        "priority": PRIORITIES[app.priority],
        "priorityClassName": app.priority,
    }
    if app.node_selector:
        spec["nodeSelector"] = dict(app.node_selector)
    if app.gpu:
        spec["tolerations"] = [{"key": GPU, "operator": "Exists"}]
    affinity = _affinity(app)
    if affinity:
        spec["affinity"] = affinity
    constraints = _constraints(app)
    if constraints:
        spec["topologySpreadConstraints"] = constraints
    return spec


def _affinity(app: _App) -> Manifest:
    def term(name: str, key: str) -> Manifest:
        return {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": key}

    affinity: defaultdict[str, Manifest] = defaultdict(dict)
    if app.alone_on_node:
        affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = [term(app.name, HOSTNAME)]
    if app.prefer_apart:
        preferred = [{"weight": 100, "podAffinityTerm": term(app.name, HOSTNAME)}]
        affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    if app.near:
        affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = [term(app.near, ZONE)]
    return dict(affinity)


def _constraints(app: _App) -> list[Manifest]:
    def constraint(when: str) -> Manifest:
        selector = {"matchLabels": {"app": app.name}}
        return {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": when, "labelSelector": selector}

    return ([constraint("DoNotSchedule")] if app.spread_zone else []) + (
        [constraint("ScheduleAnyway")] if app.prefer_spread else []
    )


def _volume(rng: random.Random, app: _App, pod: str, zone: str | None) -> Iterator[Manifest]:
    """Yield a pod's claim, with the volume it is bound to; the claim of a pod that found no node waits, too."""
    name = f"pv-{app.namespace}-{pod}"
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "block"}
    request = {**common, "resources": {"requests": {"storage": "100Gi"}}}
    meta = _meta(rng, f"data-{pod}", app.namespace)
    if zone is None:
        yield _object("v1", "PersistentVolumeClaim", meta, spec=request, status={"phase": "Pending"})
        return
    claim = {"kind": "PersistentVolumeClaim", "namespace": app.namespace, "name": f"data-{pod}"}
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    volume = {
        **common,
        "capacity": {"storage": "100Gi"},
        "claimRef": claim,
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    bound = {"phase": "Bound"}
    meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    yield _object("v1", "PersistentVolume", _meta(rng, name), spec=volume, status=bound)
    yield _object("v1", "PersistentVolumeClaim", meta, spec={**request, "volumeName": name}, status=bound)


def _uid(kind: str, app: _App) -> str:
    """Return the uid of a controller, by which its pods name it."""
    return f"{kind}-{app.key}"


def _object(version: str, kind: str, meta: Manifest, **rest: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": meta, **rest}


def _meta(rng: random.Random, name: str, namespace: str = "", labels: dict[str, str] | None = None) -> Manifest:
    meta: Manifest = {
        "name": name,
        "uid": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        "creationTimestamp": TIME,
    }
    if namespace:
        meta["namespace"] = namespace
    if labels:
        meta["labels"] = labels
    return meta
