"""What several threads have done to a placement that they divide."""

from __future__ import annotations

from stowplan.optimizer.compiled.jit import compiled
from stowplan.optimizer.rearrangement.kernel.arrays import Int32, WalkModel, WalkState
from stowplan.optimizer.rearrangement.kernel.relations import count_relations


@compiled
def count_moved(m: WalkModel, s: WalkState, moved: Int32, before: Int32) -> None:
    """Count pods in the domains of the nodes where they are now instead of those where they were before."""
    for i in range(len(moved)):
        p = moved[i]
        count_relations(m, s, m.cls[p], before[p], s.node[p])
