"""The selector that spreading uses for pods without constraints of their own."""

from __future__ import annotations

from stowplan.models.interning import FrozenMap
from stowplan.models.kubernetes import LabelSelector, LabelSelectorRequirement, Pod
from stowplan.models.snapshot import Snapshot

REPLICATION_CONTROLLER = "ReplicationController"
API_VERSIONS = {REPLICATION_CONTROLLER: "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}
"""Controllers that count, with the API version that an owner reference must name; a missing one is let pass."""


def default_selector(snapshot: Snapshot, pod: Pod) -> LabelSelector | None:
    """Merge the selectors of the services that select the pod with the selector of its controller.

    Only a ReplicationController, ReplicaSet or StatefulSet that the snapshot holds counts as controller.

    Returns
    -------
    LabelSelector or None
        ``None`` if nothing is selected by anything.
    """
    labels: dict[str, str] = {}
    for label in pod.metadata.labels.items():
        for service in snapshot.services_by_label.get((pod.namespace, *label), ()):
            wanted = service.spec.selector if service.spec and service.spec.selector else FrozenMap[str]()
            if all(pod.metadata.labels.get(k) == v for k, v in wanted.items()):
                labels |= wanted
    controller = pod.metadata.controller
    owned = None
    if controller is not None and controller.api_version in ("", API_VERSIONS.get(controller.kind, "")):
        owned = snapshot.controller_selectors.get((controller.kind, pod.namespace, controller.name))
    if owned is None:
        selector = LabelSelector(FrozenMap(labels))
    elif controller is not None and controller.kind == REPLICATION_CONTROLLER:
        selector = LabelSelector(FrozenMap({**labels, **owned.match_labels}))
    else:
        # Both must hold: where they contradict each other, nothing is selected.
        own = (LabelSelectorRequirement(key, "In", (value,)) for key, value in owned.match_labels.items())
        selector = LabelSelector(FrozenMap(labels), (*own, *owned.match_expressions))
    return None if selector.empty else selector
