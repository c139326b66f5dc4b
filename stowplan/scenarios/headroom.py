"""Room to keep: placeholder pods, which come after all real ones, and show whether there is room for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from stowplan.models.errors import InputError
from stowplan.models.kubernetes import LabelSelector, Pod
from stowplan.models.kubernetes.selectors import LabelSelectorRequirement
from stowplan.models.snapshot import Snapshot
from stowplan.scenarios.nodes import evicted
from stowplan.scenarios.rules import on_selected, requiring
from stowplan.scenarios.selection import topology_key
from stowplan.settings.pod_groups import owners_of, workloads

LOWEST = -(2**31)
"""Priority of placeholders: below that of any pod."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Room that a scenario or an object asks for.

    Parameters
    ----------
    by
        What its placeholders are called after.
    model
        A pod like those that there shall be room for.
    count
        Number of such pods.
    each
        Topology key, if there shall be room for so many in each of its domains.
    """

    by: str
    model: Pod
    count: int
    each: str | None = None


_pod: TypeAdapter[Pod] = TypeAdapter(Pod)


def pods_of(snapshot: Snapshot, namespace: str, name: str) -> list[Pod]:
    """Return the unfinished pods of a workload.

    Raises
    ------
    InputError
        If there is none: nothing is known of the pods that it would have.
    """
    owners = owners_of(snapshot)
    found = [
        pod
        for pod in snapshot.pods
        if not pod.finished and pod.namespace == namespace and name in workloads(pod, owners)
    ]
    if not found:
        raise InputError("has no pod in the snapshot that another one would be like", obj=f"{namespace}/{name}")
    return found


def templated(namespace: str, name: str, template: dict[str, Any]) -> Pod:
    """Return a pod as a template describes it."""
    meta = template.get("metadata") or {}
    return _pod.validate_python({"metadata": {**meta, "name": name, "namespace": namespace}, "spec": template["spec"]})


def with_headroom(snapshot: Snapshot, wishes: Iterable[Wish]) -> Snapshot:
    """Return a snapshot with a pending placeholder for each pod that there shall be room for.

    Placeholders have the rules and requests of the pods that they are like, no persistent volumes, and the lowest
    priority, so that pods that exist come first.

    Raises
    ------
    InputError
        If no node has a topology key.
    """
    taken = {pod.key for pod in snapshot.pods}
    made: list[Pod] = []
    for wish in wishes:
        for pod in _placeholders(snapshot, wish, taken):
            taken.add(pod.key)
            made.append(pod)
    return replace(snapshot, pods=(*snapshot.pods, *made))


def _placeholders(snapshot: Snapshot, wish: Wish, taken: set[str]) -> Iterator[Pod]:
    model = _placeholder(wish.model)
    if wish.each is None:
        yield from _numbered(model, f"{wish.by}-headroom", wish.count, taken)
        return
    key = topology_key(snapshot, wish.each)
    for domain in domains(snapshot, key):
        selector = LabelSelector(match_expressions=(LabelSelectorRequirement(key, "In", (domain,)),))
        spec = replace(model.spec, affinity=requiring(model.spec.affinity, on_selected(selector)))
        yield from _numbered(replace(model, spec=spec), f"{wish.by}-headroom-{domain}", wish.count, taken)


def domains(snapshot: Snapshot, key: str) -> Sequence[str]:
    """Return the values that nodes have for a topology key, in order.

    Raises
    ------
    InputError
        If no node has it.
    """
    found = sorted({node.labels[key] for node in snapshot.nodes if key in node.labels})
    if not found:
        raise InputError(f"no node of the snapshot has the label {key}")
    return found


def _numbered(model: Pod, base: str, count: int, taken: set[str]) -> Iterator[Pod]:
    i = 0
    while count:
        i += 1
        pod = replace(model, metadata=replace(model.metadata, name=f"{base}-{i}"))
        if pod.key not in taken:
            count -= 1
            yield pod


def _placeholder(model: Pod) -> Pod:
    pod = evicted(model)
    meta = replace(pod.metadata, uid="", generate_name="", creation_timestamp=None, deletion_timestamp=None)
    spec = replace(
        pod.spec,
        priority=LOWEST,
        priority_class_name=None,
        preemption_policy="Never",
        scheduling_gates=(),
        volumes=tuple(volume for volume in pod.spec.volumes if volume.persistent_volume_claim is None),
    )
    return replace(pod, metadata=meta, spec=spec)
