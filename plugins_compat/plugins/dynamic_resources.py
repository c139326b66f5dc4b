"""DynamicResources: refused, and said so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import Rule, Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.diagnosis import Diagnosis
from stowplan.plugins_compat.framework.plugin import Handle, Plugin
from stowplan.plugins_compat.framework.status import Code, NodeSet, PostFilterResult, ScoreError, Status
from stowplan.plugins_compat.framework.view import ScoreView, View

NO_STATE = "not found"


class DynamicResources(Plugin):
    """Device claims are not modeled: a pod that has one stays on its node. All other pods score 0 everywhere."""

    name = "DynamicResources"
    reads = "nothing"
    refusal = "pods with resource claims"

    def refuses(self, pod: Pod) -> str | None:
        """Refuse pods with resource claims."""
        return "resource claims (DynamicResources) are not modeled" if pod.spec.resource_claims else None

    def pre_filter(self, cycle: CycleState) -> Status | NodeSet | None:
        """Reject pods with resource claims, loudly: nothing here could say where their devices are."""
        reason = self.refuses(cycle.pod)
        if reason:
            return Status(Code.ERROR, (reason,))
        cycle.data[self.name] = True
        return Status(Code.SKIP)

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Fail everywhere: where PreFilter ran, it said to skip this, and without it nothing is known of claims."""
        return np.full(len(nodes), Code.ERROR, dtype=np.int64)

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod has no claims."""
        return not cycle.signature.pod.spec.resource_claims

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's words for what PreFilter should have left."""
        return (NO_STATE,)

    def post_filter(self, cycle: CycleState, diagnosis: Diagnosis, handle: Handle) -> PostFilterResult:
        """Have no claims to give up."""
        return PostFilterResult(Status(Code.UNSCHEDULABLE, ("no new claims to deallocate",), self.name))

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Return 0 for every node; fail without PreFilter."""
        if self.name not in cycle.data:
            raise ScoreError(NO_STATE)
        return np.zeros(len(nodes), dtype=np.int64)

    def rules(self, view: View) -> Iterable[Rule]:
        """Return none: the filter is skipped for pods without claims, and those with claims are refused."""
        return ()

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return none: what scores nothing costs nothing."""
        return iter(())
