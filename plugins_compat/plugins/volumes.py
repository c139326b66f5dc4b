"""What the volume plugins share: the claims of a pod and what is behind them."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.models.kubernetes import PersistentVolume, PersistentVolumeClaim, Pod
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.signatures import Signature


def claims_of(snapshot: Snapshot, signature: Signature) -> Iterator[tuple[str, PersistentVolumeClaim | None]]:
    """Yield the claim behind each volume of a signature by key, ``None`` where the snapshot does not hold it."""
    for key in signature.claims:
        yield key, snapshot.claims.get(key)


def volume_of(snapshot: Snapshot, claim: PersistentVolumeClaim) -> PersistentVolume | None:
    """Return the volume that a claim names, if the snapshot holds it."""
    return snapshot.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None


def waits(snapshot: Snapshot, claim: PersistentVolumeClaim) -> bool:
    """Whether an unbound claim waits for its first consumer."""
    storage_class = snapshot.classes.get(claim.class_name)
    return storage_class is not None and storage_class.waits_for_consumer


def not_owned(snapshot: Snapshot, signature: Signature) -> str:
    """Say which claim of an ephemeral volume was not made for the pod; empty if there is none such."""
    for key, claim in claims_of(snapshot, signature):
        if claim is not None and key in signature.ephemeral and not owned(claim, signature.pod):
            return foreign(key, signature.pod)
    return ""


def owned(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether a claim of an ephemeral volume was made for this pod, and not for one of the same name before it."""
    owner = claim.metadata.controller
    return owner is not None and owner.uid == pod.metadata.uid


def foreign(key: str, pod: Pod) -> str:
    """Say, as upstream does, that a claim was not made for a pod."""
    return f"PVC {key} was not created for pod {pod.key} (pod is not owner)"


def name_of(key: str) -> str:
    """Return the name of a claim from its key."""
    return key.partition("/")[2]


def not_found(key: str) -> str:
    """Say, as the API does, that there is no such claim."""
    return f'persistentvolumeclaim "{name_of(key)}" not found'
