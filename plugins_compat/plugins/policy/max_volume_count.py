"""Base of MaxEBSVolumeCount and MaxGCEPDVolumeCount: one limit for all machines."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.plugins.attach_limits import AttachLimits, Attachment
from stowplan.plugins_compat.plugins.csi_migration import Disk, InTreePlugin
from stowplan.plugins_compat.plugins.volumes import claims_of, name_of, volume_of


class MaxVolumeCount(AttachLimits):
    """Rejects nodes where the pod's disks, with those that are there, would be more than a fixed number.

    Nodes state no limits of their own, no kind of machine has another, and no CSI driver takes disks over. A claim or
    a volume that does not exist counts as one disk; a claim that is not bound fails the pod. The scheduler's
    environment variable ``KUBE_MAX_PD_VOLS`` is taken as unset.
    """

    full_nodes_refuse = True
    refusal = "pods with claims that are not bound"
    plugin: ClassVar[InTreePlugin]
    most: ClassVar[int]
    """How many different disks fit on a node."""

    def disk_name(self, disk: Disk) -> str:
        """Return what tells the disks of the cloud apart."""
        raise NotImplementedError

    def refuses(self, pod: Pod) -> str | None:
        """Refuse pods that upstream fails with an error."""
        return self._unusable(self.state.signatures.of(pod)) or None

    def sorts(self) -> Sequence[Hashable]:
        """All nodes see the same."""
        return [None] * self.state.size

    def attachments(self, signature: Signature, sort: Hashable) -> Iterable[Attachment]:
        """Yield inline disks, disks behind claims, and one for what cannot be looked up, which ends the search."""
        snapshot, cloud = self.state.snapshot, self.plugin.name
        for volume in signature.pod.spec.volumes:
            if (disk := self.plugin.source(volume)) is not None:
                yield cloud, self.disk_name(disk)
        for key, claim in claims_of(snapshot, signature):
            if key in signature.ephemeral:
                continue
            found = volume_of(snapshot, claim) if claim is not None else None
            if claim is None or (claim.spec.volume_name and found is None):
                yield cloud, f"missing behind {key}"
                return
            if found is not None and (disk := self.plugin.source(found.spec)) is not None:
                yield cloud, self.disk_name(disk)

    def limits(self, limited: str) -> Ints:
        """``[n]`` the one limit."""
        return np.full(self.state.size, self.most, dtype=np.int64)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return what cannot be used, else ``MaxVolumeCount``, which upstream reports for every cloud."""
        return (self._unusable(cycle.signature) or "MaxVolumeCount",)

    def _missing(self, signature: Signature) -> str:
        """Return the claim that is not bound, if there is one."""
        return next(
            (
                key
                for key, claim in claims_of(self.state.snapshot, signature)
                if claim is not None and key not in signature.ephemeral and not claim.spec.volume_name
            ),
            "",
        )

    def _unusable(self, signature: Signature) -> str:
        key = self._missing(signature)
        return f'PersistentVolumeClaim is not bound: "{name_of(key)}"' if key else ""

    def _foreign(self, signature: Signature) -> str:
        return ""
