"""HostName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.matching import everywhere
from stowplan.plugins_compat.plugins.static_filter import StaticFilter


class HostName(StaticFilter):
    """Rejects every node but the one that the pod names.

    The ``spec.nodeName`` of a bound pod says where it was put, not what it asked for; what a pod asks for is in the
    template of its controller.
    """

    name = "HostName"
    one_reason_a_code = True

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` the named node, or all."""
        wanted = self.state.pinned_node(signature.pod)
        if not wanted:
            return everywhere(self.state)
        return np.array([node.name == wanted for node in self.state.nodes], dtype=np.bool_)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return the predicate's name, which is what upstream reports."""
        return (self.name,)
