"""How placements spread over zones, and how each workload is spread over nodes and zones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stowplan.answers.measures import NodeUsage
from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.state import ZONE_LABELS

NO_ZONE = "(no zone)"


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the pods of a workload are in one placement.

    Parameters
    ----------
    nodes
        Number of nodes that hold one of its pods.
    most
        Number of its pods on the node that holds most of them.
    zones
        Number of its pods in each zone, those without any included if there are zones.
    unscheduled
        Number of its pods without a node.
    """

    nodes: int
    most: int
    zones: Mapping[str, int]
    unscheduled: int


@dataclass(frozen=True, slots=True)
class WorkloadSpread:
    """How a workload is spread in two placements.

    Parameters
    ----------
    namespace, kind, name
        Its controller; a ReplicaSet's that a Deployment made goes by the name of the Deployment.
    pods
        Number of its pods that are not finished.
    moves
        Number of them whose nodes differ.
    before, after
        Both placements.
    """

    namespace: str
    kind: str
    name: str
    pods: int
    moves: int
    before: Spread
    after: Spread


def zone_of(node: Node) -> str:
    """Return the zone of a node by its labels, the present one before the deprecated one; empty if it has neither."""
    return next((node.labels[label] for label in reversed(ZONE_LABELS) if node.labels.get(label)), "")


def by_zone(snapshot: Snapshot, nodes: Sequence[NodeUsage]) -> list[tuple[NodeUsage, int]]:
    """Add up the usage of nodes by zone; with the number of nodes of each. No zones, no result.

    Parameters
    ----------
    nodes
        In the snapshot's order, as `stowplan.answers.measures.Measures` has them.
    """
    members: dict[str, list[NodeUsage]] = {}
    for node, usage in zip(snapshot.nodes, nodes, strict=True):
        members.setdefault(zone_of(node) or NO_ZONE, []).append(usage)
    if set(members) <= {NO_ZONE}:
        return []
    return [(_sum(zone, members[zone]), len(members[zone])) for zone in sorted(members)]


def _sum(zone: str, members: Sequence[NodeUsage]) -> NodeUsage:
    resources = members[0].requested
    return NodeUsage(
        zone,
        sum(usage.pods for usage in members),
        {name: sum(usage.requested[name] for usage in members) for name in resources},
        {name: sum(usage.allocatable[name] for usage in members) for name in resources},
    )


def workload_spread(snapshot: Snapshot, before: Assignment, after: Assignment) -> list[WorkloadSpread]:
    """Return how each workload is spread in two placements, those with most moves first, then the largest.

    Pods without a controller, and those that come and go with their node, belong to no workload.
    """
    zones = {node.name: zone_of(node) for node in snapshot.nodes}
    if not any(zones.values()):
        zones = {}
    members: dict[tuple[str, str, str], list[str]] = {}
    for pod in snapshot.pods:
        if not pod.finished and not pod.per_node and pod.metadata.controller is not None:
            members.setdefault(_workload(pod), []).append(pod.key)
    found = [
        WorkloadSpread(
            *workload,
            len(keys),
            sum(before.get(key) != after.get(key) for key in keys),
            _spread(keys, before, zones),
            _spread(keys, after, zones),
        )
        for workload, keys in members.items()
    ]
    return sorted(found, key=lambda one: (-one.moves, -one.pods, one.namespace, one.kind, one.name))


def _workload(pod: Pod) -> tuple[str, str, str]:
    controller = pod.metadata.controller
    assert controller is not None
    made_by_deployment = controller.kind == "ReplicaSet" and pod.template_hash
    if made_by_deployment and controller.name.endswith(f"-{pod.template_hash}"):
        return pod.namespace, "Deployment", controller.name.removesuffix(f"-{pod.template_hash}")
    return pod.namespace, controller.kind, controller.name


def _spread(keys: Sequence[str], assignment: Assignment, zones: Mapping[str, str]) -> Spread:
    nodes = Counter(node for key in keys if (node := assignment.get(key)))
    in_zones: Counter[str] = Counter()
    for node, number in nodes.items():
        if zones:
            in_zones[zones.get(node) or NO_ZONE] += number
    return Spread(len(nodes), max(nodes.values(), default=0), dict(sorted(in_zones.items())), len(keys) - nodes.total())
