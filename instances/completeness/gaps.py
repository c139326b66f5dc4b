"""Finds what a snapshot lacks although the cluster has it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from stowplan.instances.completeness.fields import missing_fields, started
from stowplan.instances.completeness.gap import Gap
from stowplan.instances.completeness.kinds import emptied_namespaces, missing_kinds, missing_namespaces
from stowplan.instances.completeness.listings import RESOURCES, Listing
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.snapshot import MIRROR, Snapshot
from stowplan.models.words import plural

SYSTEM = "kube-system"
"""The namespace that every cluster has; a new one may have pods in no other."""

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def gaps(
    snapshot: Snapshot, listings: Sequence[Listing] = (), annotations: frozenset[str] = frozenset()
) -> tuple[Gap, ...]:
    """Return what is missing in a snapshot, the fatal gaps first.

    Only objects of an API server, which have UUIDs, or nodes of which a kubelet reports, or come in a list that says
    what was asked, are held against what every cluster has: a cluster written by hand has no gaps but those that its
    lists name.

    Parameters
    ----------
    annotations
        Keys of annotations that are asked for, besides those that are always read.
    """
    asked = frozenset[str]().union(*(one.asked for one in listings if one.asked))
    found = [*_truncated(listings), *_lost(snapshot, listings), *_left_out(listings, annotations)]
    snapshot = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if not _to_be_created(pod)))
    if asked or any(_UID.fullmatch(uid) for uid in _uids(snapshot)) or any(map(_is_reported, snapshot.nodes)):
        found += _without_agents(snapshot, asked) or _of_one_namespace(snapshot, asked)
        found += missing_fields(snapshot)
        found += missing_kinds(snapshot, asked)
        found += missing_namespaces(snapshot, asked)
        found += emptied_namespaces(snapshot, asked)
    return tuple(sorted(found, key=lambda gap: not gap.fatal))


def _uids(snapshot: Snapshot) -> Iterator[str]:
    """Yield the uids of all objects, kind by kind."""
    for field, _ in RESOURCES.values():
        yield from (one.metadata.uid for one in getattr(snapshot, field))


def _to_be_created(pod: Pod) -> bool:
    """Whether a pod is of a manifest that no API server has completed, as those of ``fit -f``: no cluster has it."""
    known = pod.metadata.uid or pod.metadata.creation_timestamp or pod.node_name or started(pod)
    return not known and pod.phase in ("", "Pending")


def _is_reported(node: Node) -> bool:
    """Whether a kubelet told its version, and whether the node is ready or when an API server registered it."""
    return bool(node.kubelet_version) and (node.readiness is not None or bool(node.metadata.creation_timestamp))


def _truncated(listings: Sequence[Listing]) -> Iterator[Gap]:
    for one in listings:
        if one.rest:
            how_many = plural(one.rest, "object") if one.rest > 0 else "objects"
            yield Gap(f"a list was not read to its end: {how_many} are missing", fatal=True)
        if one.version and not one.version.isdecimal():
            yield Gap(
                f"a list has the resourceVersion {one.version!r}, which no API server gives: it was not written by "
                "one request, so it is not known what is missing"
            )


def _lost(snapshot: Snapshot, listings: Sequence[Listing]) -> Iterator[Gap]:
    """Yield kinds of which the snapshot has fewer objects than its lists say."""
    stated: Counter[str] = Counter()
    for one in listings:
        stated.update({resource: count for resource, count in (one.asked or {}).items() if count})
    for resource, count in stated.items():
        field, kind = RESOURCES.get(resource, ("", ""))
        if field and (lost := count - _held(snapshot, field)) > 0:
            objects = plural(count, f"{kind} object")
            yield Gap(f"the dump says that it holds {objects}, and {lost} of them {_are(lost)} missing", fatal=True)


def _left_out(listings: Sequence[Listing], annotations: frozenset[str]) -> Iterator[Gap]:
    """Yield annotations that are asked for, and that were left out when the dump was taken."""
    for key in sorted(annotations):
        if any(one.annotations is not None and key not in one.annotations for one in listings):
            yield Gap(
                f"the dump was taken without annotations {key!r}; take it with stowplan snapshot --config, which keeps "
                "what the configuration reads, or --full"
            )


def _held(snapshot: Snapshot, field: str) -> int:
    """Count the objects of a kind; namespaces that are known by the names of pods alone do not count."""
    if field == "namespaces":
        return sum(1 for one in snapshot.namespaces if one.metadata.uid)
    return len(getattr(snapshot, field))


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _of_one_namespace(snapshot: Snapshot, asked: frozenset[str]) -> list[Gap]:
    """A cluster's own pods are in namespaces of their own: those of one that is not among them are not all pods.

    Agents of monitoring or logging are on every node too: with their namespace each node has a DaemonSet pod.
    """
    spaces = {pod.namespace for pod in snapshot.pods}
    if "pods" in asked or len(spaces) != 1 or spaces == {SYSTEM}:
        return []
    what = (
        f"all pods are in namespace {spaces.pop()}: those of other namespaces are missing, so it is unknown what is "
        "free on the nodes; dump all namespaces (-A)"
    )
    return [Gap(what, fatal=True)]


def _without_agents(snapshot: Snapshot, asked: frozenset[str]) -> list[Gap]:
    """Every node of a cluster runs a pod of a DaemonSet or a static pod, such as kube-proxy or the network's agent."""
    if "pods" in asked:
        return []
    served = {pod.node_name for pod in snapshot.pods if pod.per_node or MIRROR in pod.metadata.annotations}
    bare = [node.name for node in snapshot.nodes if node.name not in served]
    if not bare:
        return []
    spaces = {pod.namespace for pod in snapshot.pods}
    only = f"; all pods are in namespace {next(iter(spaces))}" if len(spaces) == 1 else ""
    nodes = "1 node has" if len(bare) == 1 else f"{len(bare)} nodes have"
    what = (
        f"{nodes} neither a DaemonSet pod nor a static pod{only}: pods are missing, so it is unknown what is free on "
        "the nodes; dump all namespaces (-A)"
    )
    return [Gap(what, fatal=True)]


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
