"""Which of the existing volumes an unbound claim may take, and in which order it prefers them."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.models.kubernetes import PersistentVolume, PersistentVolumeClaim
from stowplan.plugins_compat.release import Release

FILESYSTEM = "Filesystem"


def claimed(volume: PersistentVolume) -> bool:
    """Whether a volume is reserved for some claim."""
    return volume.spec.claim_ref is not None


def reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is reserved for this claim; a reservation without a uid is by name alone."""
    reference = volume.spec.claim_ref
    if reference is None:
        return False
    named = (reference.namespace, reference.name) == (claim.metadata.namespace or "default", claim.metadata.name)
    return named and reference.uid in ("", claim.metadata.uid)


def holds(volume: PersistentVolume, claim: PersistentVolumeClaim, release: Release) -> bool:
    """Whether a volume is such that even one reserved for the claim has to be so: large enough, of the right kind."""
    return (
        volume.class_name == claim.class_name
        and volume.capacity >= (claim.size or 0)
        and (volume.spec.volume_mode or FILESYSTEM) == (claim.spec.volume_mode or FILESYSTEM)
        and (
            not release.volume_attributes_classes
            or (volume.spec.volume_attributes_class_name or "") == (claim.spec.volume_attributes_class_name or "")
        )
        and volume.metadata.deletion_timestamp is None
    )


def open_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume that no claim has reserved may be bound to the claim."""
    selector = claim.spec.selector
    return (
        volume.available
        and (selector is None or selector.matches(volume.metadata.labels))
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def candidates(
    volumes: tuple[PersistentVolume, ...], claim: PersistentVolumeClaim, release: Release
) -> Iterator[tuple[int, bool]]:
    """Yield the volumes that a claim may take, best first, wherever they can be reached.

    Volumes reserved for the claim come first; then the smallest. Among equals upstream's order is random, here it is
    the order of the snapshot.

    Returns
    -------
    Iterator of (position of the volume, whether it is reserved for the claim)
    """
    fitting = [v for v, volume in enumerate(volumes) if holds(volume, claim, release)]
    yield from ((v, True) for v in fitting if reserved_for(volumes[v], claim))
    free = [v for v in fitting if not claimed(volumes[v]) and open_to(volumes[v], claim)]
    yield from ((v, False) for v in sorted(free, key=lambda v: volumes[v].capacity))
