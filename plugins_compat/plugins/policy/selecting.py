"""Which services and controllers select a pod, as release 1.5 looks for them: by labels, not by owner."""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.models.interning import FrozenMap
from stowplan.models.kubernetes import LabelSelector, Pod
from stowplan.models.snapshot import Snapshot


def service_selectors(snapshot: Snapshot, pod: Pod) -> Sequence[LabelSelector]:
    """Return the selectors of the services that select a pod, in the order of the snapshot.

    A service without a selector selects nothing; one with an empty selector selects every pod of its namespace.
    """
    return [
        LabelSelector(selector)
        for service in snapshot.services
        if (service.metadata.namespace or "default") == pod.namespace
        and service.spec is not None
        and (selector := service.spec.selector) is not None
        and _selects(selector, pod)
    ]


def controller_selectors(snapshot: Snapshot, pod: Pod) -> Sequence[LabelSelector]:
    """Return the selectors of the ReplicationControllers and ReplicaSets that select a pod.

    An empty selector selects nothing here.
    """
    return [
        selector
        for (kind, namespace, _), selector in snapshot.controller_selectors.items()
        if kind in ("ReplicationController", "ReplicaSet")
        and namespace == pod.namespace
        and not selector.empty
        and selector.matches(pod.metadata.labels)
    ]


def _selects(selector: FrozenMap[str], pod: Pod) -> bool:
    return all(pod.metadata.labels.get(key) == value for key, value in selector.items())
