"""What the plugins of the operations platform share: real scores, and machines as they would be with an instance.

A machine's usage is what is measured on it, plus estimates of what this round placed; both are in the cluster state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from stowplan.models.arrays import Floats, Ints
from stowplan.models.errors import InputError
from stowplan.models.platform import resource
from stowplan.models.problem import POINTS
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.requests import CPU, MEMORY


class ResourcesArgs(Args):
    """Which resources are scored, each with its weight; the article scores CPU and memory alike."""

    resources: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=lambda: {CPU: 1.0, MEMORY: 1.0}, min_length=1
    )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what is scored, as the platform's file has them."""
        return tuple(self.resources)


class MetricArgs(Args):
    """Which one resource is scored; the article recommends memory."""

    metric: str = MEMORY

    @property
    def names(self) -> tuple[str, ...]:
        """Name of what is scored, as the platform's file has it."""
        return (self.metric,)


class Real(Plugin):
    """A plugin whose scores are real numbers from 0 to 100."""

    def __init__(self, args: Any, state: ClusterState) -> None:
        super().__init__(args, state)
        for name in args.names:
            if resource(name) not in state.resources:
                raise InputError(f"{self.name} scores {name!r}, which no machine has", field="args")

    def row(self, name: str) -> int:
        """Return the row of a resource in the cluster state."""
        return self.state.resources[resource(name)]

    def amounts(self, cycle: CycleState, nodes: Ints, resources: Sequence[str]) -> tuple[Floats, Floats]:
        """Return usage with the instance and allocatable, each ``[k, nodes]``."""
        rows = [self.row(name) for name in resources]
        used = self.state.requested[rows][:, nodes] + self.state.vector(cycle.signature)[rows][:, None]
        return used.astype(np.float64), self.state.allocatable[rows][:, nodes].astype(np.float64)

    def shares(self, cycle: CycleState, nodes: Ints, resources: Sequence[str]) -> Floats:
        """``[k, nodes]`` the used share of each resource; 1 where a machine has none of it."""
        used, capacity = self.amounts(cycle, nodes, resources)
        found: Floats = np.divide(used, capacity, out=np.ones_like(used), where=capacity > 0)
        return found


def best_first(values: Floats) -> Floats:
    """Scale values of which the least is best to scores from 100 down to 0; equal values all score 100."""
    if not len(values) or np.ptp(values) <= 0:
        return np.full(len(values), float(POINTS))
    scaled: Floats = np.clip(POINTS * (values.max() - values) / np.ptp(values), 0.0, POINTS)
    return scaled
