"""DefaultBinder: the pod is bound to the node that was chosen."""

from __future__ import annotations

from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin


class DefaultBinder(Plugin):
    """Binds every pod. In a simulation the binding is the decision itself."""

    name = "DefaultBinder"

    def bind(self, cycle: CycleState, node: int) -> bool:
        """Take the pod."""
        return True
