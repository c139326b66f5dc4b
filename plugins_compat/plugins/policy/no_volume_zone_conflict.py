"""NoVolumeZoneConflict: a volume that is labeled with a zone or a region is used there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes import PersistentVolume, Pod
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import REGION_LABELS, ZONE_LABELS
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.matching import everywhere
from stowplan.plugins_compat.plugins.static_filter import StaticFilter
from stowplan.plugins_compat.plugins.volumes import claims_of, name_of, volume_of

LABELS = (ZONE_LABELS[0], REGION_LABELS[0])
"""The two labels that are compared; release 1.5 knows no others."""


class NoVolumeZoneConflict(StaticFilter):
    """Rejects nodes whose zone and region labels differ from those of the volumes behind the pod's claims.

    Values are compared as they are: ``a__b`` is one value. A node without either label passes, and so do inline
    volumes, whose zone is not known.
    """

    name = "NoVolumeZoneConflict"
    refusal = "pods whose claims are missing, not bound, or bound to a missing volume, where nodes have zone labels"

    def refuses(self, pod: Pod) -> str | None:
        """Refuse pods that upstream fails with an error on every node that has zone labels."""
        problem = self._problem(self.state.signatures.of(pod))
        return problem if problem and self._labeled().any() else None

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` nodes where every label of every volume has the same value, and nodes without labels."""
        mask = everywhere(self.state)
        if self._problem(signature):
            return ~self._labeled()
        for _, claim in claims_of(self.state.snapshot, signature):
            volume = volume_of(self.state.snapshot, claim) if claim is not None else None
            if volume is not None:
                mask &= self._same_zone(volume)
        return mask | ~self._labeled()

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes in other zones; where the zone of a volume cannot be looked up, the cycle fails."""
        code = Code.ERROR if self._problem(cycle.signature) else Code.UNSCHEDULABLE
        return np.where(self.mask(cycle.signature)[nodes], Code.SUCCESS, code)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return what could not be looked up, else the predicate's name, which is what upstream reports."""
        return (self._problem(cycle.signature) or self.name,)

    def _problem(self, signature: Signature) -> str:
        """Say which claim has no volume to look at; empty if each has one."""
        snapshot = self.state.snapshot
        for key, claim in claims_of(snapshot, signature):
            if key in signature.ephemeral:
                continue
            if claim is None:
                return f'PersistentVolumeClaim was not found: "{name_of(key)}"'
            if not claim.spec.volume_name:
                return f'PersistentVolumeClaim is not bound: "{name_of(key)}"'
            if volume_of(snapshot, claim) is None:
                return f'PersistentVolume not found: "{claim.spec.volume_name}"'
        return ""

    def _same_zone(self, volume: PersistentVolume) -> Bools:
        """``[n]`` nodes that carry the labels of a volume; a node that lacks one of them does not."""
        mask = everywhere(self.state)
        for label in LABELS:
            if label in volume.metadata.labels:
                wanted = volume.metadata.labels[label]
                mask &= np.array([node.labels.get(label, "") == wanted for node in self.state.nodes], dtype=np.bool_)
        return mask

    def _labeled(self) -> Bools:
        """``[n]`` nodes with either label."""
        return self.state.memo(
            (self.name, "labeled"),
            lambda: np.array([any(label in node.labels for label in LABELS) for node in self.state.nodes]),
        )
