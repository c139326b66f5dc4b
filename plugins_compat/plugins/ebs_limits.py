"""EBSLimits: a node attaches only so many volumes of AWS Elastic Block Store."""

from __future__ import annotations

import re

from stowplan.models.kubernetes import Node
from stowplan.models.kubernetes.pod import AWSElasticBlockStore
from stowplan.plugins_compat.plugins.csi_migration import AWS_EBS, Disk
from stowplan.plugins_compat.plugins.in_tree_limits import InTreeLimits

INSTANCE_TYPE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
NITRO = re.compile(r"^[cmr]5|t3|z1d")
"""Finds machines that attach fewer volumes."""


class EBSLimits(InTreeLimits):
    """Limits EBS volumes."""

    name = "EBSLimits"
    plugin = AWS_EBS
    allocatable = "attachable-volumes-aws-ebs"

    def disk_name(self, disk: Disk) -> str:
        """Return the volume's id, as written."""
        assert isinstance(disk, AWSElasticBlockStore)
        return disk.volume_id

    def default_limit(self, node: Node) -> int:
        """Return 39, or 25 for the Nitro machines that upstream knows."""
        instance_type = next((node.labels[key] for key in INSTANCE_TYPE if key in node.labels), "")
        return 25 if NITRO.search(instance_type) else 39
