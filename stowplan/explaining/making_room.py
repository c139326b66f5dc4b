"""Room for one pod: nodes to add, pods to evict, requests to lower."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stowplan.explaining.loosening import Change, only
from stowplan.models.interning import freeze
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.kubernetes.pod import PodSpec, ResourceRequirements
from stowplan.models.quantity import NANO, Nanos, format_quantity
from stowplan.models.snapshot import Snapshot, tied
from stowplan.models.words import plural
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.requests import units
from stowplan.scenarios.changes import SHORT
from stowplan.scenarios.nodes import HOSTNAME, add_nodes, evicted, resize_nodes
from stowplan.scenarios.rules import with_specs

POOLS = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
"""Labels that name the pool of a node, the first that a node has."""
TRIED_POOLS = 20
"""Kinds of nodes of which one more is tried, those with most of what the pod requests first."""
TRIED = 60
"""Nodes on which evictions are tried, those that lack least of what the pod requests first."""


@dataclass(frozen=True, slots=True, eq=False)
class Room(Change):
    """A change that may make room.

    Parameters
    ----------
    victims
        Keys of the pods that are evicted.
    also
        A second change beside it, in words.
    """

    snapshot: Snapshot
    victims: Sequence[str] = ()
    also: str = ""


def more_nodes(snapshot: Snapshot) -> Iterator[Room]:
    """Yield snapshots with one more node of each pool and zone, empty but for pods that come with a node."""
    kinds: dict[tuple[object, str | None], Node] = {}
    for node in snapshot.nodes:
        own = {key: value for key, value in node.labels.items() if key != HOSTNAME}
        pool = _pool(node)
        kind = pool or (frozenset(own.items()), tuple(node.taints), frozenset(node.allocatable.items()))
        kinds.setdefault((kind, node.labels.get(SHORT["zone"])), node)
    zones = Counter(kind for kind, _ in kinds)
    for (of, zone), node in list(kinds.items())[:TRIED_POOLS]:
        pool = _pool(node)
        what = f"of pool {pool}" if pool else f"like {node.name}"
        where = f" in {zone}" if pool and zone and zones[of] > 1 else ""
        yield Room(f"1 more node {what}{where}", add_nodes(snapshot, node.name))


def _pool(node: Node) -> str | None:
    return next((node.labels[key] for key in POOLS if key in node.labels), None)


def larger_nodes(snapshot: Snapshot, pod: Pod, framework_on: Callable[[Snapshot], Framework]) -> Iterator[Room]:
    """Yield snapshots with one more node of each pool and zone, as large as it has to be for a pod.

    Kinds of nodes that are large enough as they are are left out.

    Parameters
    ----------
    framework_on
        Returns a framework on the cluster of a snapshot.
    """
    for room in more_nodes(snapshot):
        state = framework_on(room.snapshot).state
        new = state.nodes[-1]
        asked, used = state.vector(state.signatures.of(pod)), state.requested[:, -1]
        missing = asked + used - state.allocatable[:, -1]
        amounts = {
            name: Nanos(int((asked + used)[row]) * (NANO // units(name, NANO)))
            for name, row in state.resources.items()
            if asked[row] and missing[row] > 0
        }
        if amounts:
            size = " and ".join(f"{format_quantity(nanos)} {name}" for name, nanos in amounts.items())
            yield Room(f"{room.words}, but with {size}", resize_nodes(room.snapshot, [new.name], amounts))


def smaller_requests(snapshot: Snapshot, pod: Pod, framework: Framework) -> Iterator[Room]:
    """Yield snapshots in which a pod requests less of one resource, or of all: what a node has left.

    Parameters
    ----------
    framework
        On the cluster of the snapshot.
    """
    if len(pod.spec.containers) != 1 or pod.spec.init_containers:
        return  # whose request to lower is for its owner to say
    state = framework.state
    requested = pod.spec.containers[0].requests
    asked = {name: nanos for name, nanos in requested.items() if nanos and name in state.resources}
    left = state.allocatable - state.requested
    for names in (*([name] for name in asked), list(asked)):
        enough = _requesting(snapshot, pod, dict.fromkeys(names, 0))
        free = _feasible(framework, next(one for one in enough.pods if one.key == pod.key))
        if not len(free):
            continue
        room = {name: left[state.resources[name], free] / max(1, units(name, asked[name])) for name in names}
        best = int(np.argmax(np.min([np.minimum(1, share) for share in room.values()], axis=0)))
        most = {name: int(left[state.resources[name], free[best]]) for name in names}
        less = {name: asked[name] * most[name] // units(name, asked[name]) for name in names}
        less = {name: nanos for name, nanos in less.items() if nanos < asked[name]}
        if less and min(less.values()) > 0:
            told = (
                f"{format_quantity(new)} {name} instead of {format_quantity(asked[name])}" for name, new in less.items()
            )
            yield Room(f"request {' and '.join(told)}", _requesting(snapshot, pod, less))


def _feasible(framework: Framework, pod: Pod) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    diagnosis = framework.run_filters(framework.cycle(pod))
    return diagnosis.feasible if diagnosis.rejected is None else diagnosis.nodes[:0]


def _requesting(snapshot: Snapshot, pod: Pod, amounts: Mapping[str, int]) -> Snapshot:
    def changed(spec: PodSpec) -> PodSpec:
        (container,) = spec.containers
        has = container.resources or ResourceRequirements()
        asked = freeze({**has.requests, **{name: Nanos(nanos) for name, nanos in amounts.items()}})
        return replace(spec, containers=(replace(container, resources=replace(has, requests=asked)),))

    return with_specs(snapshot, only(pod), changed)


def evictions(snapshot: Snapshot, pod: Pod, framework: Framework, go_on: Callable[[], None]) -> Iterator[Room]:
    """Yield the snapshot after the cheapest eviction on one node: of the least important pods, and of as few as do.

    All pods of a node that are no more important than the pod leave, and come back one after the other, the most
    important first, if the filters still admit the pod, as kube-scheduler's preemption does; that also evicts none of
    the same priority, and heeds disruption budgets, which this does not. Of all nodes, the one counts on which the most
    important victim is least important, and then the one with fewest victims.

    Parameters
    ----------
    framework
        On the cluster of the snapshot; it is left as it was.
    go_on
        Called before the filters are asked; raises to end.
    """
    best: tuple[tuple[int, int], int, Sequence[Pod]] | None = None
    here: dict[str, list[Pod]] = {}
    for other in snapshot.pods:
        if other.node_name and not other.finished and tied(other) is None and other.priority <= pod.priority:
            here.setdefault(other.node_name, []).append(other)
    for node in _near(framework, pod)[:TRIED].tolist():
        victims = _victims(framework, pod, node, here.get(framework.state.nodes[node].name, ()), go_on)
        if victims:
            price = max(victim.priority for victim in victims), len(victims)
            if best is None or price < best[0]:
                best = price, node, victims
    if best is None:
        return
    (priority, count), node, victims = best
    gone = {victim.key for victim in victims}
    least = min(victim.priority for victim in victims)
    which = f"priority {priority}" if least == priority else f"priorities {least} to {priority}"
    after = replace(snapshot, pods=tuple(evicted(one) if one.key in gone else one for one in snapshot.pods))
    words = f"evict {plural(count, 'pod')} of {which} from {framework.state.nodes[node].name}"
    yield Room(words, after, tuple(sorted(gone)))


def _near(framework: Framework, pod: Pod) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the nodes by the largest share of what the pod requests that is missing on them."""
    state = framework.state
    asked = state.vector(state.signatures.of(pod))[:, None]
    missing = np.maximum(0, asked - (state.allocatable - state.requested)) / np.maximum(1, asked)
    return np.argsort(missing.max(axis=0), kind="stable")


def _victims(
    framework: Framework, pod: Pod, node: int, here: Sequence[Pod], go_on: Callable[[], None]
) -> Sequence[Pod]:
    """Return the pods that have to leave a node for a pod; none if that does not help."""
    state = framework.state
    gone: list[Pod] = []
    go_on()
    try:
        for other in here:
            state.take(other, node)
            gone.append(other)
        if not gone or not _admitted(framework, pod, node):
            return ()
        for other in sorted(gone, key=lambda one: (-one.priority, one.key)):
            go_on()
            state.put(other, node)
            if _admitted(framework, pod, node):
                gone.remove(other)
            else:
                state.take(other, node)
        return tuple(gone)
    finally:
        for other in gone:
            state.put(other, node)


def _admitted(framework: Framework, pod: Pod, node: int) -> bool:
    diagnosis = framework.run_filters(framework.cycle(pod), np.array([node]))
    return len(diagnosis.feasible) > 0 and diagnosis.rejected is None
