"""Pods that do not exist yet: what a Deployment, StatefulSet, ReplicaSet or Job would create, as manifests."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stowplan.instances.documents import read_documents
from stowplan.instances.items import split
from stowplan.models.errors import InputError
from stowplan.plans.creations import NEW

Manifest = dict[str, Any]

WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "Job")
"""Kinds whose pods are made; the pods of other controllers are not known before they exist."""

CAPABLE = ", ".join((*WORKLOADS[:-1], f"or {WORKLOADS[-1]}"))


@dataclass(frozen=True, slots=True)
class NewPods:
    """Pods to find room for.

    Parameters
    ----------
    keys
        Of the pods, as ``namespace/name``.
    data
        A ``List`` of the pods, and of all else that the files hold, as JSON.
    workloads
        How many of the files' objects create pods.
    """

    keys: Sequence[str]
    data: bytes
    workloads: int


def new_pods(files: Sequence[str], replicas: int | None = None) -> NewPods:
    """Return the pods of some files, those that workloads would create included.

    Parameters
    ----------
    replicas
        How many pods each workload creates; by default what it says.

    Raises
    ------
    InputError
        If a file cannot be read, has no pod, or has a workload without a pod template.
    """
    items: list[Manifest] = []
    keys: list[str] = []
    workloads = 0
    for file in files:
        found, kinds = False, set()
        for content in _contents(file):
            kinds.add(content["kind"])
            made = [content]
            if content["kind"] in WORKLOADS:
                workloads += 1
                made = list(_expanded(content, replicas, file))
            pods = [one for one in made if one["kind"] == "Pod"]
            found = found or bool(pods) or content["kind"] in WORKLOADS
            keys += [_key(pod) for pod in pods]
            items += made
        if not found:
            held = f"contains {', '.join(sorted(kinds))} and no Pod" if kinds else "contains no Pod"
            raise InputError(f"{held}; must contain pods, or a {CAPABLE}", file=file)
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    return NewPods(keys, json.dumps(listed).encode(), workloads)


def _contents(file: str) -> Iterator[Manifest]:
    for document in read_documents([file]):
        for item in split(document):
            content = json.loads(item.content) if isinstance(item.content, bytes) else copy.deepcopy(item.content)
            yield {**content, "kind": item.kind}


def _expanded(workload: Manifest, replicas: int | None, file: str) -> Iterator[Manifest]:
    """Yield the pods of a workload, and what else it creates that placement reads."""
    kind, meta, spec = workload["kind"], workload.get("metadata") or {}, workload.get("spec") or {}
    name, namespace = meta.get("name") or "", meta.get("namespace") or "default"
    obj = f"{kind} {namespace}/{name}"
    template = spec.get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        raise InputError("has no pod template", file, obj, "spec.template")
    number = _number(spec, kind) if replicas is None else replicas
    if not isinstance(number, int) or number < 0:
        raise InputError(f"is {number!r}; must be a whole number", file, obj, "spec.replicas")
    labels = (template.get("metadata") or {}).get("labels") or {}
    owner_kind, owner = ("ReplicaSet", f"{name}-{NEW}") if kind in ("Deployment", "ReplicaSet") else (kind, name)
    if kind != "Job":
        selector = spec.get("selector") or {"matchLabels": labels}
        held = {"metadata": {"name": owner, "namespace": namespace, "labels": labels}}
        yield {"apiVersion": "apps/v1", "kind": owner_kind, **held, "spec": {"replicas": number, "selector": selector}}
    for i in range(number):
        pod_name = f"{owner}-{i}"
        pod = copy.deepcopy(template)
        reference = {"kind": owner_kind, "name": owner, "controller": True}
        pod["metadata"] = {
            **(pod.get("metadata") or {}),
            "name": pod_name,
            "namespace": namespace,
            "ownerReferences": [reference],
        }
        for claim in spec.get("volumeClaimTemplates") or ():
            yield _claim(claim, pod, pod_name, namespace)
        yield {"apiVersion": "v1", "kind": "Pod", **pod, "status": {"phase": "Pending"}}


def _number(spec: Manifest, kind: str) -> Any:
    """Return how many pods a workload has at once."""
    if kind != "Job":
        return spec.get("replicas", 1)
    parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
    return parallelism if completions is None else min(parallelism, completions)


def _claim(claim: Manifest, pod: Manifest, pod_name: str, namespace: str) -> Manifest:
    """Return the claim that a StatefulSet makes for a pod, and let the pod use it."""
    template = (claim.get("metadata") or {}).get("name") or ""
    name = f"{template}-{pod_name}"
    volumes = [volume for volume in pod["spec"].get("volumes") or () if volume.get("name") != template]
    pod["spec"]["volumes"] = [*volumes, {"name": template, "persistentVolumeClaim": {"claimName": name}}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": claim.get("spec") or {},
        "status": {"phase": "Pending"},
    }


def _key(pod: Manifest) -> str:
    meta = pod.get("metadata") or {}
    return f"{meta.get('namespace') or 'default'}/{meta.get('name') or ''}"
