"""NodeResourcesFit: requests fit what is left, and scores how full the node would be."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import PENALTY_WEIGHT, POINTS, Capacity, NodeScore, Origin, Rule, Weighted
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import SUCCESS, UNRESOLVABLE, UNSCHEDULABLE
from stowplan.plugins_compat.framework.view import ScoreView, View
from stowplan.plugins_compat.isolation import POOL
from stowplan.plugins_compat.plugins.resource_scores import ResourceSpec, Scored, default_resources, score_loads
from stowplan.plugins_compat.plugins.shape import ShapePoint, broken_line
from stowplan.plugins_compat.requests import CPU, EPHEMERAL, MEMORY, NATIVE, PODS, is_extended, requests


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RatioParam(_Part):
    """The shape of RequestedToCapacityRatio."""

    shape: Annotated[tuple[ShapePoint, ...], Field(min_length=1)]

    @field_validator("shape")
    @classmethod
    def _rises(cls, shape: tuple[ShapePoint, ...]) -> tuple[ShapePoint, ...]:
        xs = [point.utilization for point in shape]
        if any(b <= a for a, b in itertools.pairwise(xs)):
            raise ValueError("utilization values must be strictly increasing")
        return shape


class ScoringStrategy(_Part):
    """How a node's usage becomes a score."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: Annotated[RatioParam | None, Field(alias="requestedToCapacityRatio")] = None

    @model_validator(mode="after")
    def _has_shape(self) -> ScoringStrategy:
        if self.type == "RequestedToCapacityRatio" and self.requested_to_capacity_ratio is None:
            raise ValueError("RequestedToCapacityRatio needs requestedToCapacityRatio.shape")
        return self


class NodeResourcesFitArgs(Args):
    """Which resources the filter ignores, and how nodes are scored."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class NodeResourcesFit(Plugin):
    """Rejects nodes without room for the pod's requests; scores by the chosen strategy."""

    name = "NodeResourcesFit"
    surrogate = "each pod as its node is used in the end; none with extended resources in the strategy"
    reads = "requests"
    refusal = "pods that are being resized in place (1.36)"
    Args = NodeResourcesFitArgs

    def refuses(self, pod: Pod) -> str | None:
        """Refuse pods that would request something else on another node than they hold now."""
        resized = self.release.in_place_resize and self.state.signatures.of(pod).resized
        return "in-place resize under way: its requests here and on another node differ" if resized else None

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Reject nodes where some request exceeds what is free."""
        rows, amounts = self.compared(cycle.signature)
        capacity = self.state.allocatable[np.ix_(rows, nodes)]
        lacking = amounts[:, None] > capacity - self.state.requested[np.ix_(rows, nodes)]
        codes = np.where(lacking.any(axis=0), UNSCHEDULABLE, SUCCESS)
        if self.release.fit_unresolvable:
            hopeless = lacking[1:] & (amounts[1:, None] > capacity[1:])
            codes[hopeless.any(axis=0)] = UNRESOLVABLE
        return codes

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Name every resource that is short, in upstream's order."""
        rows, amounts = self.compared(cycle.signature)
        free = self.state.allocatable[rows, node] - self.state.requested[rows, node]
        return [self._shortage(row) for row, lacking in zip(rows, amounts > free, strict=True) if lacking]

    def count_reasons(self, cycle: CycleState, nodes: Ints, codes: Ints) -> Counter[str]:
        """Count the nodes on which each resource is short."""
        rows, amounts = self.compared(cycle.signature)
        free = self.state.allocatable[np.ix_(rows, nodes)] - self.state.requested[np.ix_(rows, nodes)]
        short = (amounts[:, None] > free).sum(axis=1).tolist()
        return Counter({self._shortage(row): number for row, number in zip(rows, short, strict=True) if number})

    def _shortage(self, row: int) -> str:
        name = list(self.state.resources)[row]
        return "Too many pods" if name == PODS else f"Insufficient {name}"

    def rules(self, view: View) -> Iterable[Rule]:
        """One `Capacity` for each resource that some signature requests."""
        for name, row in self.state.resources.items():
            demand = np.array([self._demand(signature, row) for signature in view.signatures], dtype=np.int64)
            if demand.any():
                yield self._capacity(name, row, demand, view.unit(partial(self._demand, row=row)))
        if not self.release.fit_skips_zero:
            rule = view.allow(self.name, lambda signature: ~self._overcommitted(signature))
            if rule is not None:
                yield rule

    def pre_score(self, cycle: CycleState, nodes: Ints) -> bool:
        """Note what is scored."""
        cycle.data[self.name] = self.scored()
        return True

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Score by the chosen strategy."""
        scored: Scored = cycle.data[self.name]
        return self.points(*scored.usage(cycle.signature, nodes))

    def points(self, used: Ints, capacity: Ints, weights: Ints) -> Ints:
        """``[n]`` the score by what is used of each resource with the pod, ``[k, n]``; capacity 0 does not count."""
        strategy = self.args.scoring_strategy
        if not len(weights):
            return np.zeros(used.shape[1], dtype=np.int64)
        if strategy.type == "RequestedToCapacityRatio":
            return _ratio_score(used, capacity, weights, strategy.requested_to_capacity_ratio.shape)
        counted = capacity > 0
        room = np.where(counted, capacity, 1)
        if strategy.type == "LeastAllocated":
            parts = np.where(used > capacity, 0, (capacity - used) * POINTS // room)
        else:
            parts = np.minimum(used, capacity) * POINTS // room
        total = np.where(counted, weights[:, None], 0).sum(axis=0)
        weighted = np.where(counted, parts * weights[:, None], 0).sum(axis=0)
        scores: Ints = np.where(total > 0, weighted // np.maximum(total, 1), 0)
        return scores

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return the least or most allocated strategy as a `NodeScore`; a ratio shape has no term."""
        kind = {"LeastAllocated": "least", "MostAllocated": "most"}.get(self.args.scoring_strategy.type)
        loads = score_loads(view, self.scored())
        if kind is None or loads is None:
            return
        scored = np.ones(len(view.signatures), dtype=np.int64)
        yield Weighted(1, NodeScore(Origin(self.name), kind, loads, view.point, scored))  # type: ignore[arg-type]

    def omissions(self, view: View) -> Iterable[str]:
        """Say so if the strategy has no term."""
        if next(self.terms(view.scoring(())), None) is None:
            yield f"{self.name}: this scoring strategy has no terms; its score counts, but does not steer the search"

    def scored(self) -> Scored:
        """Return the resources that the score reads."""
        resources = self.args.scoring_strategy.resources or default_resources()
        return self.state.memo((self.name, "scored"), lambda: Scored(self.state, resources, nonzero=True))

    def compared(self, signature: Signature) -> tuple[Ints, Ints]:
        """Return the rows that the filter compares, pods first, and the pod's amounts."""

        def make() -> tuple[Ints, Ints]:
            vector = self.state.vector(signature)
            asked = self._asked(signature)
            rows = [self.state.resources[PODS]]
            for name, row in self.state.resources.items():
                if name == POOL or (name == CPU and self._isolated(signature)):
                    continue  # the pool is counted by IsolatedCPUs, and a pod in it takes no ordinary CPU
                compared = name in asked or (name in NATIVE and bool(asked))
                skipped = self.release.fit_skips_zero and not vector[row]
                if compared and not skipped and not self._ignored(name):
                    rows.append(row)
            return np.array(rows), vector[rows]

        return self.state.memo((self.name, signature), make)

    def _asked(self, signature: Signature) -> set[str]:
        """Return what a pod requests; a scalar that it names counts even when it names 0 of it.

        CPU, memory and ephemeral storage are compared for every pod that requests anything.
        """
        amounts = requests(signature.pod, self.release, held=signature.resized)
        return {name for name, amount in amounts.items() if amount or name not in NATIVE}

    @property
    def compared_rows(self) -> Ints:
        """Rows of the resources that the filter compares if a pod requests them."""
        return np.array([row for name, row in self.state.resources.items() if not self._ignored(name)])

    def _ignored(self, name: str) -> bool:
        args = self.args
        return is_extended(name) and (
            name in args.ignored_resources or name.partition("/")[0] in args.ignored_resource_groups
        )

    def _demand(self, signature: Signature, row: int) -> int:
        rows, amounts = self.compared(signature)
        found = np.flatnonzero(rows == row)
        return int(amounts[found[0]]) if len(found) else 0

    def _isolated(self, signature: Signature) -> bool:
        isolation = self.release.isolation
        return isolation is not None and isolation.marks(signature.pod)

    def _overcommitted(self, signature: Signature) -> Bools:
        """``[n]`` nodes with too little already of what is compared for the pod even where it requests none."""
        names = (MEMORY, EPHEMERAL) if self._isolated(signature) else (CPU, MEMORY, EPHEMERAL)
        rows = [self.state.resources[name] for name in names if self._asked(signature)]
        full: Bools = np.any(self.state.requested[rows] > self.state.allocatable[rows], axis=0)
        return full

    def _capacity(self, name: str, row: int, demand: Ints, unit: int) -> Capacity:
        allocatable = self.state.allocatable[row]
        free = (allocatable - self.state.requested[row]) // unit
        penalty_weight = np.maximum(1, PENALTY_WEIGHT * unit // np.maximum(1, allocatable))
        return Capacity(Origin(self.name, name), demand // unit, free, np.minimum(penalty_weight, PENALTY_WEIGHT), unit)


def _ratio_score(used: Ints, capacity: Ints, weights: Ints, points: Sequence[ShapePoint]) -> Ints:
    """Score through a broken line; only parts above 0 count, and the mean is rounded half away from zero."""
    percent = np.where(used > capacity, POINTS, used * POINTS // np.maximum(capacity, 1))
    parts = np.where(capacity > 0, broken_line(percent, points), 0)
    counted = parts > 0
    total = np.where(counted, weights[:, None], 0).sum(axis=0)
    weighted = np.where(counted, parts * weights[:, None], 0).sum(axis=0)
    mean = weighted / np.maximum(total, 1)
    floor = np.floor(mean)
    scores: Ints = np.where(total > 0, floor + (mean - floor >= 0.5), 0).astype(np.int64)
    return scores
