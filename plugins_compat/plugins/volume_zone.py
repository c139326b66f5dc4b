"""VolumeZone: a volume with a zone label is used in that zone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.models.kubernetes import PersistentVolume, PersistentVolumeClaim
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import REGION_LABELS, ZONE_LABELS
from stowplan.plugins_compat.framework.status import Code, NodeSet, Status
from stowplan.plugins_compat.matching import everywhere
from stowplan.plugins_compat.plugins.csi_migration import split_zones
from stowplan.plugins_compat.plugins.static_filter import StaticFilter
from stowplan.plugins_compat.plugins.volumes import claims_of, not_found, volume_of, waits

TOPOLOGY_LABELS = (*ZONE_LABELS, *REGION_LABELS)
GENERAL = dict(zip((ZONE_LABELS[0], REGION_LABELS[0]), (ZONE_LABELS[1], REGION_LABELS[1]), strict=True))

CONFLICT = "node(s) had no available volume zone"


class VolumeZone(StaticFilter):
    """Rejects nodes outside the zones and regions that the pod's bound volumes are labeled with.

    Claims of ephemeral volumes are not looked at.
    """

    name = "VolumeZone"

    def pre_filter(self, cycle: CycleState) -> Status | NodeSet | None:
        """Reject a pod whose volumes cannot be found, in releases that look for them here."""
        if self.release.zone_checked_in_pre_filter:
            for key, claim in self._claims(cycle.signature):
                if problem := self._problem(key, claim):
                    return Status(Code.UNRESOLVABLE, (problem,))
        return None

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` nodes that every labeled volume of the signature admits."""
        mask = everywhere(self.state)
        for key, claim in self._claims(signature):
            if self._problem(key, claim):
                return np.zeros_like(mask) if self.release.zone_checked_in_pre_filter else mask & ~self._labeled()
            mask &= self._admitted(claim)
        return mask

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        for key, claim in self._claims(cycle.signature):
            if problem := self._problem(key, claim):
                return (problem,)
            if not self._admitted(claim)[node]:
                break
        return (CONFLICT,)

    def _claims(self, signature: Signature) -> Iterator[tuple[str, PersistentVolumeClaim | None]]:
        return (item for item in claims_of(self.state.snapshot, signature) if item[0] not in signature.ephemeral)

    def _problem(self, key: str, claim: PersistentVolumeClaim | None) -> str:
        """Say why a claim's volume cannot be found though it should; empty if it can, or need not be there yet."""
        snapshot = self.state.snapshot
        if claim is None:
            return not_found(key)
        if claim.spec.volume_name:
            return "" if volume_of(snapshot, claim) else f'persistentvolume "{claim.spec.volume_name}" not found'
        if not claim.class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        if claim.class_name not in snapshot.classes:
            return f'storageclass.storage.k8s.io "{claim.class_name}" not found'
        return "" if waits(snapshot, claim) else "PersistentVolume had no name"

    def _admitted(self, claim: PersistentVolumeClaim | None) -> Bools:
        """``[n]`` nodes in the zones and regions of the claim's volume; all, if it has no volume yet."""
        volume = volume_of(self.state.snapshot, claim) if claim else None
        if volume is None:
            return everywhere(self.state)
        return self.state.memo((self.name, "volume", volume.metadata.name), lambda: self._inside(volume))

    def _inside(self, volume: PersistentVolume) -> Bools:
        mask = everywhere(self.state)
        for key in TOPOLOGY_LABELS:
            zones = split_zones(volume.metadata.labels.get(key, ""))
            if zones is not None:
                there = self._in(key, zones)
                if self.release.zone_label_translation and key in GENERAL:
                    there |= (self.state.topology(key).domain < 0) & self._in(GENERAL[key], zones)
                mask &= there
        return mask | ~self._labeled()

    def _in(self, key: str, zones: set[str]) -> Bools:
        """``[n]`` nodes whose label has one of the values."""
        topology = self.state.topology(key)
        # One answer a value, and a last one (index -1) for nodes without the label.
        inside = np.array([*(name in zones for name in topology.names), False], dtype=np.bool_)
        mask: Bools = inside[topology.domain]
        return mask

    def _labeled(self) -> Bools:
        """``[n]`` nodes with any zone or region label; the others take part in no zone, and pass."""
        mask = np.zeros(self.state.size, dtype=np.bool_)
        for key in TOPOLOGY_LABELS:
            mask |= self.state.topology(key).domain >= 0
        return mask
