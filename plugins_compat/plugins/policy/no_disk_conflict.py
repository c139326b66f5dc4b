"""NoDiskConflict: a disk that one pod at a time may write is mounted once on a node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes.pod import RBD, AWSElasticBlockStore, GCEPersistentDisk
from stowplan.models.problem import Origin, Repel, Rule
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.framework.view import View

Disk = GCEPersistentDisk | AWSElasticBlockStore | RBD


def conflict(a: Disk, b: Disk) -> bool:
    """Whether two pods on one node cannot both mount these inline volumes.

    A GCE disk and a Ceph RBD image may be shared where both mounts only read; an EBS volume may not.
    """
    match a, b:
        case GCEPersistentDisk(), GCEPersistentDisk():
            return a.pd_name == b.pd_name and not (a.read_only and b.read_only)
        case AWSElasticBlockStore(), AWSElasticBlockStore():
            return a.volume_id == b.volume_id
        case RBD(), RBD():
            same = not set(a.monitors).isdisjoint(b.monitors) and (a.pool, a.image) == (b.pool, b.image)
            return same and not (a.read_only and b.read_only)
    return False


class NoDiskConflict(Plugin):
    """Rejects nodes where a pod mounts an inline GCE, EBS or RBD disk that conflicts with one of the pod's."""

    name = "NoDiskConflict"
    one_reason_a_code = True

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod has no such disk."""
        return not self._disks(cycle.signature)

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes with a conflicting disk."""
        return np.where(self._conflicting(cycle.signature)[nodes], Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return the predicate's name, which is what upstream reports."""
        return (self.name,)

    def rules(self, view: View) -> Iterable[Rule]:
        """Conflicting disks repel each other on a node."""
        users: defaultdict[Disk, list[Signature]] = defaultdict(list)
        for signature in self.state.signatures.all:
            for disk in self._disks(signature):
                users[disk].append(signature)
        for disk, owners in users.items():
            rivals = list(dict.fromkeys(s for other, them in users.items() if conflict(disk, other) for s in them))
            seekers, targets = view.select(owners), view.select(rivals)
            if len(seekers) or len(targets):
                held = view.relation(owners, rivals)
                yield Repel(Origin(self.name, f"{disk}"), seekers, targets, view.by_node, held)

    def _conflicting(self, signature: Signature) -> Bools:
        """``[n]`` nodes with a disk that conflicts with one of the signature's."""
        conflicting = np.zeros(self.state.size, dtype=np.bool_)
        disks = self._disks(signature)
        if disks:
            for there, nodes in self.state.multiset(self.name, self._brought, type).holders.items():
                if any(conflict(disk, there) for disk in disks):
                    conflicting[list(nodes)] = True
        return conflicting

    def _brought(self, signature: Signature, node: int) -> tuple[Disk, ...]:
        return self._disks(signature)

    def _disks(self, signature: Signature) -> tuple[Disk, ...]:
        def make() -> tuple[Disk, ...]:
            sources = (
                source
                for volume in signature.pod.spec.volumes
                for source in (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd)
            )
            return tuple(source for source in sources if source is not None)

        return self.state.memo((self.name, signature), make)
