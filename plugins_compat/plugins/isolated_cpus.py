"""IsolatedCPUs: marked pods take whole cores of their node's isolated pool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import Field

from stowplan.models.arrays import Ints
from stowplan.models.problem import PENALTY_WEIGHT, Capacity, Origin, Rule
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.isolation import POOL, Isolation


class IsolatedCPUsArgs(Args):
    """Which annotations mark pods and state pools, and whether allocatable CPU counts the pools too."""

    pod_annotation: str = Field(Isolation().pod_annotation, min_length=1)
    node_annotation: str = Field(Isolation().node_annotation, min_length=1)
    allocatable_contains_pool: bool = False

    @property
    def isolation(self) -> Isolation:
        """The same, as the accounting takes it."""
        return Isolation(self.pod_annotation, self.node_annotation, self.allocatable_contains_pool)


class IsolatedCPUs(Plugin):
    """Rejects nodes whose pool has too few cores left for a marked pod.

    A profile that enables it also accounts for marked pods otherwise: they are charged no ordinary CPU, neither in the
    filter nor in scores.
    """

    name = "IsolatedCPUs"
    one_reason_a_code = True
    reads = "requests"
    not_upstream = "it is a patch of the scheduler's accounting for nodes with isolcpus"
    Args = IsolatedCPUsArgs

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes where the pool is short."""
        wanted = self._cores(cycle.signature)
        row = self.state.resources[POOL]
        free = self.state.allocatable[row, nodes] - self.state.requested[row, nodes]
        return np.where((wanted > free) & (wanted > 0), Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Say what is short."""
        return ("Insufficient isolated CPUs",)

    def rules(self, view: View) -> Iterable[Rule]:
        """One `Capacity` for the pool."""
        row = self.state.resources[POOL]
        demand = np.array([self._cores(signature) for signature in view.signatures], dtype=np.int64)
        if demand.any():
            pool = self.state.allocatable[row]
            weight = np.clip(PENALTY_WEIGHT // np.maximum(1, pool), 1, PENALTY_WEIGHT)
            yield Capacity(Origin(self.name, POOL), demand, pool - self.state.requested[row], weight)

    def _cores(self, signature: Signature) -> int:
        return int(self.state.vector(signature)[self.state.resources[POOL]])
