"""Thresholds: what may be used of each resource of a machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import PENALTY_WEIGHT, Capacity, Origin, Rule
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.requests import units

NO_THRESHOLD = 1 << 60


class Thresholds(Plugin):
    """Rejects machines where usage with the instance in place would exceed the threshold of some resource.

    The thresholds are the ``capacity`` of nodes that are read from a platform file: amounts, and the number of
    instances as ``pods``. A resource that a machine has without a threshold is not limited; of one that it does not
    have there is nothing. A resource of which an instance takes nothing is not looked at.
    """

    name = "Thresholds"
    reads = "requests"
    not_upstream = "it is the first filter of an operations platform without Kubernetes"

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject machines beyond a threshold."""
        return np.where(self._beyond(cycle, nodes).any(axis=0), Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Name every resource that would exceed its threshold."""
        return list(self.count_reasons(cycle, np.array([node]), np.array([Code.UNSCHEDULABLE])))

    def count_reasons(self, cycle: CycleState, nodes: Ints, codes: Ints) -> Counter[str]:
        """Count the machines on which each threshold would be passed."""
        number = self._beyond(cycle, nodes).sum(axis=1).tolist()
        return Counter(
            {f"above threshold of {name}": n for name, n in zip(self.state.resources, number, strict=True) if n}
        )

    def rules(self, view: View) -> Iterable[Rule]:
        """One `Capacity` for each resource with a threshold."""
        for name, row in self.state.resources.items():
            demand = np.array([self._demand(s, row) for s in view.signatures], dtype=np.int64)
            limit = self._limits()[row]
            if demand.any() and (limit < NO_THRESHOLD).any():
                unit = view.unit(partial(self._demand, row=row))
                free = (limit - self.state.requested[row]) // unit
                weight = np.clip(PENALTY_WEIGHT * unit // np.maximum(1, limit), 1, PENALTY_WEIGHT)
                yield Capacity(Origin(self.name, name), demand // unit, free, weight, unit)

    def _demand(self, signature: Signature, row: int) -> int:
        return int(self.state.vector(signature)[row])

    def _beyond(self, cycle: CycleState, nodes: Ints) -> Bools:
        wanted = self.state.vector(cycle.signature)[:, None]
        beyond: Bools = (self.state.requested[:, nodes] + wanted > self._limits()[:, nodes]) & (wanted > 0)
        return beyond

    def _limits(self) -> Ints:
        """``[r, n]`` the thresholds."""

        def make() -> Ints:
            limits = np.zeros((len(self.state.resources), self.state.size), dtype=np.int64)
            for n, node in enumerate(self.state.nodes):
                for name in node.allocatable:
                    if name in self.state.resources:
                        limits[self.state.resources[name], n] = NO_THRESHOLD
                for name, nanos in node.capacity.items():
                    if name in self.state.resources:
                        limits[self.state.resources[name], n] = units(name, nanos)
            return limits

        return self.state.memo((self.name, "limits"), make)
