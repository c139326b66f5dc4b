"""DynamicResources: refused, and said so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.diagnosis import Diagnosis
from stowplan.plugins_compat.framework.plugin import Handle, Plugin
from stowplan.plugins_compat.framework.status import Code, NodeSet, PostFilterResult, Status
from stowplan.plugins_compat.framework.view import ScoreView


class DynamicResources(Plugin):
    """Device claims are not modelled: a pod that has one stays where it is. All other pods score 0 everywhere."""

    name = "DynamicResources"
    reads = "nothing"
    refusal = "pods with resource claims"

    def refuses(self, pod: Pod) -> str | None:
        """Refuse pods with resource claims."""
        return "resource claims (DynamicResources) are not modelled" if pod.spec.resource_claims else None

    def pre_filter(self, cycle: CycleState) -> Status | NodeSet | None:
        """Reject pods with resource claims, loudly: nothing here could say where their devices are."""
        reason = self.refuses(cycle.pod)
        return Status(Code.ERROR, (reason,)) if reason else None

    def post_filter(self, cycle: CycleState, diagnosis: Diagnosis, handle: Handle) -> PostFilterResult:
        """Have no claims to give up."""
        return PostFilterResult(Status(Code.UNSCHEDULABLE, ("no new claims to deallocate",), self.name))

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Return 0 forevery node."""
        return np.zeros(len(nodes), dtype=np.int64)

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return none: what scores nothing costs nothing."""
        return iter(())
