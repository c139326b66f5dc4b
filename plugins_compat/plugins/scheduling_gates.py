"""SchedulingGates: a gated pod does not enter the queue."""

from __future__ import annotations

from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.status import Code, Status


class SchedulingGates(Plugin):
    """Keeps a pod out of the queue while it has a scheduling gate."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Refuse a pod with gates."""
        if not pod.gated:
            return None
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return Status(Code.UNRESOLVABLE, (f"waiting for scheduling gates: [{gates}]",), self.name)
