"""The selector that spreading uses for pods without constraints of their own."""

from __future__ import annotations

from models.interning import FrozenMap
from models.kubernetes import LabelSelector, Pod
from models.snapshot import Snapshot


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
    selector = LabelSelector(FrozenMap(labels))
    controller = pod.metadata.controller
    if controller is not None:
        key = (controller.kind, pod.namespace, controller.name)
        owned = snapshot.controller_selectors.get(key)
        if owned is not None:
            selector = LabelSelector(FrozenMap({**labels, **owned.match_labels}), owned.match_expressions)
    return None if selector.empty else selector
