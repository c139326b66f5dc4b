"""LoadRisk: machines whose scarcest resource is used little and evenly are better."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.models.metrics import AVERAGE, CPU, DEVIATION, MEMORY
from stowplan.models.problem import POINTS
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.plugins.platform.scale import Real, ResourcesArgs

MEASURED = {"cpu": CPU, "memory": MEMORY}
"""What samples of a resource are called in metrics; others keep their name."""


class LoadRisk(Real):
    """Scores the least over resources of ``(1 − min(M + r + V, 1))·100``.

    M and V are mean and standard deviation of the machine's utilization in the window of samples; r is what the
    instance asks, and what was placed on the machine or taken off it since it was measured. All are shares of what can
    be allocated. A resource without samples counts with the measured usage as M, and no deviation. It is the article's
    own form of what scheduler-plugins calls LoadVariationRiskBalancing.
    """

    name = "LoadRisk"
    Args = ResourcesArgs

    def score(self, cycle: CycleState, nodes: Ints) -> Floats:
        """Score by the resource with the highest risk."""
        names = list(self.args.resources)
        shares = self.shares(cycle, nodes, names)
        risks = [self._risk(name, share, nodes) for name, share in zip(names, shares, strict=True)]
        return risk_points(np.array(risks))

    def _risk(self, name: str, share: Floats, nodes: Ints) -> Floats:
        """Return ``M + r + V``; the share has in it what is measured now, in place of which the mean counts."""
        mean, deviation = self._samples(name)
        row = self.row(name)
        capacity = self.state.allocatable[row, nodes].astype(np.float64)
        now = np.divide(self._measured(row)[nodes], capacity, out=np.ones(len(nodes)), where=capacity > 0)
        mean_here = np.where(np.isnan(mean[nodes]), now, mean[nodes])
        risk: Floats = np.where(capacity > 0, mean_here + (share - now) + deviation[nodes], 1.0)
        return risk

    def _measured(self, row: int) -> Floats:
        """``[n]`` usage as the file has it, wherever instances are by now."""

        def make() -> Floats:
            measured = np.zeros(self.state.size)
            snapshot = self.state.snapshot
            for pod in snapshot.pods:
                if pod.node_name and not pod.finished:
                    amount = self.state.vector(self.state.signatures.of(pod))[row]
                    measured[snapshot.node_index[pod.node_name]] += amount
            return measured

        return self.state.memo((self.name, "measured", row), make)

    def _samples(self, name: str) -> tuple[Floats, Floats]:
        """Return ``[n]`` mean and deviation of the samples, the former not a number where there are none."""

        def make() -> tuple[Floats, Floats]:
            mean, deviation = np.full(self.state.size, np.nan), np.zeros(self.state.size)
            metrics = self.state.snapshot.metrics
            for n, node in enumerate(self.state.nodes):
                for metric in metrics.of(node.name) if metrics else ():
                    if metric.type == MEASURED.get(name, name):
                        if metric.operator == AVERAGE:
                            mean[n] = metric.value / 100
                        elif metric.operator == DEVIATION:
                            deviation[n] = metric.value / 100
            return mean, deviation

        return self.state.memo((self.name, "samples", name), make)


def risk_points(risks: Floats) -> Floats:
    """Return ``min_r (1 − min(S_r, 1))·100`` for ``[r, n]`` sums ``S = M + r + V``."""
    points: Floats = ((1 - np.clip(risks, 0.0, 1.0)) * POINTS).min(axis=0)
    return points
