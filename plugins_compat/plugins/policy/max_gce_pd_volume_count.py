"""MaxGCEPDVolumeCount: a node attaches at most 16 GCE disks."""

from __future__ import annotations

from stowplan.models.kubernetes.pod import GCEPersistentDisk
from stowplan.plugins_compat.plugins.csi_migration import GCE_PD, Disk
from stowplan.plugins_compat.plugins.policy.max_volume_count import MaxVolumeCount


class MaxGCEPDVolumeCount(MaxVolumeCount):
    """Limits GCE disks to 16 a node, on every machine."""

    name = "MaxGCEPDVolumeCount"
    plugin = GCE_PD
    most = 16

    def disk_name(self, disk: Disk) -> str:
        """Return the disk's id, as written."""
        assert isinstance(disk, GCEPersistentDisk)
        return disk.pd_name
