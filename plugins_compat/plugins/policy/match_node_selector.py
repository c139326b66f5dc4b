"""MatchNodeSelector: node selectors and required node affinity."""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.models.arrays import Bools
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.matching import required_nodes
from stowplan.plugins_compat.plugins.static_filter import StaticFilter


class MatchNodeSelector(StaticFilter):
    """Rejects nodes outside the pod's node selector and its required node affinity."""

    name = "MatchNodeSelector"
    one_reason_a_code = True

    def passes(self, signature: Signature) -> Bools:
        """``[n]`` nodes that both select."""
        return required_nodes(self.state, signature)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return the predicate's name, which is what upstream reports."""
        return (self.name,)
