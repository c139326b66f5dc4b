"""MaxEBSVolumeCount: a node attaches at most 39 EBS disks."""

from __future__ import annotations

from stowplan.models.kubernetes.pod import AWSElasticBlockStore
from stowplan.plugins_compat.plugins.csi_migration import AWS_EBS, Disk
from stowplan.plugins_compat.plugins.policy.max_volume_count import MaxVolumeCount


class MaxEBSVolumeCount(MaxVolumeCount):
    """Limits EBS disks to 39 a node, on every machine."""

    name = "MaxEBSVolumeCount"
    plugin = AWS_EBS
    most = 39

    def disk_name(self, disk: Disk) -> str:
        """Return the disk's id, as written."""
        assert isinstance(disk, AWSElasticBlockStore)
        return disk.volume_id
