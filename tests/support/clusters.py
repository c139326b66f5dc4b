"""Small clusters for tests: a few words to build one by hand, and random ones that mix every kind of rule."""

from __future__ import annotations

import random
from typing import Any

from pydantic import TypeAdapter

from stowplan.models.kubernetes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    Service,
    StorageClass,
    VolumeAttachment,
    Workload,
)
from stowplan.models.kubernetes.devices import GPU_COUNT, GPU_MILLI, GPU_MODEL
from stowplan.models.snapshot import Snapshot

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}

_FIELDS: dict[str, type[Any]] = {
    "nodes": Node,
    "pods": Pod,
    "namespaces": Namespace,
    "services": Service,
    "replica_sets": Workload,
    "stateful_sets": Workload,
    "deployments": Workload,
    "persistent_volumes": PersistentVolume,
    "persistent_volume_claims": PersistentVolumeClaim,
    "storage_classes": StorageClass,
    "csi_nodes": CSINode,
    "csi_drivers": CSIDriver,
    "csi_storage_capacities": CSIStorageCapacity,
    "volume_attachments": VolumeAttachment,
    "pod_disruption_budgets": PodDisruptionBudget,
}
_ADAPTERS = {field: TypeAdapter(tuple[model, ...]) for field, model in _FIELDS.items()}  # type: ignore[valid-type]

Manifest = dict[str, Any]


def snapshot(**objects: list[Manifest]) -> Snapshot:
    """Build a snapshot from lists of manifests, by field name."""
    return Snapshot(**{field: _ADAPTERS[field].validate_python(items) for field, items in objects.items()})


def node(name: str, cpu: str = "4", memory: str = "8Gi", pods: int = 110, **more: Any) -> Manifest:
    """Build a node manifest. ``labels``, ``taints``, ``unschedulable`` and other resources go by keyword."""
    labels = {HOSTNAME: name, **more.pop("labels", {})}
    spec = {key: more.pop(key) for key in ("taints", "unschedulable") if key in more}
    allocatable = {"cpu": cpu, "memory": memory, "pods": str(pods), **more.pop("extended", {})}
    return {"metadata": {"name": name, "labels": labels, **more}, "spec": spec, "status": {"allocatable": allocatable}}


def pod(name: str, at: str | None = None, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> Manifest:
    """Build a pod manifest, bound to ``at`` or pending; metadata such as ``labels`` and ``owner`` goes by keyword."""
    meta: Manifest = {"name": name, "namespace": spec.pop("namespace", "default"), "labels": spec.pop("labels", {})}
    if owner := spec.pop("owner", None):
        kind, _, owner_name = owner.partition("/")
        meta["ownerReferences"] = [{"kind": kind, "name": owner_name, "controller": True}]
    meta |= {key: spec.pop(key) for key in ("deletionTimestamp", "annotations") if key in spec}
    requests = {**({"cpu": cpu} if cpu else {}), **({"memory": memory} if memory else {}), **spec.pop("extended", {})}
    ports = spec.pop("ports", [])
    container = {"name": "main", "image": "app:1", "resources": {"requests": requests}, "ports": ports}
    phase = spec.pop("phase", "Running" if at else "Pending")
    return {
        "metadata": meta,
        "spec": {"containers": [container], **({"nodeName": at} if at else {}), **spec},
        "status": {"phase": phase},
    }


def labels(**match: str) -> Manifest:
    """Build a label selector."""
    return {"matchLabels": match}


def random_cluster(seed: int, *, nodes: int = 3, pods: int = 5, broken: bool = False) -> Snapshot:
    """Build a random tiny cluster that mixes every kind of rule.

    Parameters
    ----------
    broken
        Bind pods to random nodes, whatever the rules say; otherwise all pods are pending.
    """
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(rng.randint(2, nodes))]
    apps = ["a", "b", "c"]
    volumes, claims = _random_volumes(rng, names)
    return snapshot(
        nodes=[_random_node(rng, name) for name in names],
        pods=[_random_pod(rng, f"p{i}", names, apps, claims, broken) for i in range(rng.randint(2, pods))],
        namespaces=[{"metadata": {"name": "default", "labels": {"team": "x"}}}],
        persistent_volumes=volumes,
        persistent_volume_claims=claims,
        csi_nodes=[
            {
                "metadata": {"name": name},
                "spec": {"drivers": [{"name": "csi", "allocatable": {"count": rng.randint(1, 2)}}]},
            }
            for name in names
            if rng.random() < 0.7
        ],
        storage_classes=[],
    )


def _random_node(rng: random.Random, name: str) -> Manifest:
    more: Manifest = {"labels": {}}
    if rng.random() < 0.85:
        more["labels"][ZONE] = rng.choice(["z1", "z2"])
    if rng.random() < 0.5:
        more["labels"]["disk"] = rng.choice(["ssd", "hdd"])
    if rng.random() < 0.2:
        more["taints"] = [{"key": "dedicated", "value": "x", "effect": rng.choice(["NoSchedule", "PreferNoSchedule"])}]
    if rng.random() < 0.1:
        more["unschedulable"] = True
    if rng.random() < 0.3:
        more["extended"] = {"example.com/gpu": str(rng.randint(1, 2))}
    return node(
        name, cpu=rng.choice(["2", "3", "4"]), memory=rng.choice(["3Gi", "4Gi", "6Gi"]), pods=rng.randint(2, 5), **more
    )


def _random_pod(
    rng: random.Random, name: str, nodes: list[str], apps: list[str], claims: list[Manifest], broken: bool
) -> Manifest:
    app = rng.choice(apps)
    # Pods of one app often look alike, so that classes have several members.
    like = random.Random(f"{app}{rng.randint(0, 1)}{rng.random() if rng.random() < 0.4 else ''}")
    spec: Manifest = {"labels": {"app": app}, "owner": f"ReplicaSet/{app}"}
    spec["priority"] = rng.choice([0, 0, 10])
    affinity: Manifest = {}
    if like.random() < 0.25:
        spec["nodeSelector"] = {"disk": "ssd"}
    if like.random() < 0.2:
        operator = like.choice(["In", "NotIn"])
        term = {"matchExpressions": [{"key": ZONE, "operator": operator, "values": ["z1"]}]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    for kind, chance in (("podAffinity", 0.25), ("podAntiAffinity", 0.3)):
        if like.random() < chance:
            terms = [
                {"topologyKey": like.choice([ZONE, HOSTNAME]), "labelSelector": labels(app=like.choice([app, *apps]))}
                for _ in range(like.choice([1, 1, 2]))
            ]
            affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            if like.random() < 0.5:
                preferred = [{"weight": like.randint(1, 100), "podAffinityTerm": terms[0]}]
                affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    if affinity:
        spec["affinity"] = affinity
    if like.random() < 0.35:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": like.randint(1, 2),
                "topologyKey": key,
                "whenUnsatisfiable": like.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
                "labelSelector": labels(app=like.choice([app, *apps])),
                **({"minDomains": like.randint(1, 3)} if like.random() < 0.3 else {}),
                **({"nodeAffinityPolicy": "Ignore"} if like.random() < 0.3 else {}),
                **({"nodeTaintsPolicy": "Honor"} if like.random() < 0.3 else {}),
            }
            for key in like.sample([ZONE, HOSTNAME], like.choice([1, 1, 2]))
        ]
        for constraint in spec["topologySpreadConstraints"]:
            if constraint["whenUnsatisfiable"] != "DoNotSchedule":
                constraint.pop("minDomains", None)
    if like.random() < 0.2:
        spec["ports"] = [
            {"hostPort": 80, **({"hostIP": like.choice(["10.0.0.1", "10.0.0.2"])} if like.random() < 0.5 else {})}
        ]
    if like.random() < 0.3:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if like.random() < 0.1:
        spec["extended"] = {"example.com/gpu": "1"}
    if claims and rng.random() < 0.4:
        chosen = rng.sample(claims, rng.choice([1, 1, 2]) if len(claims) > 1 else 1)
        spec["volumes"] = [
            {"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
            for i, claim in enumerate(chosen)
        ]
    at = rng.choice([None, *nodes, *nodes]) if broken else None
    return pod(name, at, cpu=like.choice(["500m", "1", "1500m"]), memory=like.choice(["1Gi", "2Gi", ""]), **spec)


def _random_volumes(rng: random.Random, nodes: list[str]) -> tuple[list[Manifest], list[Manifest]]:
    volumes, claims = [], []
    for i in range(rng.choice([0, 2, 3])):
        spec: Manifest = {"csi": {"driver": "csi", "volumeHandle": f"h{i}"}, "accessModes": ["ReadWriteMany"]}
        if rng.random() < 0.2:
            spec["accessModes"] = ["ReadWriteOncePod"]
        if rng.random() < 0.4:
            term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [rng.choice(["z1", "z2"])]}]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        meta: Manifest = {"name": f"pv{i}", "labels": {ZONE: rng.choice(["z1", "z2"])} if rng.random() < 0.2 else {}}
        volumes.append({"metadata": meta, "spec": spec})
        claims.append(
            {
                "metadata": {"name": f"c{i}", "namespace": "default", "annotations": BOUND},
                "spec": {"volumeName": f"pv{i}", "accessModes": spec["accessModes"]},
            }
        )
    return volumes, claims


def gpu(count: int | None = None, milli: int | None = None, models: str = "") -> Manifest:
    """Build the annotations of a pod that asks for devices."""
    asked = {GPU_COUNT: count, GPU_MILLI: milli, GPU_MODEL: models}
    return {key: str(value) for key, value in asked.items() if value not in (None, "")}


def random_devices(seed: int, *, broken: bool = False) -> Snapshot:
    """Build a random tiny cluster of pods that ask for GPUs, whole or shared, in every way to say so.

    Parameters
    ----------
    broken
        Bind pods to random nodes, whatever there is room for; some of them are fixed.
    """
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(rng.randint(2, 3))]
    nodes = []
    for name in names:
        count = rng.choice([0, 1, 2, 2, 3])
        offered = {GPU_COUNT: str(count)} if count else {}
        if count and rng.random() < 0.5:
            offered[GPU_MILLI] = str(1000 * count)
        model = {GPU_MODEL: rng.choice(["T4", "A10"])} if rng.random() < 0.8 else {}
        nodes.append(node(name, cpu=rng.choice(["3", "4", "8"]), labels=model, extended=offered))
    sizes = rng.choice([[250, 500], [300, 400, 600, 700], [rng.randint(1, 999) for _ in range(4)]])
    pods = []
    for i in range(rng.randint(2, 5)):
        asked: Manifest = {}
        match rng.choice(["share", "share", "share", "whole", "several", "resource", "none"]):
            case "share":
                asked["annotations"] = gpu(rng.choice([None, 1]), rng.choice(sizes))
            case "whole":
                asked["annotations"] = gpu(rng.choice([1, 2]), rng.choice([None, 1000]))
            case "several" if broken:
                asked["annotations"] = gpu(2, rng.choice(sizes))
            case "resource":
                milli = rng.choice([*sizes, 1000, 1000 + sizes[0]])
                asked["extended"] = rng.choice([{GPU_MILLI: str(milli)}, {GPU_COUNT: "1"}])
        if "annotations" in asked and rng.random() < 0.3:
            asked["annotations"] |= gpu(models=rng.choice(["T4", "T4|A10"]))
        owner = rng.choice(["ReplicaSet/a", "ReplicaSet/a", "DaemonSet/d"]) if broken else "ReplicaSet/a"
        at = rng.choice([None, *names, *names]) if broken else None
        pods.append(pod(f"p{i}", at, owner=owner, priority=rng.choice([0, 0, 5]), **asked))
    return snapshot(nodes=nodes, pods=pods)


# -- volumes --------------------------------------------------------------------------------------------------


def storage_class(name: str, provisioner: str = "csi.x", **more: Any) -> Manifest:
    """Build a class whose claims wait for their first consumer."""
    return {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **more,
    }


def claim(name: str, size: str = "1Gi", cls: str = "local", volume: str = "", **more: Any) -> Manifest:
    """Build a claim, bound to ``volume`` or unbound. Metadata goes by ``meta``, the rest of the spec by keyword."""
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": BOUND if volume else {}}
    spec = {"storageClassName": cls, "resources": {"requests": {"storage": size}}, "accessModes": ["ReadWriteOnce"]}
    if volume:
        spec["volumeName"] = volume
    status = {"phase": more.pop("phase", "Bound" if volume else "Pending")}
    return {"metadata": {**meta, **more.pop("meta", {})}, "spec": {**spec, **more}, "status": status}


def volume(name: str, size: str = "1Gi", cls: str = "local", at: tuple[str, ...] = (), **more: Any) -> Manifest:
    """Build a volume that waits for a claim, on the named nodes or reachable from all."""
    spec: Manifest = {"storageClassName": cls, "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]}
    if at:
        term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": list(at)}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    meta, phase = more.pop("meta", {}), more.pop("phase", "Available")
    return {"metadata": {"name": name, **meta}, "spec": {**spec, **more}, "status": {"phase": phase}}


def using(*claims: str) -> list[Manifest]:
    """Build the volumes of a pod that uses these claims."""
    return [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(claims)]


def csi_node(name: str, migrated: str = "", **limits: int) -> Manifest:
    """Build a CSINode with the attach limit of each driver (``_`` stands for a dot)."""
    drivers = [{"name": key.replace("_", "."), "allocatable": {"count": count}} for key, count in limits.items()]
    note = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
    return {"metadata": {"name": name, "annotations": note if migrated else {}}, "spec": {"drivers": drivers}}


def random_disks(seed: int) -> Snapshot:
    """Build a random tiny cluster of pods with disks of clouds and drivers, on nodes that attach one to three."""
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(rng.randint(2, 3))]
    ebs, gce = "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"
    limits = ("attachable-volumes-aws-ebs", "attachable-volumes-gce-pd")
    nodes = [
        node(
            name,
            labels={ZONE: rng.choice("ab"), "topology.ebs.csi.aws.com/zone": rng.choice("ab")},
            extended={limit: str(rng.randint(1, 2)) for limit in limits if rng.random() < 0.8},
        )
        for name in names
    ]
    sources: list[Manifest] = [
        {"awsElasticBlockStore": {"volumeID": f"vol-{i}"}}
        if rng.random() < 0.5
        else {"gcePersistentDisk": {"pdName": f"d{i}"}}
        for i in range(3)
    ]
    sources += [{"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{rng.randint(0, 3)}"}} for _ in range(2)]
    volumes, claims = [], []
    for i, source in enumerate(sources):
        reach = {"nodeAffinity": {"required": {"nodeSelectorTerms": [_in_zone(rng.choice("ab"))]}}}
        volumes.append(volume(f"pv{i}", phase="Bound", **source, **(reach if rng.random() < 0.3 else {})))
        claims.append(claim(f"c{i}", volume=f"pv{i}"))
    topology = [{"matchLabelExpressions": [{"key": ZONE, "values": [rng.choice("ab")]}]}]
    classes = [
        storage_class("ebs", ebs, allowedTopologies=topology if rng.random() < 0.5 else []),
        storage_class("csi", "ebs.csi.aws.com"),
    ]
    pods = []
    for i in range(rng.randint(2, 4)):
        own = f"own{i}"
        claims.append(claim(own, cls=rng.choice(["ebs", "csi"])))
        used = rng.sample([f"c{j}" for j in range(len(sources))], rng.randint(0, 2))
        mounts = using(*used, *([own] if rng.random() < 0.4 else []))
        if rng.random() < 0.4:
            mounts.append(
                {"name": "inline", "gcePersistentDisk": {"pdName": f"d{rng.randint(0, 3)}", "readOnly": True}}
            )
        pods.append(pod(f"p{i}", volumes=mounts))
    migrated = [",".join(plugin for plugin in (ebs, gce) if rng.random() < 0.5) for _ in names]
    csi_nodes = [
        csi_node(name, there, ebs_csi_aws_com=rng.randint(1, 3), pd_csi_storage_gke_io=rng.randint(1, 3))
        for name, there in zip(names, migrated, strict=True)
        if rng.random() < 0.8
    ]
    return snapshot(
        nodes=nodes,
        pods=pods,
        persistent_volumes=volumes,
        persistent_volume_claims=claims,
        storage_classes=classes,
        csi_nodes=csi_nodes,
    )


def _in_zone(zone: str) -> Manifest:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
