"""The scheduling cycle of one pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.arrays import Ints
from models.kubernetes import Pod
from plugins_compat.framework.plugin import Plugin
from plugins_compat.framework.shapes import Shape
from plugins_compat.framework.status import Code, Status

LEFT_OUT = -2
"""Marks a node that a PreFilter node set leaves out, where the index of the failing plugin would stand."""

EXTENDED = -3
"""Marks a node that an extender turned down."""

NOT_LISTED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


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
        ``[nodes]`` index of that plugin among ``plugins``; -1 where all passed, `LEFT_OUT` where a node set left it
        out, `EXTENDED` where an extender turned it down.
    extended
        What extenders said, by node.
    """

    cycle: Cycle
    plugins: Sequence[Plugin]
    nodes: Ints
    codes: Ints
    failed_by: Ints
    rejected: Status | None = None
    extended: dict[int, str] = field(default_factory=dict)

    @property
    def feasible(self) -> Ints:
        """The nodes that passed, in list order."""
        passed: Ints = self.nodes[self.codes == Code.SUCCESS]
        return passed

    def why(self, position: int) -> Status:
        """Say why a node failed. Only while the cluster is as it was when the filters ran."""
        code = Code(int(self.codes[position]))
        if self.failed_by[position] == LEFT_OUT:
            return Status(code, (NOT_LISTED,), "PreFilterResult")
        if self.failed_by[position] == EXTENDED:
            return Status(code, (self.extended[int(self.nodes[position])],))
        plugin = self.plugins[int(self.failed_by[position])]
        return Status(code, plugin.reasons(self.cycle, int(self.nodes[position])), plugin.name)

    def summary(self) -> dict[str, int]:
        """Count the nodes by reason, as the FailedScheduling event does."""
        if self.rejected is not None:
            return {reason: len(self.nodes) for reason in self.rejected.reasons}
        counts: Counter[str] = Counter()
        for by in np.unique(self.failed_by[self.codes != Code.SUCCESS]).tolist():
            failed = np.flatnonzero(self.failed_by == by)
            if by == LEFT_OUT:
                counts[NOT_LISTED] += len(failed)
            elif by == EXTENDED:
                counts.update(self.extended[int(node)] for node in self.nodes[failed])
            else:
                counts += self.plugins[by].count_reasons(self.cycle, self.nodes[failed], self.codes[failed])
        return dict(sorted(counts.items()))
