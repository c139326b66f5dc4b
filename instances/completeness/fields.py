"""Fields that every object of a running cluster has, and objects that lack them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stowplan.instances.completeness.gap import Gap
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.snapshot import MIRROR, Snapshot
from stowplan.models.words import plural

HOSTNAME = "kubernetes.io/hostname"
"""Label that every kubelet gives its node."""

_OF_A_TEMPLATE = (
    "pod-template-hash",
    "controller-revision-hash",
    "statefulset.kubernetes.io/pod-name",
    "batch.kubernetes.io/job-name",
    "job-name",
)
"""Labels that controllers give their pods, and that have no other source."""

_SELECTING = ("ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job")
"""Controllers that know their pods by labels."""

_GIVEN = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
"""Taints that the API server lets every pod tolerate for a time, as long as the pod does not say otherwise."""


def missing_fields(snapshot: Snapshot) -> Iterator[Gap]:
    """Yield what nodes and pods lack that the API server, the kubelet, or their controller always sets."""
    for lacks, what, fatal in _OF_NODES:
        if count := sum(1 for node in snapshot.nodes if lacks(node)):
            yield Gap(f"{plural(count, 'node')} without {what}", fatal)
    for of_pod, what, fatal in _OF_PODS:
        if count := sum(1 for pod in snapshot.pods if of_pod(pod)):
            yield Gap(f"{plural(count, 'pod')} without {what}", fatal)
    live = [pod for pod in snapshot.pods if not pod.finished and MIRROR not in pod.metadata.annotations]
    bare = sum(1 for pod in live if not pod.spec.tolerations)
    if bare and 2 * sum(1 for pod in live if _tolerates_for_a_time(pod)) > len(live):
        yield Gap(f"{plural(bare, 'pod')} without spec.tolerations, so it is not known on which nodes they can run")
    unranked = sum(1 for pod in live if pod.spec.priority is None and not pod.spec.priority_class_name)
    if unranked and any(pod.spec.priority is not None for pod in live):
        yield Gap(
            f"{plural(unranked, 'pod')} without spec.priority although others have one, so it is not known who may "
            "preempt whom"
        )
    strange = sum(1 for pod in live if _not_selected(snapshot, pod))
    if strange:
        yield Gap(
            f"{plural(strange, 'pod')} whose metadata.labels their controller does not select, so it is not known "
            "which budgets, affinities, and constraints count them"
        )
    for budget in snapshot.pod_disruption_budgets:
        spec = budget.spec
        if spec is None or spec.selector is None or (spec.min_available is None and spec.max_unavailable is None):
            name = f"{budget.metadata.namespace}/{budget.metadata.name}"
            yield Gap(f"PodDisruptionBudget {name} without a selector or a limit, so it is not known what it forbids")


def started(pod: Pod) -> bool:
    """Whether a kubelet has seen the pod, whatever else is known of it."""
    return pod.status is not None and bool(pod.status.host_ip or pod.status.start_time)


def _in_no_phase(pod: Pod) -> bool:
    """Whether a pod that may be over does not say so; manifests of pods that are to be created have no phase."""
    return not pod.phase and (bool(pod.node_name) or started(pod))


def _runs_nowhere(pod: Pod) -> bool:
    return not pod.node_name and not pod.finished and started(pod)


def _requests_nothing(pod: Pod) -> bool:
    """Whether a pod requests and limits nothing although its class of service says that it does."""
    if pod.finished or pod.status is None or pod.status.qos_class not in ("Guaranteed", "Burstable"):
        return False
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    given = pod.spec.resources
    return not any(one.requests or one.limits for one in containers) and not (
        given and (given.requests or given.limits)
    )


def _orphaned(pod: Pod) -> bool:
    meta = pod.metadata
    made = bool(meta.generate_name) or any(label in meta.labels for label in _OF_A_TEMPLATE)
    return made and not pod.finished and not meta.owner_references


def _tolerates_for_a_time(pod: Pod) -> bool:
    return any(toleration.key in _GIVEN for toleration in pod.spec.tolerations)


def _not_selected(snapshot: Snapshot, pod: Pod) -> bool:
    owner = pod.metadata.controller
    if owner is None:
        return False
    if owner.kind in _SELECTING and not pod.metadata.labels:
        return True
    selector = snapshot.controller_selectors.get((owner.kind, pod.namespace, owner.name))
    return selector is not None and not selector.matches(pod.metadata.labels)


_OF_NODES: tuple[tuple[Callable[[Node], bool], str, bool], ...] = (
    (lambda node: not node.allocatable, "status.allocatable: nothing is known to fit", True),
    (
        lambda node: node.readiness is None,
        "status.conditions, so it is not known which are ready",
        False,
    ),
    (
        lambda node: HOSTNAME not in node.labels,
        f"metadata.labels, or {HOSTNAME} in it, so it is not known which pods select them",
        False,
    ),
    (lambda node: not node.metadata.uid, "metadata.uid: they were not read from an API server", False),
)
_OF_PODS: tuple[tuple[Callable[[Pod], bool], str, bool], ...] = (
    (_in_no_phase, "status.phase, so it is not known which are over", True),
    (_runs_nowhere, "spec.nodeName that run on a node, so it is not known what is free on the nodes", True),
    (
        lambda pod: not pod.spec.containers,
        "spec.containers, so it is not known what they request",
        True,
    ),
    (_requests_nothing, "spec.containers[].resources although their status.qosClass says that they have some", True),
    (
        lambda pod: pod.spec.missing_volumes and not pod.finished,
        "spec.volumes that their containers mount, so it is not known which data would be lost",
        True,
    ),
    (
        lambda pod: pod.spec.priority is None and bool(pod.spec.priority_class_name) and not pod.finished,
        "spec.priority although they name a priority class, so it is not known who may preempt whom",
        False,
    ),
    (
        _orphaned,
        "metadata.ownerReferences although a controller made them, so it is not known who would make them again",
        False,
    ),
    (lambda pod: not pod.metadata.uid, "metadata.uid: they were not read from an API server", False),
)
