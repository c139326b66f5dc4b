"""LoadVariationRiskBalancing: nodes whose load is low and steady are better."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from stowplan.models.arrays import Floats, Ints
from stowplan.models.problem import POINTS
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.plugins.trimaran.amounts import RESOURCES, requested
from stowplan.plugins_compat.plugins.trimaran.arithmetic import clipped, power, rounded
from stowplan.plugins_compat.plugins.trimaran.load import LoadAware, TrimaranArgs, Usage


class LoadVariationRiskBalancingArgs(TrimaranArgs):
    """How much the variation of load counts: ``margin · σ^(1/sensitivity)``; below 0 means the default, 1."""

    safe_variance_margin: Annotated[float | None, Field(allow_inf_nan=False)] = None
    safe_variance_sensitivity: Annotated[float | None, Field(allow_inf_nan=False)] = None

    @field_validator("safe_variance_margin", "safe_variance_sensitivity")
    @classmethod
    def _default(cls, value: float | None) -> float | None:
        return None if value is not None and value < 0 else value

    @property
    def margin(self) -> float:
        """Factor of the standard deviation."""
        return 1.0 if self.safe_variance_margin is None else self.safe_variance_margin

    @property
    def root(self) -> float:
        """Power to which the standard deviation is raised; infinite for a sensitivity of 0."""
        sensitivity = 1.0 if self.safe_variance_sensitivity is None else self.safe_variance_sensitivity
        return 1 / sensitivity if sensitivity else float("inf")


class LoadVariationRiskBalancing(LoadAware):
    """Scores ``100 · (1 − risk)`` with ``risk = (μ + margin · σ^(1/sensitivity)) / 2``, by the worse resource."""

    name = "LoadVariationRiskBalancing"
    Args = LoadVariationRiskBalancingArgs

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score by CPU and memory where both are measured, else by the one that is."""
        request = dict(zip(RESOURCES, requested(cycle.signature.pod), strict=True))
        cpu, memory = (self._score(resource, request[resource])[nodes] for resource in RESOURCES)
        both = np.logical_and(*(self.usage(resource).valid[nodes] for resource in RESOURCES))
        return rounded(np.where(both, np.minimum(cpu, memory), np.maximum(cpu, memory)))

    def _score(self, resource: str, request: int) -> Floats:
        """``[n]`` by one resource; 0 where it is not measured, or the node has none."""
        usage = self._bounded(resource)
        risk = (usage.share(request) + self._variation(resource)) / 2
        return np.where(usage.valid & (usage.capacity > 0), (1.0 - risk) * POINTS, 0.0)

    def _bounded(self, resource: str) -> Usage:
        """Return the usage, none of it beyond the capacity."""

        def make() -> Usage:
            usage = self.usage(resource)
            average, deviation = (clipped(used, usage.capacity) for used in (usage.average, usage.deviation))
            return replace(usage, average=average, deviation=deviation)

        return self.state.memo((self.name, "bounded", resource), make)

    def _variation(self, resource: str) -> Floats:
        """``[n]`` the part of the risk that the standard deviation makes."""

        def make() -> Floats:
            raised = [power(spread, self.args.root) for spread in self._bounded(resource).spread.tolist()]
            return clipped(np.array(raised, dtype=np.float64) * self.args.margin)

        return self.state.memo((self.name, "variation", resource), make)
