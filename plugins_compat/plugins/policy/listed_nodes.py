"""ListedNodes: which nodes release 1.5 considers at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.models.arrays import Bools
from stowplan.models.kubernetes import Node
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.plugins.static_filter import StaticFilter

UNUSABLE = {
    "Ready": ("False", "Unknown", ""),
    "OutOfDisk": ("True", "Unknown"),
    "NetworkUnavailable": ("True", "Unknown"),
}
"""Statuses of a condition with which a node is not listed."""


class ListedNodes(StaticFilter):
    """Rejects nodes that are cordoned, not ready, out of disk, or without network, whatever the pod tolerates.

    Release 1.5 leaves them out before any predicate is asked, so no policy can allow them.
    """

    name = "ListedNodes"
    one_reason_a_code = True
    not_upstream = "it replaces the list of nodes that release 1.5 asks its predicates about"

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` the nodes that are listed."""
        return self.state.memo(
            (self.name, "listed"), lambda: np.array([listed(node) for node in self.state.nodes], dtype=np.bool_)
        )

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Say that the node is not listed."""
        return ("node(s) were unschedulable or not ready",)


def listed(node: Node) -> bool:
    """Whether pods are scheduled to a node; one that states no conditions counts as ready."""
    conditions = node.status.conditions if node.status else ()
    broken = any(condition.status in UNUSABLE.get(condition.type, ()) for condition in conditions)
    return not node.unschedulable and not broken
