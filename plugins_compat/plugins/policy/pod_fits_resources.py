"""PodFitsResources: requests fit what is left of CPU, memory, GPUs, and pods."""

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
from stowplan.plugins_compat.matching import everywhere
from stowplan.plugins_compat.requests import CPU, MEMORY, PODS, requests

GPU = "alpha.kubernetes.io/nvidia-gpu"
OPAQUE = "pod.alpha.kubernetes.io/opaque-int-resource-"
"""Prefix of the resources that were extended resources before there were any."""

ALWAYS = (CPU, MEMORY, GPU)
"""Compared for every pod that requests anything."""


def compared(name: str) -> bool:
    """Whether release 1.5 compares a resource at all; ephemeral storage and extended resources came later."""
    return name in ALWAYS or name.startswith(OPAQUE)


class PodFitsResources(Plugin):
    """Rejects nodes without room for the pod's requests.

    The pod's own init containers count as the largest of them does; those of the pods on a node do not count, as
    release 1.5 adds up the containers alone.
    """

    name = "PodFitsResources"
    reads = "requests"
    deviation = "an init container that requests more than the containers of its pod counts wherever the pod is"

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes where some request exceeds what is free."""
        return np.where(self._short(cycle.signature, nodes).any(axis=0), Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Name every resource that is short, in upstream's order."""
        return list(self.count_reasons(cycle, np.array([node]), np.array([Code.UNSCHEDULABLE])))

    def count_reasons(self, cycle: CycleState, nodes: Ints, codes: Ints) -> Counter[str]:
        """Count the nodes on which each resource is short."""
        rows, _ = self._compared(cycle.signature)
        number = self._short(cycle.signature, nodes).sum(axis=1).tolist()
        names = list(self.state.resources)
        return Counter({f"Insufficient {names[row]}": n for row, n in zip(rows.tolist(), number, strict=True) if n})

    def rules(self, view: View) -> Iterable[Rule]:
        """One `Capacity` for each resource that some signature requests."""
        for name, row in self.state.resources.items():
            demand = np.array([self._demand(signature, row) for signature in view.signatures], dtype=np.int64)
            if demand.any():
                yield self._capacity(name, row, demand, view.unit(partial(self._demand, row=row)))
        rows = [self.state.resources[name] for name in ALWAYS if name in self.state.resources]
        full: Bools = np.any(self.state.requested[rows] > self.state.allocatable[rows], axis=0)
        rule = view.allow(self.name, lambda s: ~full if len(self._compared(s)[0]) > 1 else everywhere(self.state))
        if rule is not None:
            yield rule

    def _short(self, signature: Signature, nodes: Ints) -> Bools:
        """``[k, nodes]`` where each compared resource is short."""
        rows, amounts = self._compared(signature)
        at = np.ix_(rows, nodes)
        short: Bools = self.state.allocatable[at] < amounts[:, None] + self.state.requested[at]
        return short

    def _compared(self, signature: Signature) -> tuple[Ints, Ints]:
        """Return the rows that are compared, pods first, and the pod's amounts."""

        def make() -> tuple[Ints, Ints]:
            asked = requests(signature.pod, self.release, init=True)
            amounts = {PODS: 1}
            if any(amount or name.startswith(OPAQUE) for name, amount in asked.items() if compared(name)):
                amounts |= dict.fromkeys(ALWAYS, 0)
                amounts |= {name: amount for name, amount in asked.items() if compared(name)}
            known = {self.state.resources[name]: a for name, a in amounts.items() if name in self.state.resources}
            return np.array(list(known), dtype=np.int64), np.array(list(known.values()), dtype=np.int64)

        return self.state.memo((self.name, signature), make)

    def _demand(self, signature: Signature, row: int) -> int:
        rows, amounts = self._compared(signature)
        return int(amounts[rows == row].sum())

    def _capacity(self, name: str, row: int, demand: Ints, unit: int) -> Capacity:
        allocatable = self.state.allocatable[row]
        free = (allocatable - self.state.requested[row]) // unit
        weight = np.clip(PENALTY_WEIGHT * unit // np.maximum(1, allocatable), 1, PENALTY_WEIGHT)
        return Capacity(Origin(self.name, name), demand // unit, free, weight, unit)
