"""Controllers that make pods again: ReplicaSet, StatefulSet, DaemonSet, Job, and the rollout of a Deployment."""

from __future__ import annotations

import copy
from typing import Any

from tests.support.api_server.errors import Object
from tests.support.api_server.eviction import is_ready
from tests.support.api_server.resources import (
    BY_KIND,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from tests.support.api_server.store import Store

HASH, REVISION = "pod-template-hash", "controller-revision-hash"
POD_NAME = "statefulset.kubernetes.io/pod-name"
TRACKING = "batch.kubernetes.io/job-tracking"
"""Finalizer by which a pod of a Job is not gone before it is counted."""


def sync_workloads(store: Store) -> None:
    """Create the pods that controllers miss and delete those they have too many of."""
    with store.changed:
        pods: dict[str, list[Object]] = {}
        for pod in store.all(PODS):
            for owner in pod["metadata"].get("ownerReferences") or ():
                pods.setdefault(owner["uid"], []).append(pod)
        for replica_set in store.all(REPLICA_SETS):
            _sync_replica_set(store, replica_set, pods.get(replica_set["metadata"]["uid"], []))
        for stateful_set in store.all(STATEFUL_SETS):
            _sync_stateful_set(store, stateful_set, pods.get(stateful_set["metadata"]["uid"], []))
        for daemon_set in store.all(DAEMON_SETS):
            _sync_daemon_set(store, daemon_set, pods.get(daemon_set["metadata"]["uid"], []))
        for job in store.all(JOBS):
            _sync_job(store, job, pods.get(job["metadata"]["uid"], []))


def roll_out(store: Store, namespace: str, deployment: str, template_hash: str) -> None:
    """Replace a Deployment's ReplicaSets by one of a new template, all at once."""
    with store.changed:
        owner = store.get(DEPLOYMENTS, namespace, deployment)["metadata"]["uid"]
        for old in store.all(REPLICA_SETS, namespace):
            references = old["metadata"].get("ownerReferences") or [{}]
            if references[0].get("uid") != owner or not old["spec"]["replicas"]:
                continue
            new = copy.deepcopy(old)
            new["metadata"] = {
                **{key: old["metadata"][key] for key in ("namespace", "ownerReferences")},
                "name": f"{deployment}-{template_hash}",
                "labels": {**old["metadata"].get("labels", {}), HASH: template_hash},
            }
            for labels in (new["spec"]["selector"]["matchLabels"], new["spec"]["template"]["metadata"]["labels"]):
                labels[HASH] = template_hash
            store.create(REPLICA_SETS, new)
            store.update(REPLICA_SETS, namespace, old["metadata"]["name"], lambda rs: rs["spec"].update(replicas=0))


def _sync_replica_set(store: Store, owner: Object, pods: list[Object]) -> None:
    """A pod that terminates is not counted, so its replacement comes at once, under a new name."""
    active = [pod for pod in pods if _active(pod)]
    wanted = owner["spec"].get("replicas", 1)
    name = owner["metadata"]["name"]
    for _ in range(wanted - len(active)):
        _create(store, owner, "ReplicaSet", store.free_name(PODS, owner["metadata"]["namespace"], f"{name}-"))
    unassigned_first = sorted(active, key=lambda pod: (bool(pod["spec"].get("nodeName")), is_ready(pod)))
    for pod in unassigned_first[: max(0, len(active) - wanted)]:
        store.delete(PODS, owner["metadata"]["namespace"], pod["metadata"]["name"], {})


def _sync_stateful_set(store: Store, owner: Object, pods: list[Object]) -> None:
    """A pod keeps its name, so its replacement comes when it is gone; in order, one waits for those before it."""
    by_name = {pod["metadata"]["name"]: pod for pod in pods}
    in_order = owner["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    for ordinal in range(owner["spec"].get("replicas", 1)):
        name = f"{owner['metadata']['name']}-{ordinal}"
        if name not in by_name:
            _create(store, owner, "StatefulSet", name)
        if in_order and not (name in by_name and _active(by_name[name]) and is_ready(by_name[name])):
            return


def _sync_daemon_set(store: Store, owner: Object, pods: list[Object]) -> None:
    covered = {pod["spec"].get("nodeName") for pod in pods}
    for node in store.all(NODES):
        if node["metadata"]["name"] not in covered and _takes(node, owner["spec"]["template"]["spec"]):
            name = store.free_name(PODS, owner["metadata"]["namespace"], f"{owner['metadata']['name']}-")
            _create(store, owner, "DaemonSet", name, nodeName=node["metadata"]["name"])


def _takes(node: Object, spec: Object) -> bool:
    """Say whether a DaemonSet wants a pod on a node: by its selector of nodes, and by what it tolerates."""
    labels = node["metadata"].get("labels") or {}
    selected = all(labels.get(key) == value for key, value in (spec.get("nodeSelector") or {}).items())
    taints = [taint for taint in node["spec"].get("taints") or () if taint["effect"] in {"NoSchedule", "NoExecute"}]
    own = [t for t in taints if not t["key"].startswith("node.kubernetes.io/")]  # the controller adds tolerations
    return selected and all(any(_tolerates(t, taint) for t in spec.get("tolerations") or ()) for taint in own)


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


def _sync_job(store: Store, job: Object, pods: list[Object]) -> None:
    """A pod that terminates has failed, as ``pkg/controller/job`` counts, unless a policy ignores disruptions.

    Beyond ``backoffLimit`` failures the Job fails for good, and its pods are deleted. Until then, pods are made again
    as soon as others terminate.
    """
    meta, spec, status = job["metadata"], job["spec"], job.get("status", {})
    if any(c["type"] == "Complete" and c["status"] == "True" for c in status.get("conditions") or ()):
        return
    failed = status.get("failed", 0)
    for pod in pods:
        counted = TRACKING in (pod["metadata"].get("finalizers") or ())
        if counted and not _active(pod):
            failed += int(not _ignores_disruptions(spec) and pod.get("status", {}).get("phase") != "Succeeded")
            store.update(PODS, meta["namespace"], pod["metadata"]["name"], _release)
    over = failed > spec.get("backoffLimit", 6)
    if over or failed != status.get("failed", 0):
        condition = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
        told = {"failed": failed, **({"conditions": [condition]} if over else {})}
        store.update(JOBS, meta["namespace"], meta["name"], lambda found: found.setdefault("status", {}).update(told))
    active = [pod for pod in pods if _active(pod)]
    if over:
        for pod in active:
            store.update(PODS, meta["namespace"], pod["metadata"]["name"], _release)
            store.delete(PODS, meta["namespace"], pod["metadata"]["name"], {})
    elif "template" in spec:
        for _ in range(spec.get("parallelism", 1) - len(active)):
            name = store.free_name(PODS, meta["namespace"], f"{meta['name']}-")
            _create(store, job, "Job", name)
            store.update(PODS, meta["namespace"], name, lambda pod: pod["metadata"].update(finalizers=[TRACKING]))


def _ignores_disruptions(spec: Object) -> bool:
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    return any(
        rule["action"] == "Ignore" and condition["type"] == "DisruptionTarget"
        for rule in rules
        for condition in rule.get("onPodConditions") or ()
    )


def _release(pod: Object) -> None:
    pod["metadata"]["finalizers"] = [name for name in pod["metadata"].get("finalizers") or () if name != TRACKING]


def _active(pod: Object) -> bool:
    over = pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}
    return not over and not pod["metadata"].get("deletionTimestamp")


def _create(store: Store, owner: Object, kind: str, name: str, **spec: Any) -> None:
    template, meta = owner["spec"]["template"], owner["metadata"]
    version = "batch/v1" if kind == "Job" else "apps/v1"
    reference = {"apiVersion": version, "kind": kind, "name": meta["name"], "uid": meta["uid"], "controller": True}
    labels = copy.deepcopy(template.get("metadata", {}).get("labels", {}))
    if kind == "StatefulSet":
        labels[POD_NAME] = name
        if revision := owner.get("status", {}).get("updateRevision"):
            labels[REVISION] = revision
    pod = {
        "metadata": {"name": name, "namespace": meta["namespace"], "labels": labels, "ownerReferences": [reference]},
        "spec": {**copy.deepcopy(template["spec"]), **spec},
        "status": {"phase": "Pending"},
    }
    if (priority := _priority(store, pod["spec"].get("priorityClassName"))) is not None:
        pod["spec"].setdefault("priority", priority)
    store.create(PODS, pod)


def _priority(store: Store, name: str | None) -> int | None:
    """Return what admission writes into a pod that names a class."""
    found = store.find(BY_KIND["PriorityClass"], "", name) if name else None
    return found["value"] if found else None
