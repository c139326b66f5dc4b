"""What the volume plugins share: the claims of a pod and what is behind them."""

from __future__ import annotations

from collections.abc import Iterator

from models.kubernetes import PersistentVolume, PersistentVolumeClaim
from models.snapshot import Snapshot
from plugins_compat.framework.shapes import Shape


def claims_of(snapshot: Snapshot, shape: Shape) -> Iterator[tuple[str, PersistentVolumeClaim | None]]:
    """Yield each claim of a shape by key, ``None`` where the snapshot does not hold it."""
    for key in shape.claims:
        yield key, snapshot.claims.get(key)


def volume_of(snapshot: Snapshot, claim: PersistentVolumeClaim) -> PersistentVolume | None:
    """Return the volume that a claim is bound to, if the snapshot holds it."""
    return snapshot.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None


def waits(snapshot: Snapshot, claim: PersistentVolumeClaim) -> bool:
    """Whether an unbound claim waits for its first consumer."""
    storage_class = snapshot.classes.get(claim.class_name)
    return storage_class is not None and storage_class.waits_for_consumer
