"""TargetUtilization: machines are filled up to a target share of one resource, and not beyond."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import POINTS
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.plugins.platform.scale import MetricArgs, Real


class TargetUtilizationArgs(MetricArgs):
    """The target ``X`` in percent. To see machines stay below X, configure X − 10."""

    target: Annotated[float, Field(gt=0, lt=100)] = 50.0


class TargetUtilization(Real):
    """Scores ``(100 − X)·U/X + X`` up to the target X, ``X·(100 − U)/(100 − X)`` beyond it, and 0 beyond 100.

    U is the machine's measured utilization in percent with the instance in place. It is the article's own form of what
    scheduler-plugins calls TargetLoadPacking: of any one resource, and without rounding.
    """

    name = "TargetUtilization"
    Args = TargetUtilizationArgs

    def score(self, cycle: CycleState, nodes: Ints) -> Floats:
        """Score by the utilization of the one resource."""
        return target_points(self.shares(cycle, nodes, [self.args.metric])[0] * POINTS, self.args.target)


def target_points(utilization: Floats, target: float) -> Floats:
    """Return the score of utilizations in percent."""
    below = (100 - target) * utilization / target + target
    beyond = target * (100 - utilization) / (100 - target)
    points: Floats = np.where(utilization <= target, below, np.where(utilization <= 100, beyond, 0.0))
    return points
