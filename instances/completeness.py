"""What a dump does not hold although the cluster has it: absent is not none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from stowplan.instances.documents import Document
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.models.words import plural

ASKED = "stowplan-asked"
"""Annotation of a ``List`` that `stowplan.cluster.snapshot` writes: the kinds that were read to the end, by comma."""

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that a dump lacks.

    Parameters
    ----------
    what
        What is missing, and what therefore cannot be known.
    fatal
        Whether a plan made in spite of it is no plan for the cluster: pods are missing.
    """

    what: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """What a list says of itself.

    Parameters
    ----------
    asked
        Resources that were read to the end, such as ``poddisruptionbudgets.policy``; ``None`` if the list does not say.
    rest
        Objects that the list lacks; -1 for an unknown number.
    """

    asked: frozenset[str] | None = None
    rest: int = 0


class _ListMeta(msgspec.Struct, rename="camel"):
    annotations: dict[str, str] | None = None
    remaining_item_count: int | None = None
    more: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct):
    kind: str = ""
    metadata: _ListMeta | None = None


_list = msgspec.json.Decoder(_List)


def listing(document: Document) -> Listing:
    """Return what a JSON list says of itself; any other document says nothing."""
    try:
        read = _list.decode(document.data)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return Listing()
    meta = read.metadata
    if meta is None or not read.kind.endswith("List"):
        return Listing()
    asked = (meta.annotations or {}).get(ASKED)
    rest = meta.remaining_item_count or (-1 if meta.more else 0)
    return Listing(None if asked is None else frozenset(asked.split(",")), rest)


_EXPECTED = (
    ("pod_disruption_budgets", "poddisruptionbudgets.policy", "PodDisruptionBudget", "which evictions are forbidden"),
    ("csi_nodes", "csinodes.storage.k8s.io", "CSINode", "how many volumes a node attaches"),
    ("services", "services", "Service", "how the scheduler spreads pods by default"),
)
"""Kinds that clusters have as a rule: field of the snapshot, resource, kind, and what they tell."""

_NAMED = (
    ("replica_sets", "replicasets.apps", "ReplicaSet"),
    ("stateful_sets", "statefulsets.apps", "StatefulSet"),
    ("replication_controllers", "replicationcontrollers", "ReplicationController"),
    ("jobs", "jobs.batch", "Job"),
)
"""Kinds that pods name as their controllers."""


def gaps(snapshot: Snapshot, listings: tuple[Listing, ...] = ()) -> tuple[Gap, ...]:
    """Return what is missing in a snapshot, the fatal gaps first.

    Only objects that an API server made, which have UUIDs, are held against what every cluster has: a cluster written
    by hand or generated has no gaps but those that its lists name.
    """
    asked = frozenset[str]().union(*(one.asked for one in listings if one.asked))
    found = [*_truncated(listings)]
    if any(_UID.fullmatch(node.metadata.uid) for node in snapshot.nodes):
        found += _without_agents(snapshot, asked)
        found += _absent(snapshot, asked)
        found += _fields(snapshot)
    return tuple(sorted(found, key=lambda gap: not gap.fatal))


def _truncated(listings: tuple[Listing, ...]) -> Iterator[Gap]:
    for one in listings:
        if one.rest:
            how_many = plural(one.rest, "object") if one.rest > 0 else "objects"
            yield Gap(f"a list was not read to its end: {how_many} are missing", fatal=True)


def _without_agents(snapshot: Snapshot, asked: frozenset[str]) -> Iterator[Gap]:
    """Every node of a cluster runs a pod of a DaemonSet or a static pod, such as kube-proxy or the network's agent."""
    if "pods" in asked:
        return
    served = {pod.node_name for pod in snapshot.pods if pod.per_node or _mirror(pod)}
    bare = [node.name for node in snapshot.nodes if node.name not in served]
    if bare:
        spaces = {pod.namespace for pod in snapshot.pods}
        only = f"; all pods are in namespace {next(iter(spaces))}" if len(spaces) == 1 else ""
        nodes = "1 node has" if len(bare) == 1 else f"{len(bare)} nodes have"
        yield Gap(
            f"{nodes} neither a DaemonSet pod nor a static pod{only}: pods are missing, so it is unknown what is free "
            "on the nodes; dump all namespaces (-A)",
            fatal=True,
        )


def _absent(snapshot: Snapshot, asked: frozenset[str]) -> Iterator[Gap]:
    for field, resource, kind, what in _EXPECTED:
        if resource not in asked and not getattr(snapshot, field):
            yield Gap(f"no {kind} is in the dump, so it is not known {what}; take it with stowplan snapshot")
    owners = {owner.kind for pod in snapshot.pods if not pod.finished and (owner := pod.metadata.controller)}
    for field, resource, kind in _NAMED:
        if kind in owners and resource not in asked and not getattr(snapshot, field):
            yield Gap(f"pods are of a {kind}, but none is in the dump, so its replicas and retries are not known")
    claims = {
        f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"
        for pod in snapshot.pods
        if not pod.finished
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim
    }
    if missing := claims - snapshot.claims.keys():
        yield Gap(f"{plural(len(missing), 'claim')} of pods not in the dump, so it is not known where they can go")
    volumes = {claim.spec.volume_name for claim in snapshot.persistent_volume_claims if claim.spec.volume_name}
    if missing := volumes - snapshot.volumes.keys():
        yield Gap(f"{plural(len(missing), 'volume')} of claims not in the dump, so it is not known what is local")


def _fields(snapshot: Snapshot) -> Iterator[Gap]:
    """Yield fields that every object has once a cluster runs it."""
    if lacking := [node for node in snapshot.nodes if not node.allocatable]:
        yield Gap(f"{plural(len(lacking), 'node')} without status.allocatable: nothing is known to fit", fatal=True)
    if lacking := [node for node in snapshot.nodes if not (node.status and node.status.conditions)]:
        yield Gap(f"{plural(len(lacking), 'node')} without status.conditions, so it is not known which are ready")
    if without := [pod for pod in snapshot.pods if not pod.phase]:
        yield Gap(f"{plural(len(without), 'pod')} without status.phase, so it is not known which are over", fatal=True)


def _mirror(pod: Pod) -> bool:
    return "kubernetes.io/config.mirror" in pod.metadata.annotations


def require_whole(snapshot: Snapshot, waiver: str) -> None:
    """Refuse a snapshot that lacks pods, or what is known about nodes.

    Parameters
    ----------
    waiver
        How a caller plans all the same, for the error.

    Raises
    ------
    InputError
        With the first thing that is missing.
    """
    if snapshot.fatal_gaps:
        raise InputError(f"the dump is incomplete: {snapshot.fatal_gaps[0]}; {waiver} plans nevertheless")
