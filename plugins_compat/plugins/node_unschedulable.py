"""NodeUnschedulable: no new pods on cordoned nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.models.kubernetes.taints import Taint, tolerated
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.matching import everywhere
from stowplan.plugins_compat.plugins.static_filter import StaticFilter

CORDONED = Taint("node.kubernetes.io/unschedulable", "NoSchedule")


class NodeUnschedulable(StaticFilter):
    """Rejects cordoned nodes, unless the pod tolerates the taint that a cordon brings."""

    name = "NodeUnschedulable"
    one_reason_a_code = True

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` all nodes that are not cordoned, or all."""
        if tolerated(CORDONED, signature.pod.spec.tolerations):
            return everywhere(self.state)
        return self.state.memo(
            (self.name, "open"), lambda: np.array([not node.unschedulable for node in self.state.nodes], dtype=np.bool_)
        )

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        return ("node(s) were unschedulable",)
