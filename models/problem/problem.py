"""The problem: classes, nodes, rules, tiers, and the placement at the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stowplan.models.arrays import Ints
from stowplan.models.problem.final_state import FinalCost
from stowplan.models.problem.placement import Placement
from stowplan.models.problem.rules import Capacity, GroupMoveBudget, MoveBudget, Rule
from stowplan.models.problem.terms import Term, Unplaced


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """A term with its weight inside a tier."""

    weight: int
    term: Term


@dataclass(frozen=True, slots=True, eq=False)
class Tier:
    """A weighted sum of terms, minimized before all later tiers.

    Parameters
    ----------
    scale
        Whole units per displayed unit.
    unit
        Unit of the displayed value.
    final
        A cost of the whole final state that is added to the terms.
    surrogate
        Terms that replace it where an engine cannot read it. They steer the search; no value or bound of the tier
        is theirs.
    constant
        What pods outside the problem cost in whole units, wherever the others are. Values and bounds leave it out, and
        `shown` adds it, so that what is shown does not depend on which pods may move.
    """

    name: str
    terms: tuple[Weighted, ...]
    scale: int = 1
    unit: str = ""
    final: FinalCost | None = None
    surrogate: tuple[Weighted, ...] = ()
    constant: int = 0

    @property
    def counts_unscheduled(self) -> bool:
        """Whether it counts pods without a node and nothing else."""
        return self.counts(Unplaced)

    def counts(self, *kinds: type[Term]) -> bool:
        """Whether it has terms of such kinds and nothing else."""
        counts = all(isinstance(weighted.term, kinds) for weighted in self.terms)
        return bool(self.terms) and counts and self.final is None

    @property
    def steered(self) -> Tier:
        """The tier with surrogate terms in place of what engines cannot read."""
        return replace(self, terms=(*self.terms, *self.surrogate), final=None, surrogate=())

    def shown(self, value: int) -> float:
        """Return a value of this tier in displayed units, what pods outside the problem cost included."""
        return (value + self.constant) / self.scale

    def shown_difference(self, difference: int) -> float:
        """Return a part of a value, or a difference of two, in displayed units."""
        return difference / self.scale

    def whole(self, shown: float) -> int:
        """Return the value that is shown as a number."""
        return round(shown * self.scale) - self.constant


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A problem for the optimizer; nothing in it depends on Kubernetes.

    Parameters
    ----------
    nodes
        ``[n]`` names, for reports.
    classes
        ``[c]`` names, for reports.
    size
        ``[c]`` number of pods of each class.
    optional
        ``[c]`` number of pods of the class that may be unscheduled.
    start
        Placement at the start.
    rules, tiers
        Hard constraints, and costs to minimize, tier after tier.
    """

    nodes: tuple[str, ...]
    classes: tuple[str, ...]
    size: Ints
    optional: Ints
    start: Placement
    rules: tuple[Rule, ...]
    tiers: tuple[Tier, ...]

    @property
    def steered(self) -> Problem:
        """The problem with surrogate terms in place of what engines cannot read."""
        return replace(self, tiers=tuple(tier.steered for tier in self.tiers))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of classes and of nodes."""
        return len(self.classes), len(self.nodes)

    @property
    def move_limit(self) -> int | None:
        """How many pods may leave the nodes they started on; ``None`` without a limit."""
        return min((rule.limit for rule in self.rules if isinstance(rule, MoveBudget)), default=None)

    @property
    def plain_capacities(self) -> Sequence[Capacity]:
        """The capacities that no pod adds to."""
        return [rule for rule in self.rules if isinstance(rule, Capacity) and (rule.demand >= 0).all()]

    @property
    def limits_moves(self) -> bool:
        """Whether fewer pods may leave their nodes than have one."""
        limit = self.move_limit
        return limit is not None and limit < self.start.count.sum()

    @property
    def limits_any_moves(self) -> bool:
        """Whether moves are limited, of all pods or of a group."""
        return self.limits_moves or any(isinstance(rule, GroupMoveBudget) for rule in self.rules)

    @property
    def pods(self) -> int:
        """Number of pods to place."""
        return int(self.size.sum())
