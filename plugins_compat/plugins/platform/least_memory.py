"""LeastMemory: the machine with the least memory in use is best, the platform's rule before it had scores."""

from __future__ import annotations

from stowplan.models.arrays import Floats, Ints
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.plugins.platform.scale import MetricArgs, Real, best_first


class LeastMemory(Real):
    """Scores by the amount in use, least first, from 100 down to 0 among the feasible machines."""

    name = "LeastMemory"
    Args = MetricArgs

    def score(self, cycle: CycleState, nodes: Ints) -> Floats:
        """Return the amount in use."""
        used: Floats = self.amounts(cycle, nodes, [self.args.metric])[0][0]
        return used

    # Scores of the platform are real numbers; those of kube-scheduler are integers.
    def normalize(self, cycle: CycleState, nodes: Ints, scores: Floats) -> Floats:  # type: ignore[override]
        """Scale to scores from 100 for the least down to 0."""
        return best_first(scores)
