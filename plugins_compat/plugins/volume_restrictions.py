"""VolumeRestrictions: some volumes can be used once on a node, some once in the cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import AtMost, Origin, Rule
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code, NodeSet, Status
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.plugins.disks import ExclusiveDisks
from stowplan.plugins_compat.plugins.volumes import claims_of, not_found

EXCLUSIVE_MODE = "ReadWriteOncePod"
EXCLUSIVE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


class VolumeRestrictions(ExclusiveDisks):
    """Rejects nodes where an inline disk conflicts, and all nodes while a ReadWriteOncePod claim is in use."""

    name = "VolumeRestrictions"
    kinds = ("gce_persistent_disk", "aws_elastic_block_store", "iscsi", "rbd")

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod has neither disks nor exclusive claims."""
        return not self.disks(cycle.signature) and not self._exclusive(cycle.signature)

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
        rejected = self.conflicting(cycle.signature)[nodes]
        rejected |= cycle.data.get(self.name, self._claims_in_use(cycle.signature)) > 0
        return np.where(rejected, Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        return ("node(s) had no available disk",) if self.conflicting(cycle.signature)[node] else (EXCLUSIVE,)

    def rules(self, view: View) -> Iterable[Rule]:
        """Conflicting disks repel each other on a node; an exclusive claim has at most one user anywhere."""
        yield from self.repelling(view)
        exclusive: defaultdict[str, list[Signature]] = defaultdict(list)
        for signature in self.state.signatures.all:
            for claim in sorted(self._exclusive(signature)):
                exclusive[claim].append(signature)
        for claim, owners in exclusive.items():
            group = view.select(owners)
            if len(group):
                fixed = view.cluster.total(view.held(owners))
                yield AtMost(Origin(self.name, f"claim {claim}"), group, view.cluster, 1, fixed)

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
