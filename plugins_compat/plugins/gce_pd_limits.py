"""GCEPDLimits: a node attaches only so many GCE persistent disks."""

from __future__ import annotations

from stowplan.models.kubernetes import Node
from stowplan.models.kubernetes.pod import GCEPersistentDisk
from stowplan.plugins_compat.plugins.csi_migration import GCE_PD, Disk
from stowplan.plugins_compat.plugins.in_tree_limits import InTreeLimits


class GCEPDLimits(InTreeLimits):
    """Limits GCE persistent disks."""

    name = "GCEPDLimits"
    plugin = GCE_PD
    allocatable = "attachable-volumes-gce-pd"

    def disk_name(self, disk: Disk) -> str:
        """Return the disk's name."""
        assert isinstance(disk, GCEPersistentDisk)
        return disk.pd_name

    def default_limit(self, node: Node) -> int:
        """Return 16."""
        return 16
