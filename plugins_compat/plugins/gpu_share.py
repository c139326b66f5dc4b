"""GpuShare: shares of a GPU come from one device each, whole GPUs are free ones.

Upstream has no such plugin. kube-scheduler counts the GPUs of a node as an amount, and leaves it to a scheduler
extension to know its devices; this is what such extensions have in common, such as the open-gpu-share plugin behind
the published experiments on Alibaba's openb traces. No release's default profile has it. The filter asks whether the
devices *can* hold all pods, whichever holds which: it does not follow the devices that pods were given one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.bin_packing import pack
from stowplan.models.kubernetes import Pod
from stowplan.models.kubernetes.devices import (
    DEVICE,
    GPU_COUNT,
    GPU_MILLI,
    GPU_MODEL,
    annotated_devices,
    device_count,
    device_models,
)
from stowplan.models.problem import Devices, Origin, Rule
from stowplan.plugins_compat.framework.counts import DomainCounts
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.release import Release
from stowplan.plugins_compat.requests import requests

NO_MORE = 1 << 20
"""Devices above which numbers are all alike: no machine has that many."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod takes of its node's devices.

    Parameters
    ----------
    whole
        Devices that it has for itself.
    shares
        Thousandths of a device, each share of one device; two shares may be of the same.
    """

    whole: int = 0
    shares: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.whole or self.shares)

    @property
    def volume(self) -> int:
        """Thousandths of devices in all."""
        return self.whole * DEVICE + sum(self.shares)

    @property
    def devices(self) -> int:
        """The fewest devices that hold it."""
        return self.whole + pack(self.shares, DEVICE)[0]


def devices_asked(pod: Pod, release: Release) -> Demand:
    """Return what a pod asks of devices: by its annotations, or else by the resources that it requests."""
    annotated = annotated_devices(pod)
    if annotated is not None:
        count, milli = annotated
        return Demand(whole=count) if milli == DEVICE else Demand(shares=(milli,) * count if milli else ())
    asked = requests(pod, release)
    if milli := asked.get(GPU_MILLI, 0):
        return Demand(min(milli // DEVICE, NO_MORE), (milli % DEVICE,) if milli % DEVICE else ())
    return Demand(min(asked.get(GPU_COUNT, 0), NO_MORE))


class GpuShare(Plugin):
    """Rejects nodes whose devices cannot hold the pod beside the pods that are there."""

    name = "GpuShare"
    one_reason_a_code = True
    not_upstream = (
        "it knows the GPU devices of nodes, which kube-scheduler does not. No release has it by default. It is on "
        "where pods ask for GPUs and no `--config` is given, and where a configuration enables it."
    )
    refusal = "pods that ask for shares of several devices"

    def __init__(self, args: object, state: ClusterState) -> None:
        super().__init__(args, state)
        self._sizes: tuple[int, ...] = ()
        self._signatures_known = 0
        self._seen: dict[Demand, tuple[Ints, Bools]] = {}

    # -- the framework's face ---------------------------------------------------------------------------------

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod asks for no device."""
        return not self._demand(cycle.signature)

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes without such devices, and those where not enough of them are free."""
        demand = self._demand(cycle.signature)
        codes = np.zeros(len(nodes), dtype=np.int64)
        if not demand:
            return codes
        codes[~self._fits(demand, nodes)] = Code.UNSCHEDULABLE
        codes[~self._suits(cycle.signature)[nodes] | (self._count[nodes] < demand.devices)] = Code.UNRESOLVABLE
        return codes

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Say whether the devices are taken, or are not of the kind or number that would do."""
        demand = self._demand(cycle.signature)
        if not self._suits(cycle.signature)[node] or self._count[node] < demand.devices:
            return ("node(s) didn't have the requested GPU devices",)
        return ("Insufficient GPU devices",)

    def accounts(self) -> Mapping[str, tuple[Ints, Ints]]:
        """Thousandths of devices."""
        if not self._count.any() or not any(self._demand(signature) for signature in self.state.signatures.all):
            return {}
        table = self._table()
        sizes = np.array([DEVICE, *self._sizes], dtype=np.int64)
        return {GPU_MILLI: (sizes @ table, self._count * DEVICE)}

    # -- the optimizer's face ---------------------------------------------------------------------------------

    def refuses(self, pod: Pod) -> str | None:
        """Refuse pods with several shares: the rule knows one share a pod."""
        return "shares of several devices" if len(devices_asked(pod, self.release).shares) > 1 else None

    def rules(self, view: View) -> Iterable[Rule]:
        """One `Devices` for all GPUs, and where pods name models of GPUs an `Allow`."""
        allow = view.allow(self.name, self._suits)
        if allow is not None:
            yield allow
        demands = [self._demand(signature) for signature in view.signatures]
        if not any(demands):
            return
        table = self._table()
        sharing = table[1:].T
        yield Devices(
            Origin(self.name, "GPU devices"),
            np.array([demand.whole for demand in demands], dtype=np.int64),
            np.array([sum(demand.shares) for demand in demands], dtype=np.int64),
            DEVICE,
            self._count,
            table[0],
            np.repeat(np.arange(self.state.size), sharing.sum(axis=1)),
            np.repeat(np.tile(np.array(self._sizes, dtype=np.int64), self.state.size), sharing.ravel()),
        )

    # -- what both share --------------------------------------------------------------------------------------

    @cached_property
    def _count(self) -> Ints:
        """``[n]`` devices of each node."""
        counts = [min(device_count(node), NO_MORE) for node in self.state.nodes]
        return np.array(counts, dtype=np.int64)

    def _demand(self, signature: Signature) -> Demand:
        return self.state.memo((self.name, signature), lambda: devices_asked(signature.pod, self.release))

    def _suits(self, signature: Signature) -> Bools:
        """``[n]`` nodes whose devices are of a model that the pod takes."""
        models = device_models(signature.pod) if self._demand(signature) else frozenset()

        def make() -> Bools:
            return np.array([not models or node.labels.get(GPU_MODEL) in models for node in self.state.nodes])

        return self.state.memo((self.name, models), make)

    def _table(self) -> Ints:
        """``[1 + sizes, n]`` what the pods on each node take: whole devices, then the number of shares of each size."""
        if len(self.state.signatures.all) > self._signatures_known:
            self._signatures_known = len(self.state.signatures.all)
            sizes = {share for signature in self.state.signatures.all for share in self._demand(signature).shares}
            self._sizes = tuple(sorted(sizes, reverse=True))
        whole = self.state.domain_counts((self.name, "whole"), lambda signature: self._demand(signature).whole)
        return np.array([whole.per_node, *(self._sharing(size).per_node for size in self._sizes)])

    def _sharing(self, size: int) -> DomainCounts:
        return self.state.domain_counts((self.name, size), lambda signature: self._demand(signature).shares.count(size))

    def _fits(self, demand: Demand, nodes: Ints) -> Bools:
        """``[nodes]`` where the devices hold one more such pod; asked anew only where something changed."""
        table = self._table()
        seen, fits = self._seen.get(demand, (None, None))
        if seen is None or fits is None or seen.shape != table.shape:
            seen, fits = np.full_like(table, -1), np.zeros(self.state.size, dtype=np.bool_)
            self._seen[demand] = seen, fits
        changed = nodes[(seen[:, nodes] != table[:, nodes]).any(axis=0)]
        for n in changed.tolist():
            whole, *numbers = table[:, n].tolist()
            shares = [size for size, number in zip(self._sizes, numbers, strict=True) for _ in range(number)]
            shares = sorted([*shares, *demand.shares], reverse=True)
            fits[n] = whole + demand.whole + pack(tuple(shares), DEVICE)[0] <= self._count[n]
        seen[:, changed] = table[:, changed]
        found: Bools = fits[nodes]
        return found
