"""DynamicResources: refused, and said so."""

from __future__ import annotations

import numpy as np

from models.arrays import Ints
from models.kubernetes import Pod
from plugins_compat.framework.cycle import Cycle, Verdict
from plugins_compat.framework.framework import Framework
from plugins_compat.framework.plugin import Plugin
from plugins_compat.framework.status import Code, PostFilterResult, Status


class DynamicResources(Plugin):
    """Device claims are not modelled: a pod that has one stays where it is. All other pods score 0 everywhere."""

    name = "DynamicResources"

    def refuses(self, pod: Pod) -> str | None:
        """Refuse pods with resource claims."""
        return "resource claims (DynamicResources) are not modelled" if pod.spec.resource_claims else None

    def post_filter(self, cycle: Cycle, verdict: Verdict, handle: Framework) -> PostFilterResult:
        """Have no claims to give up."""
        return PostFilterResult(Status(Code.UNSCHEDULABLE, ("no new claims to deallocate",), self.name))

    def score(self, cycle: Cycle, nodes: Ints) -> Ints:
        """Return 0 for every node."""
        return np.zeros(len(nodes), dtype=np.int64)
