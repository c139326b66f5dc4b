"""Other requests of containers, as tools recommend them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stowplan.models.interning import freeze
from stowplan.models.kubernetes import Container, Pod
from stowplan.models.kubernetes.base import EMPTY
from stowplan.models.kubernetes.pod import ResourceRequirements
from stowplan.models.snapshot import Snapshot
from stowplan.scenarios.recommendations import Recommendation
from stowplan.settings.pod_groups import Owners, owners_of, workloads

MADE_BY = {"Deployment": "ReplicaSet", "Rollout": "ReplicaSet"}
"""Kind of the controller of pods, where it is not the workload itself."""

_Known = Mapping[tuple[str, str, str], Sequence[Recommendation]]


def with_requests(snapshot: Snapshot, recommendations: Iterable[Recommendation]) -> Snapshot:
    """Return a snapshot in which containers request what is recommended for them.

    A limit below the request becomes the request. What a kubelet holds for a pod whose size it is changing no longer
    counts. Pods of all workloads change, those of DaemonSets included.
    """
    owners = owners_of(snapshot)
    known: dict[tuple[str, str, str], list[Recommendation]] = {}
    for one in recommendations:
        known.setdefault((one.namespace, one.workload, one.container), []).append(one)
    return replace(snapshot, pods=tuple(_with_requests(pod, known, owners) for pod in snapshot.pods))


def _with_requests(pod: Pod, known: _Known, owners: Owners) -> Pod:
    if pod.finished:
        return pod
    containers = tuple(_changed(pod, container, known, owners) for container in pod.spec.containers)
    beside = tuple(_changed(pod, container, known, owners) for container in pod.spec.init_containers)
    if (containers, beside) == (pod.spec.containers, pod.spec.init_containers):
        return pod
    status = pod.status and replace(
        pod.status, container_statuses=(), init_container_statuses=(), resources=None, allocated_resources=EMPTY
    )
    return replace(pod, spec=replace(pod.spec, containers=containers, init_containers=beside), status=status)


def _changed(pod: Pod, container: Container, known: _Known, owners: Owners) -> Container:
    found = next(
        (
            one
            for name in sorted(workloads(pod, owners))
            for one in known.get((pod.namespace, name, container.name), ())
            if _is_of(pod, one)
        ),
        None,
    )
    if found is None or not found.requests:
        return container
    has = container.resources or ResourceRequirements()
    limits = {name: max(limit, found.requests.get(name, limit)) for name, limit in has.limits.items()}
    asked = {**has.requests, **found.requests}
    return replace(container, resources=replace(has, requests=freeze(asked), limits=freeze(limits)))


def _is_of(pod: Pod, one: Recommendation) -> bool:
    controller = pod.metadata.controller
    return not one.kind or (controller is not None and controller.kind in (one.kind, MADE_BY.get(one.kind)))
