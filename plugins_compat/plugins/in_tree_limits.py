"""Base of the filters that limit the disks of one cloud, from before there were CSI drivers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes import Node, PersistentVolumeClaim
from stowplan.models.problem import NO_LIMIT
from stowplan.models.quantity import whole
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.plugins.attach_limits import AttachLimits, Attachment
from stowplan.plugins_compat.plugins.csi_migration import Disk, InTreePlugin, migrated
from stowplan.plugins_compat.plugins.volumes import claims_of, volume_of


class InTreeLimits(AttachLimits):
    """Rejects nodes where the pod's disks would exceed what a node of the cloud attaches.

    Nodes that handed the disks over to a CSI driver are left to `NodeVolumeLimits`. The scheduler's environment
    variable ``KUBE_MAX_PD_VOLS`` is taken as unset.
    """

    full_nodes_refuse = True
    plugin: ClassVar[InTreePlugin]
    allocatable: ClassVar[str]
    """The resource in which a node states its limit."""

    def disk_name(self, disk: Disk) -> str:
        """Return what tells the disks of the cloud apart."""
        raise NotImplementedError

    def default_limit(self, node: Node) -> int:
        """Return the limit of a node that states none."""
        raise NotImplementedError

    def sorts(self) -> Sequence[Hashable]:
        """All nodes see the same."""
        return [None] * self.state.size

    def attachments(self, signature: Signature, sort: Hashable) -> Iterable[Attachment]:
        """Yield inline disks, disks behind claims, and one for each claim that the cloud may still fill."""
        snapshot, cloud = self.state.snapshot, self.plugin.name
        for volume in signature.pod.spec.volumes:
            if (disk := self.plugin.source(volume)) is not None:
                yield cloud, self.disk_name(disk)
        for key, claim in claims_of(snapshot, signature):
            if claim is None:
                continue
            found = volume_of(snapshot, claim)
            if found is None:
                if self._may_fill(claim):
                    yield cloud, f"claim {key}"
            elif (disk := self.plugin.source(found.spec)) is not None:
                yield cloud, self.disk_name(disk)

    def _may_fill(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self.state.snapshot.classes.get(claim.spec.storage_class_name or "")
        return storage_class is not None and storage_class.provisioner == self.plugin.name

    def _counts(self, nodes: Ints) -> Bools:
        """``[nodes]`` where the disks are not left to the CSI driver."""
        counted: Bools = ~migrated(self.state, self.plugin, self.release.always_migrated)[nodes]
        return counted

    def limits(self, limited: str) -> Ints:
        """``[n]`` the node's word, else what its kind of machine attaches."""
        stated = [node.allocatable.get(self.allocatable) for node in self.state.nodes]
        limits = np.array(
            [
                self.default_limit(node) if amount is None else whole(amount)
                for node, amount in zip(self.state.nodes, stated, strict=True)
            ],
            dtype=np.int64,
        )
        limits[migrated(self.state, self.plugin, self.release.always_migrated)] = NO_LIMIT
        return limits
