"""Objectives: presets, and the format of objective files."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

Preemption = Literal["never", "by-priority"]
"""Whether a pod may lose its node to others."""

RepairKind = Literal[
    "overcommit",
    "host-ports",
    "anti-affinity",
    "affinity",
    "spread",
    "node-affinity",
    "no-execute",
    "taints",
    "cordons",
]
"""Kinds of violations that exist today, of rules that kube-scheduler checks once; ``taints`` are NoSchedule."""

REPAIRED: tuple[RepairKind, ...] = get_args(RepairKind)[:-2]
"""What is repaired by default: all but NoSchedule taints and cordons, which keep new pods out and evict none."""

Weight = Annotated[float, Field(ge=0, le=1_000_000, strict=True)]


FEASIBILITY = "constraint violations"
"""Name of the tier of constraint violations, which every problem has."""


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TierSettings(_Settings):
    """One tier: a weighted sum of costs, minimized before all later tiers.

    Parameters
    ----------
    name
        Name of the tier, unique in its objective.
    variance
        Weight of each resource's capacity-weighted variance of utilization. One unit is one percentage point
        squared, for one node of average size.
    evenness
        Weight of each resource's variance of utilization with every node counting as one, whatever its size. One unit
        is one percentage point squared, for one node. Where nodes differ in size, deviations are taken from today's
        mean.
    moves
        Cost of each pod that leaves its node.
    nodes
        Cost of each node in use. DaemonSet and static pods do not keep a node in use.
    price
        Weight of what nodes in use cost in an hour, by the prices that the settings give.
    scores
        Weight of the scheduler's plugin scores (weighted as in the profile): each point that a pod misses in the
        final state costs this much. By name of plugin, instead: what each point of that plugin costs, whatever its
        weight in the profile; plugins that are not named do not count.
    spread
        Weight by topology key: how unevenly the pods of each workload are spread over the domains of that key.
        One unit is two pods of one workload in one domain.
    """

    name: str
    variance: dict[str, Weight] = {}
    evenness: dict[str, Weight] = {}
    moves: Weight = 0
    nodes: Weight = 0
    price: Weight = 0
    scores: Weight | dict[str, Weight] = 0.0
    spread: dict[str, Weight] = {}

    @model_validator(mode="after")
    def _says_something(self) -> TierSettings:
        if not any(
            (
                *self.variance.values(),
                *self.evenness.values(),
                self.moves,
                self.nodes,
                self.price,
                self.point,
                *self.spread.values(),
            )
        ):
            raise ValueError("has no positive weight; set variance, evenness, moves, nodes, price, scores, or spread")
        return self

    @property
    def point(self) -> float:
        """The most that a point of the scheduler's scores costs; 0 if scores do not count."""
        return max(self.scores.values(), default=0) if isinstance(self.scores, dict) else self.scores


class Objective(_Settings):
    """An objective: what is minimized once constraint violations are repaired and pending pods are scheduled.

    Parameters
    ----------
    name
        Name of the objective, for reports.
    tiers
        What is minimized, one tier after the other.
    preemption
        ``never``: a pod that has a node is not unscheduled. ``by-priority``: it may lose its node if that schedules
        more pods of its own priority, or a pod of a higher one.
    repair
        Kinds of standing violations that are worth moves, before all tiers. The others stay as they are today, unless
        a pod moves anyway. Violations of volumes, devices, and filters of one's own are always repaired, and pods
        always leave dead nodes.
    """

    name: str = "custom"
    preemption: Preemption = "never"
    repair: tuple[RepairKind, ...] = REPAIRED
    tiers: Annotated[tuple[TierSettings, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_tiers_apart(self) -> Objective:
        names = [tier.name for tier in self.tiers]
        for name in names:
            if names.count(name) > 1 or name == FEASIBILITY or name.startswith("pending"):
                raise ValueError(f"tiers need names of their own, {name!r} is taken")
        return self


ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"

POINTS_PER_SQUARE = 5
"""Points of score that a squared percentage point of imbalance is worth in ``global``.

A move has to gain 10 squared percentage points in ``balance``, and 50 points in ``kube``.
"""

IN_POINTS: dict[str, Weight] = {"cpu": POINTS_PER_SQUARE, "memory": POINTS_PER_SQUARE}

PRESETS: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        Objective(
            name="balance",
            tiers=(TierSettings(name="imbalance", variance={"cpu": 1, "memory": 1}, moves=10),),
        ),
        Objective(
            name="pack",
            tiers=(TierSettings(name="nodes in use", nodes=1), TierSettings(name="moves", moves=1)),
        ),
        Objective(
            name="spread",
            tiers=(
                TierSettings(name="spread", spread={ZONE: 1, HOSTNAME: 1}, moves=1),
                TierSettings(name="imbalance", variance={"cpu": 1, "memory": 1}, moves=10),
            ),
        ),
        Objective(name="repair", tiers=(TierSettings(name="moves", moves=1),)),
        Objective(name="kube", tiers=(TierSettings(name="missed score", scores=1, moves=50),)),
        Objective(
            name="global",
            tiers=(TierSettings(name="missed score and imbalance", scores=1, variance=IN_POINTS, moves=50),),
        ),
    )
}

PRICED_PRESETS: dict[str, Objective] = {
    "cost": Objective(name="cost", tiers=(TierSettings(name="price", price=1), TierSettings(name="moves", moves=1)))
}
"""Presets that need prices of nodes."""
