"""The kinds of terms, which are costs; no others exist.

The value of a term is a whole number, never negative. A tier is a weighted sum of terms; tiers are minimized one after
the other. The formulas are in ``docs/model.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem.axes import ClassSet, PerClass, PerNode
from stowplan.models.problem.rules import Held, Origin, Topology

POINTS = 100
"""Highest score of a scheduler plugin."""


FAR = 1 << 50
"""Where the padding pieces of a curve begin; no load reaches it."""


@dataclass(frozen=True, slots=True, eq=False)
class Violation:
    """All constraint violations, each unit at the penalty weight of its rule."""

    origin: Origin


@dataclass(frozen=True, slots=True, eq=False)
class Unplaced:
    """``Σ_c cost[c] · (unscheduled pods of c)``."""

    origin: Origin
    cost: PerClass


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """``Σ_c cost[c] · Σ_n max(0, start[c,n] − y[c,n])``: pods that leave the node they started on."""

    origin: Origin
    cost: PerClass


@dataclass(frozen=True, slots=True, eq=False)
class MovePeak:
    """``cost · max_g Σ_{c in g} Σ_n max(0, start[c,n] − y[c,n])``: the most pods of one group that leave their node.

    This is the service move cost of the ROADEF/EURO challenge 2012.

    Parameters
    ----------
    group
        ``[c]`` the group of the class, or -1.
    """

    origin: Origin
    cost: int
    group: PerClass


@dataclass(frozen=True, slots=True, eq=False)
class Prefer:
    """``Σ_{c,n} table[row[c], n] · y[c,n]``."""

    origin: Origin
    row: PerClass
    table: PerNode


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """A family of piecewise linear functions on the whole numbers, with whole slopes.

    Parameters
    ----------
    start
        ``[k, j]`` where piece ``j`` of curve ``k`` begins, increasing in ``j``. The first piece goes on to the left
        of its start for ever, as the last one does to the right. Rows are padded by repeating their last piece
        far to the right.
    slope
        ``[k, j]`` rise per unit along the piece.
    value
        ``[k, j]`` the function's value where the piece begins.
    """

    start: Ints
    slope: Ints
    value: Ints

    def at(self, curve: Ints, x: Ints) -> Ints:
        """Evaluate ``curve[i]`` at ``x[i]``, for arrays of one length."""
        if len(self.start) == 1:
            return self.first(x)
        piece = np.empty(len(x), dtype=np.int64)
        used = np.flatnonzero(np.bincount(curve)).tolist()
        for k in used:
            here = curve == k if len(used) > 1 else slice(None)
            piece[here] = np.maximum(0, np.searchsorted(self.start[k], x[here], side="right") - 1)
        values: Ints = self.value[curve, piece] + self.slope[curve, piece] * (x - self.start[curve, piece])
        return values

    def first(self, x: Ints) -> Ints:
        """Evaluate the first curve."""
        start = self.start[0]
        piece = np.maximum(0, start.searchsorted(x, side="right") - 1)
        values: Ints = self.value[0][piece] + self.slope[0][piece] * (x - start[piece])
        return values

    @property
    def convex(self) -> bool:
        """Whether every curve of the family is convex."""
        return bool(np.all(np.diff(self.slope, axis=1) >= 0))


@dataclass(frozen=True, slots=True, eq=False)
class NodeCurve:
    """``Σ_n f_n(held[n] + Σ_c demand[c]·y[c,n])`` with ``f_n = curves[curve[n]]``.

    A load may be any linear form, such as twice one resource less another: demands, held amounts and loads may be
    negative. A curve must not be, at any load that its node can have.

    Parameters
    ----------
    demand, held
        ``[c]``, ``[n]`` whole units, of either sign.
    curve
        ``[n]`` which curve of the family belongs to the node, or -1 if the node does not count.
    """

    origin: Origin
    demand: PerClass
    held: PerNode
    curve: PerNode
    curves: Curves


@dataclass(frozen=True, slots=True, eq=False)
class DomainCurve:
    """``Σ_d f(held[d] + Σ_{c in group} y[c,d])`` with the single curve of ``curves``."""

    origin: Origin
    group: ClassSet
    topology: Topology
    held: Ints
    curves: Curves


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """One resource as a `NodeScore` sees it.

    Parameters
    ----------
    demand, held, capacity
        ``[c]``, ``[n]``, ``[n]`` in one unit. A node with capacity 0 is not scored on this resource.
    weight
        Weight of the resource inside the score.
    """

    demand: PerClass
    held: PerNode
    capacity: PerNode
    weight: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class NodeScore:
    """``cost · Σ_n k_n · (100 − score_n)``, where ``k_n`` pods are on ``n`` and ``score_n`` depends on its usage.

    With ``u_r`` the usage and ``a_r`` the capacity of resource ``r``:

    - ``least``: ``⌊Σ_r w_r·⌊100·(a_r − u_r)/a_r⌋ / Σ_r w_r⌋``, a part being 0 when ``u_r > a_r``;
    - ``most``: ``⌊Σ_r w_r·⌊100·min(u_r, a_r)/a_r⌋ / Σ_r w_r⌋``;
    - ``balanced``: ``⌊100 − 50·|f_1 − f_2|⌋`` with ``f_r = min(1, u_r/a_r)``, for two resources.
    """

    origin: Origin
    kind: Literal["least", "most", "balanced"]
    loads: tuple[Load, ...]
    cost: int
    scored: PerClass


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """``cost`` for every pair (seeker, other target) in one domain of the topology, or not in one.

    ``together`` says whether pairs in one domain cost, or all others. An unscheduled pod is in no domain.

    Parameters
    ----------
    pairs
        Maximum number of pairs, so that the cost of pairs in different domains is never negative.
    """

    origin: Origin
    seekers: ClassSet
    targets: ClassSet
    topology: Topology
    held: Held
    cost: int
    together: bool
    pairs: int


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """``Σ_n cost[n] · [some pod is on n]``, where ``held[n]`` pods outside the problem count too."""

    origin: Origin
    cost: PerNode
    held: PerNode


Term = Violation | Unplaced | Move | MovePeak | Prefer | NodeCurve | DomainCurve | NodeScore | Pair | Open

CURVES = (NodeCurve, DomainCurve)
"""Terms that are sums of curves: of the loads of nodes, or of the number of pods in domains."""
