"""MastersApart: a machine that fails takes only a share of a cluster's masters along."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from stowplan.models.arrays import Ints
from stowplan.models.platform import CLUSTER, MASTER, MASTERS, ROLE, exact
from stowplan.models.problem import AtMost, Origin, Rule
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import Code
from stowplan.plugins_compat.framework.view import View


class MastersApartArgs(Args):
    """The share, if not the one that the machines say."""

    share: Annotated[float | None, Field(gt=0, le=1)] = None


class MastersApart(Plugin):
    """Rejects machines where the masters of one cluster would reach a share of all its masters.

    With the instance in place their number must be *less* than the share of all masters of the cluster, waiting ones
    included; one is always allowed, so that small clusters can be placed.
    """

    name = "MastersApart"
    one_reason_a_code = True
    not_upstream = "it is a filter of an operations platform without Kubernetes"
    Args = MastersApartArgs

    def idle(self, cycle: CycleState) -> bool:
        """Whether the instance is no master."""
        return not self._cluster(cycle.signature)

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject machines with as many masters of the cluster as there may be."""
        cluster = self._cluster(cycle.signature)
        if not cluster:
            return np.zeros(len(nodes), dtype=np.int64)
        here = self.state.domain_counts((self.name, cluster), self._masters_of(cluster)).per_node[nodes]
        return np.where(here + 1 > self._limit(cluster), Code.UNSCHEDULABLE, Code.SUCCESS)

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Say that there would be too many masters."""
        return ("too many masters of one cluster",)

    def rules(self, view: View) -> Iterable[Rule]:
        """At most so many masters of each cluster on a machine."""
        groups: dict[str, list[Signature]] = {}
        for signature in self.state.signatures.all:
            if cluster := self._cluster(signature):
                groups.setdefault(cluster, []).append(signature)
        for cluster, masters in groups.items():
            group = view.select(masters)
            if len(group):
                held = view.held(masters)
                yield AtMost(Origin(self.name, f"cluster {cluster}"), group, view.by_node, self._limit(cluster), held)

    def _limit(self, cluster: str) -> int:
        masters = self.state.memo((self.name, "masters"), self._count)[cluster]
        return most_masters(self._share(), masters)

    def _share(self) -> float:
        if self.args.share is not None:
            share: float = self.args.share
            return share
        return min((float(node.labels[MASTERS]) for node in self.state.nodes if MASTERS in node.labels), default=1.0)

    def _count(self) -> dict[str, int]:
        """Count the masters of each cluster."""
        number: dict[str, int] = {}
        for pod in self.state.snapshot.pods:
            if not pod.finished and pod.metadata.labels.get(ROLE) == MASTER and CLUSTER in pod.metadata.labels:
                cluster = pod.metadata.labels[CLUSTER]
                number[cluster] = number.get(cluster, 0) + 1
        return number

    def _masters_of(self, cluster: str) -> Callable[[Signature], bool]:
        return lambda signature: self._cluster(signature) == cluster

    def _cluster(self, signature: Signature) -> str:
        """Return the cluster of which an instance is a master; empty if of none."""
        labels = signature.pod.metadata.labels
        return labels.get(CLUSTER, "") if labels.get(ROLE) == MASTER else ""


def most_masters(share: float, masters: int) -> int:
    """Return the largest number below a share of the masters, and at least 1; a share of 1 or more allows all."""
    return masters if share >= 1 else max(1, math.ceil(exact(share) * masters) - 1)
