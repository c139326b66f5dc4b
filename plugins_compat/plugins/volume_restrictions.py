"""VolumeRestrictions: some volumes can be used once on a node, some once in the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from models.arrays import Ints
from models.kubernetes.pod import ISCSI, RBD, AWSElasticBlockStore, GCEPersistentDisk
from models.problem import AtMost, Origin, Repel, Rule
from plugins_compat.compiler.view import View
from plugins_compat.framework.cycle import Cycle
from plugins_compat.framework.plugin import Plugin
from plugins_compat.framework.shapes import Shape
from plugins_compat.framework.status import Code

EXCLUSIVE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

Disk = GCEPersistentDisk | AWSElasticBlockStore | ISCSI | RBD


def conflict(a: Disk, b: Disk) -> bool:
    """Whether two pods on one node cannot both use these inline volumes."""
    match a, b:
        case AWSElasticBlockStore(), AWSElasticBlockStore():
            return a.volume_id == b.volume_id
        case GCEPersistentDisk(), GCEPersistentDisk():
            return a.pd_name == b.pd_name and not (a.read_only and b.read_only)
        case ISCSI(), ISCSI():
            return a.iqn == b.iqn and not (a.read_only and b.read_only)
        case RBD(), RBD():
            same = not set(a.monitors).isdisjoint(b.monitors) and (a.pool, a.image) == (b.pool, b.image)
            return same and not (a.read_only and b.read_only)
    return False


class VolumeRestrictions(Plugin):
    """Rejects nodes where an inline disk conflicts, and all nodes while a ReadWriteOncePod claim is in use."""

    name = "VolumeRestrictions"

    def filter(self, cycle: Cycle, nodes: Ints) -> Ints:
        """Reject nodes with a conflicting disk or a pod that uses an exclusive claim."""
        rejected = np.zeros(len(nodes), dtype=np.bool_)
        if disks := self._disks(cycle.shape):
            bag = self.state.bag(self.name, self._disks)
            for i, node in enumerate(nodes.tolist()):
                rejected[i] = any(conflict(disk, there) for disk in disks for there in bag.on(node))
        for claim in self._exclusive(cycle.shape):
            rejected |= self._in_use(claim)
        return np.where(rejected, Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: Cycle, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        disks = self._disks(cycle.shape)
        bag = self.state.bag(self.name, self._disks)
        if any(conflict(disk, there) for disk in disks for there in bag.on(node)):
            return ("node(s) had no available disk",)
        return (EXCLUSIVE,)

    def rules(self, view: View) -> Iterable[Rule]:
        """Conflicting disks repel each other on a node; an exclusive claim has at most one user anywhere."""
        disks = {disk for shape in self.state.shapes.all for disk in self._disks(shape)}
        for disk in sorted(disks, key=repr):

            def has(shape: Shape, disk: Disk = disk) -> bool:
                return disk in self._disks(shape)

            def rivals(shape: Shape, disk: Disk = disk) -> bool:
                return any(conflict(disk, other) for other in self._disks(shape))

            seekers, targets = view.select(has), view.select(rivals)
            if len(seekers) or len(targets):
                held = view.relation(has, rivals)
                yield Repel(Origin(self.name, f"{disk}"), seekers, targets, view.by_node, held)
        for claim in sorted({claim for shape in self.state.shapes.all for claim in self._exclusive(shape)}):

            def uses(shape: Shape, claim: str = claim) -> bool:
                return claim in self._exclusive(shape)

            group = view.select(uses)
            if len(group):
                users = view.cluster.total(view.held(uses))
                yield AtMost(Origin(self.name, f"claim {claim}"), group, view.cluster, 1, users)

    def _disks(self, shape: Shape) -> tuple[Disk, ...]:
        def make() -> tuple[Disk, ...]:
            sources = (
                source
                for v in shape.pod.spec.volumes
                for source in (v.gce_persistent_disk, v.aws_elastic_block_store, v.iscsi, v.rbd)
            )
            return tuple(source for source in sources if source is not None)

        return self.state.memo((self.name, shape), make)

    def _exclusive(self, shape: Shape) -> tuple[str, ...]:
        if not self.release.read_write_once_pod:
            return ()
        claims = self.state.snapshot.claims
        return tuple(c for c in shape.claims if c in claims and "ReadWriteOncePod" in claims[c].spec.access_modes)

    def _in_use(self, claim: str) -> bool:
        tally = self.state.tally((self.name, claim), lambda shape: claim in shape.claims)
        return bool(tally.per_node.any())
