"""VolumeRestrictions: some volumes can be used once on a node, some once in the cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes.pod import ISCSI, RBD, AWSElasticBlockStore, GCEPersistentDisk
from stowplan.models.problem import AtMost, Origin, Repel, Rule
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code, NodeSet, Status
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.plugins.volumes import claims_of, not_found

EXCLUSIVE_MODE = "ReadWriteOncePod"
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

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod has neither disks nor exclusive claims."""
        return not self._disks(cycle.signature) and not self._exclusive(cycle.signature)

    def pre_filter(self, cycle: CycleState) -> Status | NodeSet | None:
        """Reject a pod whose claim does not exist, in releases that look for exclusive claims."""
        if not self.release.read_write_once_pod:
            return None
        for key, claim in claims_of(self.state.snapshot, cycle.signature):
            if claim is None and key not in cycle.signature.ephemeral:
                return Status(Code.UNRESOLVABLE, (not_found(key),))
        cycle.data[self.name] = self._claims_in_use(cycle.signature)
        if self.release.read_write_once_pod_is_final and cycle.data[self.name]:
            return Status(Code.UNRESOLVABLE, (EXCLUSIVE,))
        return None

    def count_pod(self, cycle: CycleState, signature: Signature, node: int, count: int) -> None:
        """Change the number of conflicts by one for each volume, though a claim of several pods was counted once."""
        exclusive = self._exclusive(cycle.signature)
        if exclusive and self.name in cycle.data:
            references = sum(key in exclusive and key not in signature.ephemeral for key in signature.claims)
            cycle.data[self.name] += references * count

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes with a conflicting disk or a pod that uses an exclusive claim."""
        rejected = self._conflicting(cycle.signature)[nodes]
        rejected |= cycle.data.get(self.name, self._claims_in_use(cycle.signature)) > 0
        return np.where(rejected, Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        return ("node(s) had no available disk",) if self._conflicting(cycle.signature)[node] else (EXCLUSIVE,)

    def _conflicting(self, signature: Signature) -> Bools:
        """``[n]`` nodes with a disk that conflicts with one of the signature's."""
        conflicting = np.zeros(self.state.size, dtype=np.bool_)
        disks = self._disks(signature)
        if disks:
            for there, nodes in self.state.multiset(self.name, self._brought, type).holders.items():
                if any(conflict(disk, there) for disk in disks):
                    conflicting[list(nodes)] = True
        return conflicting

    def rules(self, view: View) -> Iterable[Rule]:
        """Conflicting disks repel each other on a node; an exclusive claim has at most one user anywhere."""
        users: defaultdict[Disk, list[Signature]] = defaultdict(list)
        exclusive: defaultdict[str, list[Signature]] = defaultdict(list)
        for signature in self.state.signatures.all:
            for disk in self._disks(signature):
                users[disk].append(signature)
            for claim in sorted(self._exclusive(signature)):
                exclusive[claim].append(signature)
        for disk, owners in users.items():
            rivals = list(dict.fromkeys(s for other, them in users.items() if conflict(disk, other) for s in them))
            seekers, targets = view.select(owners), view.select(rivals)
            if len(seekers) or len(targets):
                held = view.relation(owners, rivals)
                yield Repel(Origin(self.name, f"{disk}"), seekers, targets, view.by_node, held)
        for claim, owners in exclusive.items():
            group = view.select(owners)
            if len(group):
                fixed = view.cluster.total(view.held(owners))
                yield AtMost(Origin(self.name, f"claim {claim}"), group, view.cluster, 1, fixed)

    def _brought(self, signature: Signature, node: int) -> tuple[Disk, ...]:
        return self._disks(signature)

    def _disks(self, signature: Signature) -> tuple[Disk, ...]:
        def make() -> tuple[Disk, ...]:
            sources = (
                source
                for v in signature.pod.spec.volumes
                for source in (v.gce_persistent_disk, v.aws_elastic_block_store, v.iscsi, v.rbd)
            )
            return tuple(source for source in sources if source is not None)

        return self.state.memo((self.name, signature), make)

    def _exclusive(self, signature: Signature) -> frozenset[str]:
        """Return the claims that one pod at a time may use. Those of ephemeral volumes are one pod's own anyway."""
        if not self.release.read_write_once_pod:
            return frozenset()
        return frozenset(
            key
            for key, claim in claims_of(self.state.snapshot, signature)
            if claim is not None and EXCLUSIVE_MODE in claim.spec.access_modes and key not in signature.ephemeral
        )

    def _claims_in_use(self, signature: Signature) -> int:
        """Return how many of the exclusive claims of a signature some pod uses."""
        return sum(map(self._in_use, self._exclusive(signature)))

    def _in_use(self, claim: str) -> bool:
        domain_counts = self.state.domain_counts(
            (self.name, claim), lambda signature: claim in signature.claims and claim not in signature.ephemeral
        )
        return bool(domain_counts.per_node.any())
