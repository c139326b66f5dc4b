"""What the filters said about every node, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.status import Code, Status
from stowplan.plugins_compat.release import Release

LEFT_OUT = -2
"""Marks a node that a PreFilter node set leaves out, in place of the index of the failing plugin."""

EXTENDED = -3
"""Marks a node that an extender turned down."""

NOT_LISTED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


class Rejecting(Protocol):
    """The part of a filter plugin that says why it rejects."""

    @property
    def name(self) -> str:
        """The plugin's name."""

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Return a code for each of the nodes."""

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Say why the pod is rejected on a node."""

    def count_reasons(self, cycle: CycleState, nodes: Ints, codes: Ints) -> Counter[str]:
        """Count the reasons over nodes where the filter gave the codes."""


def refusal(plugin: Rejecting, cycle: CycleState, node: int, code: Code) -> Status:
    """Return why a filter turned a node down; upstream says of an error which filter it came from."""
    reasons = tuple(plugin.reasons(cycle, node))
    if code == Code.ERROR:
        reasons = tuple(f'running "{plugin.name}" filter plugin: {reason}' for reason in reasons)
    return Status(code, reasons, plugin.name)


@dataclass(slots=True, eq=False)
class Diagnosis:
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
    noted
        Position to status, for nodes that failed while nominated pods were counted in.
    """

    cycle: CycleState
    release: Release
    plugins: Sequence[Rejecting]
    nodes: Ints
    codes: Ints
    failed_by: Ints
    rejected: Status | None = None
    extended: dict[int, str] = field(default_factory=dict)
    noted: dict[int, Status] = field(default_factory=dict)

    @property
    def feasible(self) -> Ints:
        """The nodes that passed, in list order."""
        passed: Ints = self.nodes[self.codes == Code.SUCCESS]
        return passed

    def why(self, position: int) -> Status:
        """Say why a node failed. Only while the cluster is as it was when the filters ran."""
        if position in self.noted:
            return self.noted[position]
        code = Code(int(self.codes[position]))
        if self.failed_by[position] == LEFT_OUT:
            return Status(code, (NOT_LISTED,), "PreFilterResult")
        if self.failed_by[position] == EXTENDED:
            return Status(code, (self.extended[int(self.nodes[position])],))
        plugin = self.plugins[int(self.failed_by[position])]
        node = int(self.nodes[position])
        if not self.release.all_reasons or code == Code.ERROR:
            return refusal(plugin, self.cycle, node, code)
        here = np.array([node], dtype=np.int64)
        reasons = [
            reason for rejecting, _, _ in self._rejecting(here) for reason in rejecting.reasons(self.cycle, node)
        ]
        return Status(code, tuple(reasons), plugin.name)

    def _rejecting(self, nodes: Ints) -> Iterator[tuple[Rejecting, Ints, Ints]]:
        """Yield each filter that rejects some of the nodes, with those nodes and its codes for them."""
        for plugin in self.plugins:
            if plugin.name not in self.cycle.skipped:
                codes = plugin.filter(self.cycle, nodes)
                rejected = codes != Code.SUCCESS
                if rejected.any():
                    yield plugin, nodes[rejected], codes[rejected]

    @property
    def error(self) -> Status | None:
        """The first error, in list order: it ends the cycle, whatever the other nodes say."""
        if self.rejected is not None:
            return self.rejected if self.rejected.code == Code.ERROR else None
        failed = np.flatnonzero(self.codes == Code.ERROR)
        return self.why(int(failed[0])) if len(failed) else None

    def summary(self) -> list[str]:
        """Say how many nodes failed for which reason, as the FailedScheduling event does."""
        if self.rejected is not None and self.release.pre_filter_continues:
            return [", ".join(self.rejected.reasons)]
        return sorted(f"{count} {reason}" for reason, count in self._reasons().items())

    def _reasons(self) -> Counter[str]:
        if self.rejected is not None:
            return Counter(dict.fromkeys(self.rejected.reasons, len(self.nodes)))
        counts = Counter(reason for status in self.noted.values() for reason in status.reasons)
        unnoted = self.codes != Code.SUCCESS
        unnoted[list(self.noted)] = False
        for by in np.unique(self.failed_by[unnoted]).tolist():
            failed = np.flatnonzero(unnoted & (self.failed_by == by))
            if by == EXTENDED:
                counts.update(self.extended[int(node)] for node in self.nodes[failed])
            elif by != LEFT_OUT and self.release.all_reasons:
                for plugin, nodes, codes in self._rejecting(self.nodes[failed]):
                    counts += plugin.count_reasons(self.cycle, nodes, codes)
            elif by != LEFT_OUT:
                counts += self.plugins[by].count_reasons(self.cycle, self.nodes[failed], self.codes[failed])
            elif self.release.pinned_nodes_fail:
                counts[NOT_LISTED] += len(failed)
        return counts

    def code_of(self, node: int) -> Code | None:
        """Return what was said about a node; ``None`` if nothing was."""
        at = np.flatnonzero(self.nodes == node)
        if not len(at) or (self.failed_by[at[0]] == LEFT_OUT and not self.release.pinned_nodes_fail):
            return None
        return Code(int(self.codes[at[0]]))
