"""What Trimaran plugins share: where metrics come from, and how a node's figures are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel

from stowplan.models import metrics as measured
from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.metrics import LoadMetrics, Metric
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.plugins.trimaran.arithmetic import clipped
from stowplan.plugins_compat.requests import CPU, MEMORY

MEBI = 2.0**20

METRIC_TYPES = {CPU: measured.CPU, MEMORY: measured.MEMORY}


class MetricProvider(BaseModel):
    """Whom load-watcher asks when it is used as a library."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, validate_by_name=True)

    type: Literal["", "KubernetesMetricsServer", "Prometheus", "SignalFx"] = ""
    address: str | None = None
    token: str | None = None
    insecure_skip_verify: bool | None = None


class TrimaranArgs(Args):
    """Arguments that all Trimaran plugins have: a load-watcher service, or a provider of metrics."""

    metric_provider: MetricProvider = MetricProvider()
    watcher_address: str | None = None

    @model_validator(mode="after")
    def _names_a_source(self) -> TrimaranArgs:
        if self.watcher_address == "" and not self.metric_provider.type:
            raise ValueError("watcherAddress is empty, and metricProvider.type names no provider")
        return self


class LoadAware(Plugin):
    """Base of plugins that score by measured load.

    They have no terms: what a node's load would be after moves is not measured, and the scores are not convex.
    """

    Args = TrimaranArgs

    @property
    def metrics(self) -> LoadMetrics:
        """The metrics of the snapshot; without any, no node is known."""
        return self.state.snapshot.metrics or LoadMetrics()

    @property
    def known(self) -> Bools:
        """``[n]`` whether a node has any figures; one that has none scores 0."""
        return self.state.memo(
            ("trimaran", "known"), lambda: np.array([bool(self.metrics.of(node.name)) for node in self.state.nodes])
        )

    def usage(self, resource: str) -> Usage:
        """Return the measured usage of a resource."""
        return self.state.memo(("trimaran", "usage", resource), lambda: read_usage(self.state, self.metrics, resource))


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """Measured usage of one resource, in the unit that scores are computed in: millicores, or MiB.

    Parameters
    ----------
    unit
        How many of them a scheduler unit is.
    valid
        ``[n]`` whether the node has a figure of the resource, of whatever operator.
    capacity
        ``[n]`` what pods may use of it.
    average, deviation
        ``[n]`` used; 0 where not known.
    """

    unit: float
    valid: Bools
    capacity: Floats
    average: Floats
    deviation: Floats

    def share(self, request: int = 0) -> Floats:
        """``[n]`` the mean ``μ = (average + request) / capacity``, from 0 to 1; 0 without capacity."""
        return clipped(self._of_capacity(self.average + request * self.unit))

    @property
    def spread(self) -> Floats:
        """``[n]`` the standard deviation ``σ = deviation / capacity``, from 0 to 1; 0 without capacity."""
        return clipped(self._of_capacity(self.deviation))

    def _of_capacity(self, amount: Floats) -> Floats:
        return np.divide(amount, self.capacity, out=np.zeros_like(amount), where=self.capacity > 0)


def read_usage(state: ClusterState, metrics: LoadMetrics, resource: str) -> Usage:
    """Turn percentages into amounts of what pods may use.

    An average is taken before the latest value or one without operator; of several of a kind, the last.
    """
    percent = np.zeros((2, state.size))
    valid = np.zeros(state.size, dtype=np.bool_)
    for n, node in enumerate(state.nodes):
        found = [metric for metric in metrics.of(node.name) if metric.type == METRIC_TYPES[resource]]
        percent[:, n] = _average(found), _last(found, measured.DEVIATION)
        valid[n] = bool(found)
    amounts: Ints = state.allocatable[state.resources[resource]]
    unit = 1.0 if resource == CPU else 1 / MEBI
    capacity = amounts.astype(np.float64) * unit
    average, deviation = percent * capacity / 100
    return Usage(unit, valid, capacity, average, deviation)


def _average(found: list[Metric]) -> float:
    if any(metric.operator == measured.AVERAGE for metric in found):
        return _last(found, measured.AVERAGE)
    return _last(found, measured.LATEST, measured.UNSPECIFIED)


def _last(found: list[Metric], *operators: str) -> float:
    return next((metric.value for metric in reversed(found) if metric.operator in operators), 0.0)
