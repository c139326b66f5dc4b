"""What the volume plugins share: the claims of a pod and what is behind them."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.models.kubernetes import PersistentVolume, PersistentVolumeClaim
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


def name_of(key: str) -> str:
    """Return the name of a claim from its key."""
    return key.partition("/")[2]


def not_found(key: str) -> str:
    """Say, as the API does, that there is no such claim."""
    return f'persistentvolumeclaim "{name_of(key)}" not found'
