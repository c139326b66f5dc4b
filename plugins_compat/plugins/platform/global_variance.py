"""GlobalVariance: the machine with which utilization varies least over all machines is best."""

from __future__ import annotations

import numpy as np

from stowplan.models.arrays import Floats, Ints
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.plugins.platform.scale import MetricArgs, Real, best_first


class GlobalVariance(Real):
    """Scores by the variance that one metric would have over *all* machines, each counting as one.

    Machines that have nothing of it do not count. The least variance among the feasible machines scores 100, the
    largest 0, and others in proportion. The objective ``evenness`` is the same without an order of arrival.
    """

    name = "GlobalVariance"
    Args = MetricArgs

    def score(self, cycle: CycleState, nodes: Ints) -> Floats:
        """Return by how much the variance would grow with each machine, in squared shares."""
        row = self.row(self.args.metric)
        capacity = self.state.allocatable[row].astype(np.float64)
        shares = np.divide(self.state.requested[row], capacity, out=np.full_like(capacity, np.nan), where=capacity > 0)
        own = np.full(len(nodes), float(self.state.vector(cycle.signature)[row]))
        added = np.divide(own, capacity[nodes], out=np.zeros_like(own), where=capacity[nodes] > 0)
        return growth(shares, added, nodes)

    # Scores of the platform are real numbers; those of kube-scheduler are integers.
    def normalize(self, cycle: CycleState, nodes: Ints, scores: Floats) -> Floats:  # type: ignore[override]
        """Scale to scores from 100 for the least down to 0."""
        return best_first(scores)


def growth(shares: Floats, added: Floats, nodes: Ints) -> Floats:
    """Return by how much the population variance of the shares grows if one of them grows.

    Growth alone is computed, since of many machines the variances with one or another differ in the last digits only.

    Parameters
    ----------
    shares
        ``[n]`` of all machines; not a number where a machine has nothing of the metric, and does not count.
    added
        ``[nodes]`` by how much the share of each of the nodes grows.
    """
    counted = ~np.isnan(shares)
    number = max(1, int(counted.sum()))
    deviations = np.where(counted, shares - shares[counted].sum() / number, 0.0)
    total, here = deviations.sum(), deviations[nodes]
    found: Floats = added * (2 * here + added) / number - added * (2 * total + added) / number**2
    return found
