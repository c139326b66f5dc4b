"""The scheduling cycle of one pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.arrays import Ints
from models.kubernetes import Pod
from plugins_compat.framework.plugin import Plugin
from plugins_compat.framework.shapes import Shape
from plugins_compat.framework.status import Code, Status


@dataclass(slots=True, eq=False)
class Cycle:
    """What is known while one pod is being scheduled.

    Attributes
    ----------
    data
        Each plugin's own notes, by plugin name, from PreFilter or PreScore on.
    skipped
        Plugins that dropped out.
    """

    pod: Pod
    shape: Shape
    data: dict[str, Any] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Verdict:
    """What the filters said about every node.

    Attributes
    ----------
    rejected
        The PreFilter status that rejected the pod for the whole cluster, if any.
    nodes
        Nodes that were looked at, in list order.
    codes
        ``[nodes]`` code of the first plugin that failed, `Code.SUCCESS` where all passed.
    failed_by
        ``[nodes]`` index of that plugin among ``plugins``; -1 where all passed, -2 where a node set left it out.
    """

    cycle: Cycle
    plugins: Sequence[Plugin]
    nodes: Ints
    codes: Ints
    failed_by: Ints
    rejected: Status | None = None

    @property
    def feasible(self) -> Ints:
        """The nodes that passed, in list order."""
        passed: Ints = self.nodes[self.codes == Code.SUCCESS]
        return passed

    def why(self, position: int) -> Status:
        """Say why a node failed. Only while the cluster is as it was when the filters ran."""
        code = Code(int(self.codes[position]))
        if self.failed_by[position] == -2:
            reason = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
            return Status(code, (reason,), "PreFilterResult")
        plugin = self.plugins[int(self.failed_by[position])]
        return Status(code, plugin.reasons(self.cycle, int(self.nodes[position])), plugin.name)

    def summary(self) -> dict[str, int]:
        """Count the nodes by reason, as the FailedScheduling event does."""
        counts: dict[str, int] = {}
        if self.rejected is not None:
            return {reason: len(self.nodes) for reason in self.rejected.reasons}
        for position in np.flatnonzero(self.codes != Code.SUCCESS):
            for reason in self.why(int(position)).reasons:
                counts[reason] = counts.get(reason, 0) + 1
        return dict(sorted(counts.items()))
