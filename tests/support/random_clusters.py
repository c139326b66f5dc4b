"""Random tiny clusters that mix every kind of rule; drawn, they shrink to a few pods with the rule at fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from stowplan.models.kubernetes import Pod
from stowplan.models.kubernetes.devices import GPU_COUNT, GPU_MILLI, GPU_MODEL
from stowplan.models.objective import PRESETS
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.compiler.compile import Compiled, GroupLimit, compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from tests.support.choices import Choices, drawn
from tests.support.clusters import (
    BOUND,
    HOSTNAME,
    ZONE,
    Manifest,
    claim,
    csi_node,
    gpu,
    labels,
    node,
    pod,
    snapshot,
    storage_class,
    using,
    volume,
)

APPS = ("a", "b", "c")
ZONES = ("z1", "z2")


# -- every kind of rule -----------------------------------------------------------------------------------------


def random_cluster(
    choices: Choices, *, nodes: int = 3, pods: int = 5, broken: bool | None = False, pools: int = 1
) -> Snapshot:
    """Build a random tiny cluster that mixes every kind of rule.

    Parameters
    ----------
    nodes, pods
        The most of each.
    broken
        Bind pods to any nodes, whatever the rules say; otherwise all pods are pending. None leaves it to chance.
    pools
        Number of node pools, each of which takes certain apps, and sometimes others; several have a node at least.
    """
    names = [f"n{i}" for i in range(choices.integer(max(2, pools), nodes))]
    volumes, claims = _volumes(choices)
    broken = choices.chance(0.5) if broken is None else broken
    templates: dict[str, list[Manifest]] = {app: [] for app in APPS}
    made = [_node(choices, name) for name in names]
    bare = [
        _pod(choices, f"p{i}", templates, claims, [None, *names, *names] if broken else [None])
        for i in range(choices.integer(2, pods))
    ]
    if pools > 1:
        _divide(choices, made, bare, pools)
    return snapshot(
        nodes=made,
        pods=bare,
        namespaces=[{"metadata": {"name": "default", "labels": {"team": "x"}}}],
        persistent_volumes=volumes,
        persistent_volume_claims=claims,
        csi_nodes=[csi_node(name, csi=choices.integer(1, 2)) for name in names if choices.chance(0.7)],
        storage_classes=[],
    )


def _divide(choices: Choices, nodes: list[Manifest], pods: list[Manifest], pools: int) -> None:
    """Give each node a pool, the first ones different ones, and each pod that of its app, seldom another one."""
    for number, one in enumerate(nodes):
        one["metadata"]["labels"]["pool"] = str(number % pools)
    for one in pods:
        pool = APPS.index(one["metadata"]["labels"]["app"]) % pools
        if "nodeName" in one["spec"] and not choices.chance(0.1):
            one["spec"]["nodeName"] = choices.one([other["metadata"]["name"] for other in nodes[pool::pools]])
        if choices.chance(0.1):
            pool = choices.integer(0, pools - 1)
        one["spec"]["nodeSelector"] = {**one["spec"].get("nodeSelector", {}), "pool": str(pool)}


def _node(choices: Choices, name: str) -> Manifest:
    more: Manifest = {"labels": {}}
    if not choices.chance(0.15):
        more["labels"][ZONE] = choices.one(ZONES)
    if choices.chance(0.5):
        more["labels"]["disk"] = choices.one(["ssd", "hdd"])
    if choices.chance(0.2):
        effect = choices.one(["NoSchedule", "PreferNoSchedule"])
        more["taints"] = [{"key": "dedicated", "value": "x", "effect": effect}]
    if choices.chance(0.1):
        more["unschedulable"] = True
    if choices.chance(0.3):
        more["extended"] = {"example.com/gpu": str(choices.integer(1, 2))}
    cpu, memory = choices.one(["2", "3", "4"]), choices.one(["4Gi", "3Gi", "6Gi"])
    return node(name, cpu=cpu, memory=memory, pods=choices.integer(2, 5), **more)


def _pod(
    choices: Choices, name: str, templates: dict[str, list[Manifest]], claims: list[Manifest], at: list[str | None]
) -> Manifest:
    """Pods of one app often look alike, so that equivalence classes have several members."""
    app = choices.one(APPS)
    known = templates[app]
    which = choices.integer(0, 2) if known else 0
    if known and which < 2:
        template = known[min(which, len(known) - 1)]
    else:
        template = _template(choices, app)
        known.append(template)
    spec = {**template, "priority": choices.one([0, 0, 10])}
    if claims and choices.chance(0.4):
        chosen = choices.some([claim["metadata"]["name"] for claim in claims], choices.one([1, 1, 2]))
        spec["volumes"] = using(*chosen)
    return pod(name, choices.one(at), **spec)


def _template(choices: Choices, app: str) -> Manifest:
    """Return what pods of an app have in common: requests, and rules about nodes and other pods."""
    spec: Manifest = {"labels": {"app": app}, "owner": f"ReplicaSet/{app}"}
    spec |= {"cpu": choices.one(["1", "500m", "1500m"]), "memory": choices.one(["1Gi", "2Gi", ""])}
    if choices.chance(0.25):
        spec["nodeSelector"] = {"disk": "ssd"}
    if affinity := _affinity(choices, app):
        spec["affinity"] = affinity
    if choices.chance(0.35):
        spec["topologySpreadConstraints"] = _spread(choices, app)
    if choices.chance(0.2):
        address = {"hostIP": choices.one(["10.0.0.1", "10.0.0.2"])} if choices.chance(0.5) else {}
        spec["ports"] = [{"hostPort": 80, **address}]
    if choices.chance(0.3):
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if choices.chance(0.1):
        spec["extended"] = {"example.com/gpu": "1"}
    return spec


def _affinity(choices: Choices, app: str) -> Manifest:
    affinity: Manifest = {}
    if choices.chance(0.2):
        term = {"matchExpressions": [{"key": ZONE, "operator": choices.one(["In", "NotIn"]), "values": ["z1"]}]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    for kind, share in (("podAffinity", 0.25), ("podAntiAffinity", 0.3)):
        if choices.chance(share):
            terms = [
                {"topologyKey": choices.one([HOSTNAME, ZONE]), "labelSelector": labels(app=choices.one([app, *APPS]))}
                for _ in range(choices.one([1, 1, 2]))
            ]
            affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            if choices.chance(0.5):
                preferred = [{"weight": choices.integer(1, 100), "podAffinityTerm": terms[0]}]
                affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return affinity


def _spread(choices: Choices, app: str) -> list[Manifest]:
    constraints = []
    for key in choices.some([HOSTNAME, ZONE], choices.one([1, 1, 2])):
        constraint = {
            "maxSkew": choices.integer(1, 2),
            "topologyKey": key,
            "whenUnsatisfiable": choices.one(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": labels(app=choices.one([app, *APPS])),
        }
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and choices.chance(0.3):
            constraint["minDomains"] = choices.integer(1, 3)
        if choices.chance(0.3):
            constraint["nodeAffinityPolicy"] = "Ignore"
        if choices.chance(0.3):
            constraint["nodeTaintsPolicy"] = "Honor"
        constraints.append(constraint)
    return constraints


def _volumes(choices: Choices) -> tuple[list[Manifest], list[Manifest]]:
    volumes, claims = [], []
    for i in range(choices.one([0, 2, 3])):
        spec: Manifest = {"csi": {"driver": "csi", "volumeHandle": f"h{i}"}, "accessModes": ["ReadWriteMany"]}
        if choices.chance(0.2):
            spec["accessModes"] = ["ReadWriteOncePod"]
        if choices.chance(0.4):
            term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [choices.one(ZONES)]}]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        meta: Manifest = {"name": f"pv{i}", "labels": {ZONE: choices.one(ZONES)} if choices.chance(0.2) else {}}
        volumes.append({"metadata": meta, "spec": spec})
        claims.append(
            {
                "metadata": {"name": f"c{i}", "namespace": "default", "annotations": BOUND},
                "spec": {"volumeName": f"pv{i}", "accessModes": spec["accessModes"]},
            }
        )
    return volumes, claims


# -- devices ----------------------------------------------------------------------------------------------------


def random_devices(choices: Choices, *, broken: bool | None = False) -> Snapshot:
    """Build a random tiny cluster of pods that ask for GPUs, whole or shared, in every way to say so.

    Parameters
    ----------
    broken
        Bind pods to any nodes, whatever there is room for; some of them are fixed. None leaves it to chance.
    """
    broken = choices.chance(0.5) if broken is None else broken
    names = [f"n{i}" for i in range(choices.integer(2, 3))]
    nodes = []
    for name in names:
        count = choices.one([1, 0, 2, 2, 3])
        offered = {GPU_COUNT: str(count)} if count else {}
        if count and choices.chance(0.5):
            offered[GPU_MILLI] = str(1000 * count)
        model = {GPU_MODEL: choices.one(["T4", "A10"])} if choices.chance(0.8) else {}
        nodes.append(node(name, cpu=choices.one(["3", "4", "8"]), labels=model, extended=offered))
    sizes = choices.one([[250, 500], [300, 400, 600, 700], []]) or [choices.integer(1, 999) for _ in range(4)]
    pods = []
    for i in range(choices.integer(2, 5)):
        asked = _asked(choices, sizes, several=broken)
        owner = choices.one(["ReplicaSet/a", "ReplicaSet/a", "DaemonSet/d"]) if broken else "ReplicaSet/a"
        at = choices.one([None, *names, *names]) if broken else None
        pods.append(pod(f"p{i}", at, owner=owner, priority=choices.one([0, 0, 5]), **asked))
    return snapshot(nodes=nodes, pods=pods)


def _asked(choices: Choices, sizes: list[int], *, several: bool) -> Manifest:
    """Return what a pod says of devices. Only what is bound may ask for shares of several."""
    asked: Manifest = {}
    match choices.one(["none", "share", "share", "share", "whole", "resource", "several"]):
        case "share":
            asked["annotations"] = gpu(choices.one([None, 1]), choices.one(sizes))
        case "whole":
            asked["annotations"] = gpu(choices.one([1, 2]), choices.one([None, 1000]))
        case "several" if several:
            asked["annotations"] = gpu(2, choices.one(sizes))
        case "resource":
            milli = choices.one([*sizes, 1000, 1000 + sizes[0]])
            asked["extended"] = choices.one([{GPU_MILLI: str(milli)}, {GPU_COUNT: "1"}])
    if "annotations" in asked and choices.chance(0.3):
        asked["annotations"] |= gpu(models=choices.one(["T4", "T4|A10"]))
    return asked


# -- volumes ----------------------------------------------------------------------------------------------------


def random_disks(choices: Choices) -> Snapshot:
    """Build a random tiny cluster of pods with disks of clouds and drivers, on nodes that attach one to three."""
    names = [f"n{i}" for i in range(choices.integer(2, 3))]
    ebs, gce = "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"
    limits = ("attachable-volumes-aws-ebs", "attachable-volumes-gce-pd")
    nodes = [
        node(
            name,
            labels={ZONE: choices.one("ab"), "topology.ebs.csi.aws.com/zone": choices.one("ab")},
            extended={limit: str(choices.integer(1, 2)) for limit in limits if choices.chance(0.8)},
        )
        for name in names
    ]
    volumes, claims = [], []
    for i, source in enumerate(_sources(choices)):
        reach = {"nodeAffinity": {"required": {"nodeSelectorTerms": [_in_zone(choices.one("ab"))]}}}
        volumes.append(volume(f"pv{i}", phase="Bound", **source, **(reach if choices.chance(0.3) else {})))
        claims.append(claim(f"c{i}", volume=f"pv{i}"))
    shared = [c["metadata"]["name"] for c in claims]
    topology = [{"matchLabelExpressions": [{"key": ZONE, "values": [choices.one("ab")]}]}]
    classes = [
        storage_class("ebs", ebs, allowedTopologies=topology if choices.chance(0.5) else []),
        storage_class("csi", "ebs.csi.aws.com"),
    ]
    pods = []
    for i in range(choices.integer(2, 4)):
        own = f"own{i}"
        claims.append(claim(own, cls=choices.one(["ebs", "csi"])))
        mounts = using(*choices.some(shared, choices.integer(0, 2)), *([own] if choices.chance(0.4) else []))
        if choices.chance(0.4):
            disk = {"pdName": f"d{choices.integer(0, 3)}", "readOnly": True}
            mounts.append({"name": "inline", "gcePersistentDisk": disk})
        pods.append(pod(f"p{i}", volumes=mounts))
    csi_nodes = [
        csi_node(
            name,
            ",".join(choices.subset([ebs, gce])),
            ebs_csi_aws_com=choices.integer(1, 3),
            pd_csi_storage_gke_io=choices.integer(1, 3),
        )
        for name in names
        if choices.chance(0.8)
    ]
    return snapshot(
        nodes=nodes,
        pods=pods,
        persistent_volumes=volumes,
        persistent_volume_claims=claims,
        storage_classes=classes,
        csi_nodes=csi_nodes,
    )


def _sources(choices: Choices) -> list[Manifest]:
    """Return the sources of five volumes; some are one disk, by its plugin in the tree and by its driver."""
    in_tree: list[Manifest] = [
        choices.one([{"awsElasticBlockStore": {"volumeID": f"vol-{i}"}}, {"gcePersistentDisk": {"pdName": f"d{i}"}}])
        for i in range(3)
    ]
    handles = [choices.integer(0, 3) for _ in range(2)]
    return in_tree + [{"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{i}"}} for i in handles]


def _in_zone(zone: str) -> Manifest:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}


# -- what they are compiled with --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setup:
    """What decides the problem beside the cluster."""

    objective: str = "balance"
    release: Release = K36
    preemption: str = "never"
    max_moves: int | None = None
    more: tuple[str, ...] = field(default=())
    moves_of_a: int | None = None

    def compile(self, cluster: Snapshot) -> Compiled:
        """Return the problem of a cluster."""
        objective = PRESETS[self.objective].model_copy(update={"preemption": self.preemption})
        return compile_problem(
            cluster,
            default_profile(self.release, more=self.more),
            objective,
            max_moves=self.max_moves,
            group_limits=[] if self.moves_of_a is None else [GroupLimit("app=a", _is_a, self.moves_of_a)],
        )


def _is_a(pod: Pod) -> bool:
    return pod.metadata.labels.get("app") == "a"


def random_setup(choices: Choices, *objectives: str, more: tuple[str, ...] = ()) -> Setup:
    """Return an objective, one of all presets if none is named, a release, preemption, and limits on moves."""
    return Setup(
        choices.one(objectives or tuple(PRESETS)),
        K24 if choices.chance(0.33) else K36,
        "by-priority" if choices.chance(0.15) else "never",
        choices.integer(2, 3) if choices.chance(0.1) else None,
        more,
        choices.integer(0, 1) if choices.chance(0.2) else None,
    )


def clusters(**options: Any) -> st.SearchStrategy[Snapshot]:
    """Return the strategy of `random_cluster`; pods of about every other one are bound, whatever the rules say."""
    return drawn(random_cluster, **{"broken": None, **options})


def device_clusters(**options: Any) -> st.SearchStrategy[Snapshot]:
    """Return the strategy of `random_devices`; pods of about every other one are bound, whatever the rules say."""
    return drawn(random_devices, **{"broken": None, **options})


def disk_clusters() -> st.SearchStrategy[Snapshot]:
    """Return the strategy of `random_disks`."""
    return drawn(random_disks)


def setups(*objectives: str, more: tuple[str, ...] = ()) -> st.SearchStrategy[Setup]:
    """Return the strategy of `random_setup`."""
    return drawn(random_setup, *objectives, more=more)
