"""LowRiskOverCommitment: nodes that are unlikely to be short of what was promised are better."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from pydantic import field_validator

from stowplan.models.arrays import Floats, Ints
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import POINTS
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.plugins.trimaran.amounts import RESOURCES, Amounts, limited, requested
from stowplan.plugins_compat.plugins.trimaran.arithmetic import clipped, rounded
from stowplan.plugins_compat.plugins.trimaran.beta import Beta, fit, highest_variance
from stowplan.plugins_compat.plugins.trimaran.load import LoadAware, TrimaranArgs

WINDOWS, WEIGHT = 5, 0.5

ALLOWED_VARIANCE = 0.99
"""Share of the highest variance that a load may have, so that a distribution fits it."""


class LowRiskOverCommitmentArgs(TrimaranArgs):
    """Windows over which the metrics were smoothed, and how much limits weigh against measured load, by resource."""

    smoothing_window_size: int | None = None
    risk_limit_weights: dict[str, float] | None = None

    @field_validator("smoothing_window_size")
    @classmethod
    def _default_size(cls, value: int | None) -> int | None:
        return value if value is not None and value > 0 else None

    @field_validator("risk_limit_weights")
    @classmethod
    def _default_weights(cls, weights: dict[str, float] | None) -> dict[str, float] | None:
        return weights and {name: weight if 0 <= weight <= 1 else WEIGHT for name, weight in weights.items()}

    def weight(self, resource: str) -> float:
        """Return how much limits weigh, from 0 to 1."""
        return (self.risk_limit_weights or {}).get(resource, WEIGHT)


class LowRiskOverCommitment(LoadAware):
    """Scores ``100 · (1 − risk)`` by the riskier resource; ``risk = w · limits + (1 − w) · load``.

    The risk of limits is the share of the limits beyond the requests that the node could not serve:
    ``(L − C) / (L − R)`` where limits exceed the capacity. The risk of load is the probability that the measured
    use exceeds what the pods on the node request, given that it stays within their limits.
    """

    name = "LowRiskOverCommitment"
    Args = LowRiskOverCommitmentArgs

    def pre_score(self, cycle: CycleState, nodes: Ints) -> bool:
        """Note what the pod requests and may use."""
        cycle.data[self.name] = requested(cycle.signature.pod), limited(cycle.signature.pod)
        return True

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score 0 for a pod that asks for nothing, and on nodes without metrics."""
        request, limit = cycle.data[self.name]
        if not any(request) and not any(limit):
            return np.zeros(len(nodes), dtype=np.int64)
        risks = [self._risk(i, request[i], limit[i], nodes) for i in range(len(RESOURCES))]
        points = rounded((1 - np.maximum(*risks)) * POINTS)
        scores: Ints = np.where(self.known[nodes], points, 0)
        return scores

    def _risk(self, position: int, request: int, limit: int, nodes: Ints) -> Floats:
        resource = RESOURCES[position]
        capacity = self._capacity(resource)[nodes]
        requests = np.minimum(self._sums("requests", requested, position)[nodes] + request, capacity)
        limits = self._sums("limits", limited, position)[nodes] + limit
        beyond = limits > capacity
        of_limits = np.divide(limits - capacity, limits - requests, out=np.zeros(len(nodes)), where=beyond)
        weight = self.args.weight(resource)
        return clipped(weight * of_limits + (1 - weight) * self._load_risk(position)[nodes])

    def _load_risk(self, position: int) -> Floats:
        """``[n]`` the risk of load; it depends on the pods on a node, and is kept while they stay."""
        resource = RESOURCES[position]
        capacity = self._capacity(resource)
        requests = np.minimum(self._sums("requests", requested, position), capacity)
        limits = self._sums("limits", limited, position)
        memory = self.state.memo((self.name, "load", resource), lambda: _Memory(self.state.size))
        changed = (requests != memory.requests) | (limits != memory.limits)
        for n in np.flatnonzero(changed & self.usage(resource).valid).tolist():
            mean, deviation = self._distribution(resource)[n]
            memory.risk[n] = load_risk(mean, deviation, int(requests[n]), int(limits[n]), int(capacity[n]))
        memory.requests[changed], memory.limits[changed] = requests[changed], limits[changed]
        return memory.risk

    def _distribution(self, resource: str) -> list[tuple[float, float]]:
        """``[n]`` mean and standard deviation of the load, the latter before smoothing, and such that one fits."""

        def make() -> list[tuple[float, float]]:
            usage = self.usage(resource)
            smoothing = math.sqrt(self.args.smoothing_window_size or WINDOWS)
            return [
                (mean, min(spread * smoothing, math.sqrt(highest_variance(mean) * ALLOWED_VARIANCE)))
                for mean, spread in zip(usage.share().tolist(), usage.spread.tolist(), strict=True)
            ]

        return self.state.memo((self.name, "distribution", resource), make)

    def _sums(self, what: str, amounts: Callable[[Pod], Amounts], position: int) -> Ints:
        """``[n]`` what the pods on each node request, or may use, of one resource."""
        return self.state.domain_counts(
            (self.name, what, position), lambda signature: amounts(signature.pod)[position]
        ).per_node

    def _capacity(self, resource: str) -> Ints:
        amounts: Ints = self.state.allocatable[self.state.resources[resource]]
        return amounts


class _Memory:
    """For each node, the risk of load, and the sums that it was computed from."""

    def __init__(self, size: int) -> None:
        self.requests = np.full(size, -1, dtype=np.int64)
        self.limits = np.full(size, -1, dtype=np.int64)
        self.risk = np.zeros(size)


def load_risk(mean: float, deviation: float, requests: int, limits: int, capacity: int) -> float:
    """Return ``1 − P(load ≤ requests | load ≤ limits)``; limits count where they are below the capacity."""
    if not capacity:
        return 0.0
    threshold = min(max(requests / capacity, 0.0), 1.0)
    within, distribution = probability(mean, deviation, threshold)
    if limits < capacity and requests <= limits:
        if not limits:
            within = 1.0
        elif distribution is not None and (possible := distribution.below(limits / capacity)) > 0:
            within = min(max(within / possible, 0.0), 1.0)
    return 1 - within


def probability(mean: float, deviation: float, threshold: float) -> tuple[float, Beta | None]:
    """Return the probability of a load of at most ``threshold``, and the distribution, if one was needed."""
    if not mean or (not deviation and mean <= threshold):
        return 1.0, None
    distribution = fit(mean, deviation) if deviation else None
    return (distribution.below(threshold), distribution) if distribution else (0.0, None)
