"""The scheduler's cache, event by event: what each event of a script changes, and which one is an error.

A script takes the place of the clock, the API server and the binding threads, which a simulation does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from stowplan.models.errors import InputError
from stowplan.models.interning import FrozenMap
from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.models.validation import refusal
from stowplan.models.yaml_input import read_yaml
from stowplan.plugins_compat.framework.cache import CacheError, SchedulerCache
from stowplan.plugins_compat.release import Release

Verb = Literal["assume", "finishBinding", "forget", "add", "update", "remove", "expire", "addNode", "removeNode"]
OF_PODS = ("assume", "finishBinding", "forget", "add", "update", "remove")
REPORTED = ("add", "update", "remove")
"""Events that the API server reports, with the pod as it is then."""
ON_NODES = ("assume", "forget", "add")


class CacheEvent(BaseModel):
    """One event: what happens, in which second, and to which pod or node.

    Parameters
    ----------
    annotations
        What annotations of the pod are from now on, beside its others.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    event: Verb
    at: Annotated[float, Field(ge=0)] = 0.0
    pod: str = ""
    node: str = ""
    annotations: dict[str, str] = {}

    @model_validator(mode="after")
    def _says_what_it_is_about(self) -> CacheEvent:
        if (self.event in OF_PODS) != bool(self.pod):
            raise ValueError(f"{self.event} {'needs a' if self.event in OF_PODS else 'takes no'} pod")
        wants = self.event in ON_NODES or self.event.endswith("Node")
        if wants != bool(self.node):
            raise ValueError(f"{self.event} {'needs a' if wants else 'takes no'} node")
        if self.annotations and self.event not in REPORTED:
            raise ValueError(f"{self.event} takes no annotations")
        return self


class CacheScript(BaseModel):
    """A script: after how many seconds assumed pods expire, never if not said, and the events in order."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lifetime: Annotated[float, Field(ge=0)] | None = None
    events: tuple[CacheEvent, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class CacheStep:
    """An event, and how things are after it.

    Parameters
    ----------
    said
        What came of it: the pods that expired, or the error that upstream reports.
    error
        Whether it was refused, and changed nothing.
    pods
        By node, its pods; assumed ones end in ``(assumed)``. Nodes that are not there yet, or no longer, are named
        with ``(no node)``.
    requested
        By node, what its pods are charged, in scheduler units.
    """

    event: CacheEvent
    said: str
    error: bool
    pods: Mapping[str, Sequence[str]]
    requested: Mapping[str, Mapping[str, int]]


def read_script(path: str) -> CacheScript:
    """Read a script.

    Raises
    ------
    InputError
        With the event that cannot be used.
    """
    try:
        return TypeAdapter(CacheScript).validate_python(read_yaml(path))
    except ValidationError as error:
        raise refusal(error, path) from None


def run_script(snapshot: Snapshot, release: Release, script: CacheScript) -> list[CacheStep]:
    """Run a script on a cache that has the snapshot's nodes and, as added, the pods that are on them.

    Raises
    ------
    InputError
        If an event names a pod or, to be added, a node that the snapshot does not hold.
    """
    cache = SchedulerCache(release, script.lifetime)
    for node in snapshot.nodes:
        cache.add_node(node)
    pods = {pod.key: pod for pod in snapshot.pods if not pod.finished}
    for pod in pods.values():
        if pod.node_name:
            cache.add(pod, pod.node_name)
    steps = []
    for i, event in enumerate(script.events):
        if event.annotations and event.pod in pods:
            pods[event.pod] = _annotated(pods[event.pod], event.annotations)
        try:
            said, error = _apply(cache, snapshot, pods, event), False
        except CacheError as problem:
            said, error = str(problem), True
        except KeyError:
            what, name = ("pod", event.pod) if event.pod else ("node", event.node)
            raise InputError(f"names {what} {name!r}, which the snapshot does not hold", field=f"events[{i}]") from None
        steps.append(_step(cache, pods, event, said, error=error))
    return steps


def _apply(cache: SchedulerCache, snapshot: Snapshot, pods: Mapping[str, Pod], event: CacheEvent) -> str:
    match event.event:
        case "assume":
            cache.assume(pods[event.pod], event.node)
        case "finishBinding":
            cache.finish_binding(pods[event.pod], event.at)
        case "forget":
            cache.forget(pods[event.pod], event.node)
        case "add":
            cache.add(pods[event.pod], event.node)
        case "update":
            cache.update(pods[event.pod])
        case "remove":
            cache.remove(pods[event.pod])
        case "expire":
            return f"expired: {', '.join(gone)}" if (gone := cache.expire(event.at)) else "nothing expired"
        case "addNode":
            cache.add_node(snapshot.nodes[snapshot.node_index[event.node]])
        case "removeNode":
            cache.remove_node(event.node)
    return ""


def _annotated(pod: Pod, annotations: Mapping[str, str]) -> Pod:
    changed = FrozenMap({**pod.metadata.annotations, **annotations})
    return replace(pod, metadata=replace(pod.metadata, annotations=changed))


def _step(cache: SchedulerCache, pods: Mapping[str, Pod], event: CacheEvent, said: str, *, error: bool) -> CacheStep:
    held: dict[str, Sequence[str]] = {}
    requested: dict[str, Mapping[str, int]] = {}
    for name, account in cache.nodes.items():
        title = name if account.node is not None else f"{name} (no node)"
        held[title] = [f"{key} (assumed)" if cache.is_assumed(pods[key]) else key for key in sorted(account.pods)]
        requested[title] = {resource: amount for resource, amount in account.requested.items() if amount}
    return CacheStep(event, said, error, held, requested)
