"""GlobalVariance: the machine with which utilization varies least over all machines is best."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.plugins.platform.scale import MetricArgs, Real, best_first


class GlobalVariance(Real):
    """Scores by the variance that one metric would have over *all* machines, each counting as one.

    The least variance among the feasible machines scores 100, the largest 0, and others in proportion. The objective
    ``evenness`` is the same without an order of arrival.
    """

    name = "GlobalVariance"
    Args = MetricArgs

    def score(self, cycle: CycleState, nodes: Ints) -> Floats:
        """Return the variance for each machine, in squared shares."""
        return variances(self._shares(), self._shares_with(cycle)[nodes], nodes)

    # Scores of the platform are real numbers; those of kube-scheduler are integers.
    def normalize(self, cycle: CycleState, nodes: Ints, scores: Floats) -> Floats:  # type: ignore[override]
        """Scale to scores from 100 for the least down to 0."""
        return best_first(scores)

    def _shares(self) -> Floats:
        return self._of_capacity(self.state.requested[self._row].astype(np.float64))

    def _shares_with(self, cycle: CycleState) -> Floats:
        own = int(self.state.vector(cycle.signature)[self._row])
        return self._of_capacity(self.state.requested[self._row] + float(own))

    def _of_capacity(self, amounts: Floats) -> Floats:
        capacity = self.state.allocatable[self._row].astype(np.float64)
        shares: Floats = np.divide(amounts, capacity, out=np.zeros_like(amounts), where=capacity > 0)
        return shares

    @property
    def _row(self) -> int:
        return self.state.resources[self.args.metric]


def variances(shares: Floats, changed: Floats, nodes: Ints) -> Floats:
    """Return the population variance of the shares if one of them were another.

    Parameters
    ----------
    shares
        ``[n]`` of all machines.
    changed
        ``[nodes]`` what the share of each of the nodes would be.
    """
    number = len(shares)
    total = shares.sum() - shares[nodes] + changed
    squares = (shares**2).sum() - shares[nodes] ** 2 + changed**2
    found: Floats = np.maximum(squares / number - (total / number) ** 2, 0.0)
    return found
