"""Data that lies on the node of a pod: it stays behind, or is deleted, when the pod goes."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.plans.movability.annotations import EVICT, SAFE_TO_EVICT, SAFE_TO_EVICT_VOLUMES

MEMORY = "Memory"
"""The medium of an ``emptyDir`` that is a cache in memory; the cluster autoscaler does not protect those either."""


def local_data(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    """Yield each volume of a pod whose data does not follow it to another node, such as ``emptyDir cache``.

    These are an ``emptyDir`` on disk, a ``hostPath`` that a container can write, and a claim on a PersistentVolume
    that is local or a host path. Mounts that the snapshot does not show count as writable.
    """
    for volume in pod.spec.volumes:
        if volume.empty_dir and volume.empty_dir.medium != MEMORY:
            yield f"emptyDir {volume.name}"
        elif volume.host_path and not volume.host_path.read_only:
            yield f"hostPath {volume.name}"
        elif volume.persistent_volume_claim:
            claim = snapshot.claims.get(f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}")
            bound = snapshot.volumes.get(claim.spec.volume_name) if claim else None
            if bound and (bound.spec.local or bound.spec.host_path):
                yield f"local PersistentVolume {bound.metadata.name}"


def protected_data(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    """Yield the volumes of `local_data` that the owner has not given up.

    Owners give up data with ``descheduler.alpha.kubernetes.io/evict``, with
    ``cluster-autoscaler.kubernetes.io/safe-to-evict: "true"``, or volume by volume with
    ``cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes``, as the tools that define them read them.
    """
    annotations = pod.metadata.annotations
    if EVICT in annotations or annotations.get(SAFE_TO_EVICT) == "true":
        return
    given_up = set(annotations.get(SAFE_TO_EVICT_VOLUMES, "").split(","))
    yield from (data for data in local_data(snapshot, pod) if data.partition(" ")[2] not in given_up)
