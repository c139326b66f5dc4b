"""TargetLoadPacking: fill nodes up to a target CPU utilization, and not beyond."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from stowplan.models import metrics as measured
from stowplan.models.arrays import Floats, Ints
from stowplan.models.kubernetes import Container, Pod
from stowplan.models.kubernetes.base import Quantity
from stowplan.models.moments import parse_time
from stowplan.models.problem import POINTS
from stowplan.models.quantity import milli
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.plugins.trimaran.arithmetic import rounded
from stowplan.plugins_compat.plugins.trimaran.load import LoadAware, TrimaranArgs
from stowplan.plugins_compat.requests import CPU

TARGET, REQUEST, MULTIPLIER = 40, 1000, "1.5"

REPORTING_INTERVAL = 60
"""Seconds after its binding within which a pod is taken not to be part of the metrics yet."""


class TargetLoadPackingArgs(TrimaranArgs):
    """The target utilization in percent, and what containers without a CPU limit are predicted to use."""

    default_requests: dict[str, Quantity] | None = None
    default_requests_multiplier: Annotated[str, Field(coerce_numbers_to_str=True)] = MULTIPLIER
    target_utilization: int = TARGET

    @field_validator("default_requests")
    @classmethod
    def _not_negative(cls, amounts: dict[str, int] | None) -> dict[str, int] | None:
        if any(amount < 0 for amount in (amounts or {}).values()):
            raise ValueError("must not be negative")
        return amounts

    @field_validator("default_requests_multiplier", mode="before")
    @classmethod
    def _default_multiplier(cls, value: object) -> object:
        return MULTIPLIER if value is None else value

    @field_validator("default_requests_multiplier")
    @classmethod
    def _number(cls, value: str) -> str:
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < math.inf:
            raise ValueError(f"{value!r} is not a number of 0 or more")
        return value

    @field_validator("target_utilization", mode="before")
    @classmethod
    def _default_target(cls, value: object) -> object:
        return TARGET if value is None or (isinstance(value, int) and value <= 0) else value

    @field_validator("target_utilization")
    @classmethod
    def _at_most_all(cls, value: int) -> int:
        if value > POINTS:
            raise ValueError(f"is {value}; must be at most 100")
        return value

    @property
    def default_request(self) -> int:
        """Millicores of a container that names neither a request nor a limit."""
        return REQUEST if self.default_requests is None else milli(self.default_requests.get(CPU, 0))


class TargetLoadPacking(LoadAware):
    """Scores by the predicted CPU utilization ``p``, in percent of the node's capacity, against the target ``T``.

    ``(100 − T) · p/T + T`` up to the target, ``T · (100 − p) / (100 − T)`` beyond it, 0 beyond 100.
    """

    name = "TargetLoadPacking"
    Args = TargetLoadPackingArgs

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score by what is measured, and predicted for this pod and for those that are not measured yet."""
        target = float(self.args.target_utilization)
        capacity, utilization = self._capacity()[nodes], self._utilization()[nodes]
        used = utilization / 100 * capacity + float(self._predicted(cycle.signature)) + self._missing()[nodes]
        used = np.maximum(used, 0.0)  # only where more has left the node than was measured
        percent = np.divide(100 * used, capacity, out=np.zeros_like(used), where=capacity != 0)
        below = (100 - target) * percent / target + target
        beyond = target * (100 - percent) / max(100 - target, 1.0)
        points = np.where(percent <= target, below, np.where(percent <= 100, beyond, 0.0))
        return rounded(np.where(np.isnan(utilization), 0.0, points))

    def _predicted(self, signature: Signature) -> int:
        """Millicores that a pod is expected to use; init containers do not count."""

        def make() -> int:
            spec = signature.pod.spec
            return sum(map(self._predicted_container, spec.containers)) + milli(spec.overhead.get(CPU, 0))

        return self.state.memo((self.name, "predicted", signature), make)

    def _predicted_container(self, container: Container) -> int:
        if CPU in container.limits:
            return milli(container.limits[CPU])
        if CPU in container.requests:
            use: float = milli(container.requests[CPU]) * float(self.args.default_requests_multiplier)
            return int(use) + (use - int(use) >= 0.5)
        asked: int = self.args.default_request
        return asked

    def _missing(self) -> Ints:
        """``[n]`` millicores predicted for pods that came after the metrics, less those of pods that left since.

        Upstream knows no pods that left: it meets none but victims of preemption, whose load it goes on counting.
        """
        placed = self.state.domain_counts((self.name, "predicted"), self._predicted).per_node
        missing: Ints = placed - self._part_of_metrics()
        return missing

    def _part_of_metrics(self) -> Ints:
        """``[n]`` millicores predicted for the pods whose use is measured."""

        def make() -> Ints:
            total = np.zeros(self.state.size, dtype=np.int64)
            index = self.state.snapshot.node_index
            for pod in self._measured_pods():
                total[index[pod.node_name]] += self._predicted(self.state.signatures.of(pod))
            return total

        return self.state.memo((self.name, "part of metrics"), make)

    def _measured_pods(self) -> Iterable[Pod]:
        end = self.metrics.end
        for pod in self.state.snapshot.pods:
            if pod.node_name in self.state.snapshot.node_index and not pod.finished:
                since = bound_at(pod)
                if end is None or (end > 0 and (since is None or since <= end - REPORTING_INTERVAL)):
                    yield pod

    def _utilization(self) -> Floats:
        """``[n]`` measured CPU utilization in percent: the last average or latest value; not a number if neither."""

        def make() -> Floats:
            percent = np.full(self.state.size, np.nan)
            for n, node in enumerate(self.state.nodes):
                for metric in self.metrics.of(node.name):
                    if metric.type == measured.CPU and metric.operator in (measured.AVERAGE, measured.LATEST):
                        percent[n] = metric.value
            return percent

        return self.state.memo((self.name, "utilization"), make)

    def _capacity(self) -> Floats:
        """``[n]`` millicores of the machine, not only of what pods may use."""
        return self.state.memo(
            (self.name, "capacity"),
            lambda: np.array([milli(node.capacity.get(CPU, 0)) for node in self.state.nodes], dtype=np.float64),
        )


def bound_at(pod: Pod) -> int | None:
    """Return when a pod got its node, in seconds since 1970: when its kubelet took it on, else its creation."""
    stamp = (pod.status.start_time if pod.status else None) or pod.metadata.creation_timestamp
    since = parse_time(stamp) if stamp else None
    return None if since is None else int(since.timestamp())
