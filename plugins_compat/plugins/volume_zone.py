"""VolumeZone: a volume with a zone label is used in that zone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.arrays import Bools
from models.kubernetes import Node
from plugins_compat.framework.cycle import Cycle
from plugins_compat.framework.shapes import Shape
from plugins_compat.framework.state import REGION_LABELS, ZONE_LABELS
from plugins_compat.matching import everywhere
from plugins_compat.plugins.static_filter import StaticFilter
from plugins_compat.plugins.volumes import claims_of, volume_of, waits

TOPOLOGY_LABELS = (*ZONE_LABELS, *REGION_LABELS)
GENERAL = dict(zip((ZONE_LABELS[0], REGION_LABELS[0]), (ZONE_LABELS[1], REGION_LABELS[1]), strict=True))


class VolumeZone(StaticFilter):
    """Rejects nodes outside the zones and regions that the pod's bound volumes are labelled with."""

    name = "VolumeZone"
    one_reason_a_code = True

    def passes(self, shape: Shape) -> Bools:
        """``[n]`` nodes that every labelled volume of the shape admits."""
        snapshot = self.state.snapshot
        mask = everywhere(self.state)
        for _, claim in claims_of(snapshot, shape):
            if claim is None or (not claim.spec.volume_name and not waits(snapshot, claim)):
                return np.zeros_like(mask)
            volume = volume_of(snapshot, claim)
            if volume is None:
                continue
            for key in TOPOLOGY_LABELS:
                if value := volume.metadata.labels.get(key):
                    zones = set(value.split("__"))
                    mask &= np.array([self._admits(node, key, zones) for node in self.state.nodes], dtype=np.bool_)
        return mask

    def _admits(self, node: Node, key: str, zones: set[str]) -> bool:
        if not any(label in node.labels for label in TOPOLOGY_LABELS):
            return True
        value = node.labels.get(key)
        if value is None and self.release.zone_label_translation and key in GENERAL:
            value = node.labels.get(GENERAL[key])
        return value in zones

    def reasons(self, cycle: Cycle, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        return ("node(s) had no available volume zone",)
