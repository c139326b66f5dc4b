"""Random small clusters whose pods are owned, budgeted and healthy or not, bound where the filters admit them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from stowplan.models.kubernetes import Pod, PodStatus
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36, Release
from tests.support.clusters import HOSTNAME, ZONE, Manifest, labels, node, pod, snapshot

ZONES = ("z1", "z2", "z3")
_status = TypeAdapter(PodStatus).validate_python
READY = [{"type": "Ready", "status": "True"}]


def restless_cluster(seed: int, *, nodes: int = 6, apps: int = 6, release: Release = K36) -> Snapshot:
    """Build a random cluster of owned pods: full nodes, budgets, StatefulSets, spreading, affinity both ways, ports.

    Pods are bound one by one to random nodes that the filters admit; some stay pending. Some are not ready.
    """
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(rng.randint(3, nodes))]
    size = rng.choice([4, 6, 8])
    zones = rng.randint(2, 3)
    objects: dict[str, list[Manifest]] = {
        "nodes": [node(name, cpu=str(size), labels={ZONE: ZONES[i % zones]}) for i, name in enumerate(names)],
        "namespaces": [{"metadata": {"name": "default"}}],
        "pods": [],
        "replica_sets": [],
        "deployments": [],
        "stateful_sets": [],
        "pod_disruption_budgets": [],
        "services": [],
    }
    kinds = [f"app{i}" for i in range(rng.randint(2, apps))]
    for name in kinds:
        _workload(rng, objects, name, kinds)
    rng.shuffle(objects["pods"])
    return _settled(rng, snapshot(**objects), release)


def _workload(rng: random.Random, objects: dict[str, list[Manifest]], name: str, kinds: list[str]) -> None:
    replicas = rng.randint(1, 4)
    spec = {"replicas": replicas, "selector": labels(app=name)}
    stateful = rng.random() < 0.3
    kind = "StatefulSet" if stateful else "ReplicaSet"
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if stateful:
        objects["stateful_sets"].append({"metadata": meta, "spec": spec})
    else:
        chief = rng.random() < 0.6
        if chief:
            deployment = {"name": name, "namespace": "default", "uid": f"uid-d-{name}"}
            objects["deployments"].append({"metadata": deployment, "spec": spec})
            owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": f"uid-d-{name}"}
            meta["ownerReferences"] = [owner | {"controller": True}]  # type: ignore[assignment]
        objects["replica_sets"].append({"metadata": meta, "spec": spec})
    if rng.random() < 0.6:
        objects["pod_disruption_budgets"].append(_budget(rng, name, replicas))
    rules = _rules(rng, name, kinds)
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    cpu = rng.choice(["1", "1", "2", "3"])
    priority = rng.choice([0, 0, 0, 100])
    for i in range(replicas):
        made = pod(f"{name}-{i}", cpu=cpu, labels={"app": name}, priority=priority, **rules)
        made["metadata"] |= {"uid": f"uid-{name}-{i}", "ownerReferences": [owner]}
        objects["pods"].append(made)


def _budget(rng: random.Random, name: str, replicas: int) -> Manifest:
    spec: Manifest = {"selector": labels(app=name)}
    key, value = rng.choice(
        [
            ("maxUnavailable", 1),
            ("maxUnavailable", 1),
            ("maxUnavailable", 2),
            ("maxUnavailable", "50%"),
            ("maxUnavailable", "30%"),
            ("minAvailable", max(1, replicas - 1)),
            ("minAvailable", "50%"),
            ("minAvailable", 1),
        ]
    )
    spec[key] = value
    if rng.random() < 0.3:
        spec["unhealthyPodEvictionPolicy"] = rng.choice(["AlwaysAllow", "IfHealthyBudget"])
    return {"metadata": {"name": f"pdb-{name}", "namespace": "default"}, "spec": spec}


def _rules(rng: random.Random, name: str, kinds: list[str]) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    affinity: Manifest = {}

    def required(kind: str, key: str, app: str) -> None:
        affinity[kind] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, "labelSelector": labels(app=app)}]
        }

    draw = rng.random()
    if draw < 0.2:
        required("podAntiAffinity", HOSTNAME, name)
    elif draw < 0.27:
        required("podAntiAffinity", ZONE, name)
    elif draw < 0.34:
        required("podAntiAffinity", HOSTNAME, rng.choice(kinds))
    elif draw < 0.44:
        required("podAffinity", ZONE, rng.choice([name, *kinds]))
    elif draw < 0.7:
        rules["topologySpreadConstraints"] = [
            {
                "maxSkew": rng.choice([1, 1, 2]),
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": labels(app=rng.choice([name, name, *kinds])),
            }
            for key in rng.sample([ZONE, HOSTNAME], rng.choice([1, 1, 2]))
        ]
    if affinity:
        rules["affinity"] = affinity
    if rng.random() < 0.1:
        rules["ports"] = [{"hostPort": 80}]
    if rng.random() < 0.1:
        rules["nodeSelector"] = {ZONE: rng.choice(ZONES[:2])}
    return rules


def _settled(rng: random.Random, empty: Snapshot, release: Release) -> Snapshot:
    """Bind pods where the filters admit them at their turn, and let them be ready or not."""
    where = placed_at_random(rng, empty, release)
    sick = rng.choice([0.0, 0.0, 0.2])
    pods = [bound(p, where.get(p.key, ""), ready=rng.random() >= sick) for p in empty.pods]
    return snapshot_with(empty, pods)


def placed_at_random(
    rng: random.Random, cluster: Snapshot, release: Release = K36, standing: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return random nodes that the filters admit, pod by pod in random order; pods that find none are left out.

    Parameters
    ----------
    standing
        Node name by pod key of the pods that stand already; they are part of the answer.
    """
    where = dict(standing or {})
    framework = populated(cluster, default_profile(release), where)
    for p in rng.sample(cluster.pods, len(cluster.pods)):
        feasible = framework.run_filters(framework.cycle(p)).feasible.tolist() if p.key not in where else []
        if feasible:
            chosen = rng.choice(feasible)
            framework.state.put(p, chosen)
            where[p.key] = cluster.nodes[chosen].name
    return where


def snapshot_with(cluster: Snapshot, pods: Iterable[Pod]) -> Snapshot:
    """Return a cluster with other pods."""
    return replace(cluster, pods=tuple(pods))


def bound(p: Pod, at: str, *, ready: bool = True) -> Pod:
    """Return a pod as it is once it runs on a node; without a node, as it was."""
    if not at:
        return p
    status = _status({"phase": "Running", "conditions": READY if ready else []})
    return replace(p, spec=replace(p.spec, node_name=at), status=status)
