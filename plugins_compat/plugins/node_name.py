"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.matching import everywhere
from stowplan.plugins_compat.plugins.static_filter import StaticFilter


class NodeName(StaticFilter):
    """Rejects every node but the one that the pod's template names.

    The ``spec.nodeName`` of a bound pod says where it was put, not what it asked for, so a pod that is offered again
    leaves it behind. What stays with it is a node name in the template of its controller.
    """

    name = "NodeName"
    one_reason_a_code = True

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` the named node, or all."""
        wanted = self.state.pinned_node(signature.pod)
        if not wanted:
            return everywhere(self.state)
        return np.array([node.name == wanted for node in self.state.nodes], dtype=np.bool_)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason."""
        return ("node(s) didn't match the requested node name",)
