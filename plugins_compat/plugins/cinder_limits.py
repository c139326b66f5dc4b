"""CinderLimits: a node attaches only so many OpenStack volumes. In no release's default profile."""

from __future__ import annotations

from stowplan.models.kubernetes import Node
from stowplan.models.kubernetes.pod import Cinder
from stowplan.plugins_compat.plugins.csi_migration import CINDER, Disk
from stowplan.plugins_compat.plugins.in_tree_limits import InTreeLimits


class CinderLimits(InTreeLimits):
    """Limits OpenStack volumes."""

    name = "CinderLimits"
    plugin = CINDER
    allocatable = "attachable-volumes-cinder"

    def disk_name(self, disk: Disk) -> str:
        """Return the volume's id."""
        assert isinstance(disk, Cinder)
        return disk.volume_id

    def default_limit(self, node: Node) -> int:
        """Return 256."""
        return 256
