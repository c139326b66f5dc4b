"""AzureDiskLimits: a node attaches only so many Azure disks."""

from __future__ import annotations

from stowplan.models.kubernetes import Node
from stowplan.models.kubernetes.pod import AzureDisk
from stowplan.plugins_compat.plugins.csi_migration import AZURE_DISK, Disk
from stowplan.plugins_compat.plugins.in_tree_limits import InTreeLimits


class AzureDiskLimits(InTreeLimits):
    """Limits Azure disks."""

    name = "AzureDiskLimits"
    plugin = AZURE_DISK
    allocatable = "attachable-volumes-azure-disk"

    def disk_name(self, disk: Disk) -> str:
        """Return the disk's name; its URI does not count."""
        assert isinstance(disk, AzureDisk)
        return disk.disk_name

    def default_limit(self, node: Node) -> int:
        """Return 16."""
        return 16
