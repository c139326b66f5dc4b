"""NoDiskConflict: a disk that one pod at a time may write is mounted once on a node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import Rule
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.plugins.disks import ExclusiveDisks


class NoDiskConflict(ExclusiveDisks):
    """Rejects nodes where a pod mounts an inline GCE, EBS or RBD disk that conflicts with one of the pod's."""

    name = "NoDiskConflict"
    one_reason_a_code = True
    kinds = ("gce_persistent_disk", "aws_elastic_block_store", "rbd")

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod has no such disk."""
        return not self.disks(cycle.signature)

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes with a conflicting disk."""
        return np.where(self.conflicting(cycle.signature)[nodes], Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return the predicate's name, which is what upstream reports."""
        return (self.name,)

    def rules(self, view: View) -> Iterable[Rule]:
        """Conflicting disks repel each other on a node."""
        return self.repelling(view)
