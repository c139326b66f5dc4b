"""The exact score as a cost of placements: points that pods miss."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import Detail, Part, Placement, ScoreTables
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.final_state.details import detailed
from stowplan.plugins_compat.final_state.estimates import Estimates
from stowplan.plugins_compat.final_state.relaxation import Relaxation
from stowplan.plugins_compat.final_state.scorer import FinalStateScorer
from stowplan.plugins_compat.final_state.tables import score_tables
from stowplan.plugins_compat.final_state.workload_costs import Counts
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signature, Signatures
from stowplan.plugins_compat.framework.state import ClusterState

KNOWN = 64
"""Placements of which the points missed are kept."""

Key = tuple[bytes, bytes, bytes]


class FinalStateCost:
    """Points that pods miss in a final state.

    A pod misses, of each plugin that can score it, what its weighted score lacks of the highest one. A pod without a
    node misses all of that, and so does one that the filters would not admit to its node.

    Parameters
    ----------
    fixed
        Pods that are not in the problem, and stay on their nodes.
    kinds
        ``[c]`` the signature of each class.

    Attributes
    ----------
    unit
        Points are counted in this part of a point; see `Release.score_unit`.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        profile: Profile,
        signatures: Signatures,
        fixed: Sequence[Pod],
        kinds: Sequence[Signature],
    ) -> None:
        self._snapshot, self._profile, self._signatures = snapshot, profile, signatures
        self._fixed, self._kinds = fixed, kinds
        self.unit = profile.release.score_unit
        self._known: OrderedDict[Key, Mapping[str, int]] = OrderedDict()
        self._shared: FinalStateScorer | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is only kept to save time."""
        return {**self.__dict__, "_known": OrderedDict(), "_shared": None}

    def fresh(self, placement: Placement) -> FinalStateScorer:
        """Return a scorer of one's own."""
        state = ClusterState(self._snapshot, self._profile.release, self._signatures)
        state.fill(self._fixed)
        return FinalStateScorer(Framework(self._profile, state), self._kinds, placement)

    def scorer(self, placement: Placement) -> FinalStateScorer:
        """Return a scorer at a placement. It is the same one each time: it holds until the next call."""
        if self._shared is None:
            self._shared = self.fresh(placement)
        self._shared.go_to(placement)
        return self._shared

    @cached_property
    def all_points(self) -> Mapping[str, Ints]:
        """By plugin, ``[c]`` the points that a pod of each class can have at most, in units."""
        scorer = self._shared or self.scorer(Placement.of(()))
        return {name: scorer.most[:, p] for p, name in enumerate(scorer.names)}

    def missed(self, placement: Placement, size: Ints) -> Mapping[str, int]:
        """Return the points missed, in units, by plugin, whatever its weight.

        Parameters
        ----------
        size
            ``[c]`` number of pods of each class, placed or not.
        """
        key = (placement.cls.tobytes(), placement.node.tobytes(), placement.count.tobytes())
        if key not in self._known:
            points = self.scorer(placement).points
            missed = {name: int((most * size).sum()) - points[name] for name, most in self.all_points.items()}
            self._known[key] = missed
            while len(self._known) > KNOWN:
                self._known.popitem(last=False)
        return self._known[key]


@dataclass(frozen=True, slots=True, eq=False)
class PricedFinalState:
    """Points missed in a final state, at a price.

    Parameters
    ----------
    points
        Cost of a point of each plugin.
    size
        ``[c]`` number of pods of each class.
    """

    final_state: FinalStateCost
    points: Mapping[str, int]
    size: Ints

    @property
    def step(self) -> int:
        """Points are whole, unless they are counted in parts."""
        return math.gcd(*self.points.values()) if self.final_state.unit == 1 else 1

    def cost(self, placement: Placement) -> int:
        """Return what the points missed cost."""
        return sum(self.parts(placement).values())

    def parts(self, placement: Placement) -> Mapping[str, int]:
        """Return what the points missed cost, by plugin, rounded up, so that no bound is above it."""
        missed = self.final_state.missed(placement, self.size)
        return {name: -(-point * missed[name] // self.final_state.unit) for name, point in self.points.items()}

    def state(self, placement: Placement) -> PricedSearchState:
        """Return a placement to be changed."""
        scorer = self.final_state.fresh(placement)
        prices = np.array([self.points.get(name, 0) for name in scorer.names], dtype=np.int64)
        most = self.final_state.all_points
        every = [int((most[name] * self.size).sum()) for name in scorer.names]
        return PricedSearchState(scorer, Estimates(scorer, prices), prices, every)

    def tables(self) -> ScoreTables | None:
        """Return what the score is made of, if all plugins are known well enough."""
        return score_tables(self.final_state.fresh(Placement.of(())), self.points, self.size)

    def relaxation(self, start: Placement, limit: int | None = None) -> Sequence[Part]:
        """Return what the points missed cost at least, by plugin, where so many pods may move."""
        return self._relaxation(start, limit).parts(range(len(self.size)))

    def relaxations(self, start: Placement, limit: int | None, at_once: int) -> Iterator[tuple[range, Sequence[Part]]]:
        """Yield the same for so many classes at a time."""
        relaxation = self._relaxation(start, limit)
        for first in range(0, len(self.size), at_once):
            classes = range(first, min(first + at_once, len(self.size)))
            yield classes, relaxation.parts(classes)

    def _relaxation(self, start: Placement, limit: int | None = None) -> Relaxation:
        known, empty = self.final_state.scorer(start), self.final_state.fresh(Placement.of(()))
        return Relaxation(known, empty, start, self.points, self.size, limit)

    def details(
        self, start: Placement, upper: Ints, waiting: Ints, enough: Callable[[], bool] = lambda: False
    ) -> Sequence[Detail]:
        """Return the same in more detail."""
        return detailed(self._relaxation(start), Counts(self.size, upper, waiting), enough)


@dataclass(frozen=True, slots=True, eq=False)
class PricedSearchState:
    """A placement that is changed pod by pod, with the cost of the points missed.

    Parameters
    ----------
    prices
        ``[p]`` cost of a point of each plugin.
    every
        ``[p]`` all points that pods can have, in units.
    """

    scorer: FinalStateScorer
    estimates: Estimates
    prices: Ints
    every: Sequence[int]

    @property
    def cost(self) -> int:
        """The cost of the placement."""
        points = zip(self.every, self.scorer.points.values(), self.prices.tolist(), strict=True)
        return sum(-((had - most) * price // self.scorer.unit) for most, had, price in points)

    @property
    def placement(self) -> Placement:
        """The placement."""
        return self.scorer.placement()

    def shift(self, c: int, source: int, target: int) -> None:
        """Move a pod of a class from one node to another."""
        self.scorer.shift(c, source, target)

    def begin(self) -> None:
        """Remember the placement for `roll_back`."""
        self.scorer.begin()

    def roll_back(self) -> None:
        """Return to the placement at `begin`."""
        self.scorer.roll_back()

    def keep(self) -> None:
        """Keep the moves since `begin`."""
        self.scorer.keep()

    def estimate(self, c: int, node: int) -> tuple[Ints, Bools]:
        """Estimate what a move of a pod from a node costs, by target, and return the feasible targets."""
        gain, feasible = self.estimates.gains(c, node)
        change: Ints = np.rint(-gain / self.scorer.unit).astype(np.int64)
        return change, feasible
