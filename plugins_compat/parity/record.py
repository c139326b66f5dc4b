"""Makes a case of a cluster and its pending pods, so that our own decisions can be recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stowplan.models.kubernetes import Pod
from stowplan.models.manifest import manifest
from stowplan.models.snapshot import Snapshot
from stowplan.models.trace import OBJECTS, Case
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.scheduler import in_turn
from stowplan.plugins_compat.framework.state import ClusterState


def make_case(
    name: str,
    snapshot: Snapshot,
    profile: Profile,
    queue: Sequence[Pod],
    node_of: Mapping[str, str],
    config: dict[str, Any] | None = None,
) -> Case:
    """Return a case in which pods of a snapshot are scheduled one after the other.

    Parameters
    ----------
    queue
        The pods to schedule; see `stowplan.plugins_compat.simulate.simulate`.
    node_of
        Node name by pod key of the pods that have a node already.
    config
        The parsed configuration that ``profile`` was read from, if any.
    """
    state = ClusterState(snapshot, profile.release)
    waiting = {pod.key for pod in queue}
    cluster = replace(
        snapshot,
        nodes=tuple(snapshot.nodes[n] for n in state.order),
        pods=tuple(
            _at(pod, node)
            for pod in snapshot.pods
            if not pod.finished and pod.key not in waiting and (node := node_of.get(pod.key))
        ),
    )
    pending = tuple(_at(pod, None) for pod in in_turn(Framework(profile, state), queue))
    objects = {key: [manifest(obj) for obj in getattr(cluster, field)] for key, (field, _) in OBJECTS.items()}
    objects["pending"] = [manifest(pod) for pod in pending]
    return Case(name, "sequence", cluster, pending, config, {key: items for key, items in objects.items() if items})


def _at(pod: Pod, node: str | None) -> Pod:
    return pod if pod.node_name == (node or "") else replace(pod, spec=replace(pod.spec, node_name=node))
