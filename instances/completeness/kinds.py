"""Kinds, namespaces, and objects named by others that a dump does not hold."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.instances.completeness.gap import Gap, named
from stowplan.instances.completeness.listings import RESOURCES
from stowplan.models.snapshot import Snapshot
from stowplan.models.words import plural

_TOLD = {
    "poddisruptionbudgets.policy": "which evictions are forbidden",
    "csinodes.storage.k8s.io": "how many volumes a node attaches",
    "services": "how the scheduler spreads pods by default",
}
"""What kinds that clusters have as a rule tell."""

_OWNERS = ("replicasets.apps", "statefulsets.apps", "replicationcontrollers", "jobs.batch")
"""Kinds that pods name as their controllers."""

_BUILT_IN = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
"""Namespaces that every cluster has, often without a pod."""


def missing_kinds(snapshot: Snapshot, asked: frozenset[str]) -> Iterator[Gap]:
    """Yield the kinds that were not requested and are absent, and objects that others name.

    Parameters
    ----------
    asked
        Resources that were read to their end.
    """
    said: set[str] = set()
    for resource, what in _TOLD.items():
        if _absent(snapshot, resource, asked):
            said.add(resource)
            kind = RESOURCES[resource][1]
            yield Gap(f"no {kind} is in the dump, so it is not known {what}; take it with stowplan snapshot")
    named_owners = {owner.kind for pod in snapshot.pods if not pod.finished and (owner := pod.metadata.controller)}
    for resource in _OWNERS:
        kind = RESOURCES[resource][1]
        if kind in named_owners and _absent(snapshot, resource, asked):
            said.add(resource)
            yield Gap(f"pods are of a {kind}, but none is in the dump, so its replicas and retries are not known")
    if _absent(snapshot, "deployments.apps", asked) and any(
        one.metadata.controller and one.metadata.controller.kind == "Deployment" for one in snapshot.replica_sets
    ):
        said.add("deployments.apps")
        yield Gap("ReplicaSets are of a Deployment, but none is in the dump, so it is not known what is rolled out")
    if not asked and (unseen := _unseen_owners(snapshot)):
        kinds = " and ".join(unseen)
        yield Gap(
            f"objects are of a {kinds}, but none is in the dump, so it is not known which of its pods are missing"
        )
    yield from _unknown_objects(snapshot)
    yield from _without_pods(snapshot, asked)
    rest = [r for r in RESOURCES if r not in said and r != "namespaces" and _absent(snapshot, r, asked)]
    if rest:
        kinds = ", ".join(RESOURCES[resource][1] for resource in rest)
        yield Gap(f"not in the dump, and not known to be none in the cluster: {kinds}")


def missing_namespaces(snapshot: Snapshot, asked: frozenset[str]) -> Iterator[Gap]:
    """Yield namespaces without pods: they may be empty, or left out."""
    if "pods" in asked:
        return
    spaces = {pod.namespace for pod in snapshot.pods}
    known = {one.metadata.name for one in snapshot.namespaces if one.metadata.uid}
    empty = sorted(known - spaces - _BUILT_IN)
    if empty:
        what = "has no pod" if len(empty) == 1 else "have no pod"
        yield Gap(f"{plural(len(empty), 'namespace')} {what} in the dump ({named(empty)}): none, or left out")
    seen = plural(len(spaces), "namespace")
    lists = "" if known else ", and no Namespace is in it"
    yield Gap(
        f"the dump has pods of {seen}{lists}: it is not known whether pods of others are missing; "
        "stowplan snapshot writes that all were read"
    )


def emptied_namespaces(snapshot: Snapshot, asked: frozenset[str]) -> Iterator[Gap]:
    """Yield namespaces whose workloads have pods, as their controllers report, and none of whose pods is in the dump.

    What a workload wants may be more than it can have; what its status counts is there.
    """
    if "pods" in asked:
        return
    spaces = {pod.namespace for pod in snapshot.pods}
    having = {
        one.metadata.namespace or "default"
        for one in (*snapshot.replica_sets, *snapshot.stateful_sets)
        if one.status and one.status.replicas
    }
    if emptied := sorted(having - spaces):
        yield Gap(
            f"workloads of {plural(len(emptied), 'namespace')} have pods, and none of them is in the dump "
            f"({named(emptied)}): pods are missing, so it is unknown what is free on the nodes; "
            "dump all namespaces (-A)",
            fatal=True,
        )


def _absent(snapshot: Snapshot, resource: str, asked: frozenset[str]) -> bool:
    return resource not in asked and not getattr(snapshot, RESOURCES[resource][0])


def _unseen_owners(snapshot: Snapshot) -> list[str]:
    """Return the kinds that are not read, own something in the dump, and are not in it."""
    owned = [one.metadata.controller for one in snapshot.pods] + [one.metadata.controller for one in snapshot.jobs]
    owners = {owner.kind for owner in owned if owner}
    return [kind for kind in ("DaemonSet", "CronJob") if kind in owners and kind not in snapshot.skipped]


def _unknown_objects(snapshot: Snapshot) -> Iterator[Gap]:
    """Yield claims, volumes, and classes that objects of the dump name and that it does not hold."""
    claims = {
        f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"
        for pod in snapshot.pods
        if not pod.finished
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim
    }
    if missing := claims - snapshot.claims.keys():
        yield Gap(f"{plural(len(missing), 'claim')} of pods not in the dump, so it is not known where they can go")
    volumes = {claim.spec.volume_name for claim in snapshot.persistent_volume_claims if claim.spec.volume_name}
    if missing := volumes - snapshot.volumes.keys():
        yield Gap(f"{plural(len(missing), 'volume')} of claims not in the dump, so it is not known what is local")
    bound = {
        f"{one.spec.claim_ref.namespace}/{one.spec.claim_ref.name}"
        for one in snapshot.persistent_volumes
        if one.spec.claim_ref and one.spec.claim_ref.name
    }
    if missing := bound - snapshot.claims.keys() - claims:
        lost = named(sorted(missing))
        yield Gap(f"{plural(len(missing), 'claim')} of volumes not in the dump ({lost}), so pods may be missing")
    classes = {volume.class_name for volume in snapshot.persistent_volumes}
    classes |= {claim.class_name for claim in snapshot.persistent_volume_claims}
    if missing := classes - snapshot.classes.keys() - {""}:
        yield Gap(
            f"{plural(len(missing), 'storage class', 'storage classes')} not in the dump ({named(sorted(missing))}), "
            "so it is not known where claims are made"
        )
    used = {pod.spec.priority_class_name for pod in snapshot.pods if not pod.finished and pod.spec.priority_class_name}
    missing = used - {one.metadata.name for one in snapshot.priority_classes}
    if missing and snapshot.priority_classes:
        lost = named(sorted(missing))
        yield Gap(
            f"{plural(len(missing), 'priority class', 'priority classes')} of pods not in the dump ({lost}), "
            "so it is not known who preempts"
        )


def _without_pods(snapshot: Snapshot, asked: frozenset[str]) -> Iterator[Gap]:
    """Yield workloads that want pods and have none: those of their namespaces may be missing."""
    if "pods" in asked:
        return
    found = {(pod.namespace, owner.kind, owner.name) for pod in snapshot.pods if (owner := pod.metadata.controller)}
    idle = sorted(
        f"{kind} {space}/{owner.metadata.name}"
        for kind, owners in (("ReplicaSet", snapshot.replica_sets), ("StatefulSet", snapshot.stateful_sets))
        for owner in owners
        if owner.spec
        and owner.spec.replicas
        and ((space := owner.metadata.namespace or "default"), kind, owner.metadata.name) not in found
    )
    if idle:
        yield Gap(f"{plural(len(idle), 'workload')} with replicas and no pod in the dump, such as {idle[0]}")
