"""The variance of utilization, as a sum of convex curves of the loads of nodes.

``Σ_n (a_n/ā)·(100·u_n/a_n − 100·μ)²`` for nodes of capacity ``a_n`` (``ā`` on average) and load ``u_n``. With every pod
placed this is the number of nodes times the capacity-weighted variance, in percentage points squared: the mean ``μ`` is
then a constant, which makes the term separable by node.

A curve is made of chords of the square. Where the pods can make only few different loads, every such load is a corner,
and the value is the square itself, rounded to a whole unit of its tier. Elsewhere corners are so dense that a chord
exceeds the square by at most `ERROR` of it or by `LEAST_ERROR`. What a placement is worth does not depend on which of
its pods may move: every pod is rounded by itself, the mean is that of all pods, and corners are loads that pods could
make if only those stayed that are tied to their node, so that the curve is the same for every executor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.errors import InputError
from stowplan.models.platform import resource as of_machines
from stowplan.models.problem import NodeCurve, Origin
from stowplan.plugins_compat.curves import convex, exact, stack
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.view import ScoreView

SCALE = 1_000_000
"""Whole units for each percentage point squared: enough for slopes to differ by several units from piece to piece."""

FINEST = 1_000_000
"""Units of load, at most, in a node of average size. Coarser ones that all requests are multiples of come first."""

ERROR = 1e-4
"""By how much of the square a chord may exceed it."""

LEAST_ERROR = 1e-4
"""By how many percentage points squared a chord may exceed the square, close to the mean."""

FEW = 512
"""Corners of a curve, at most, so that each load that can be reached is one."""

MOST_LOAD = 100.0
"""Load of a node, as a fraction of what it offers, of which squares are still taken."""


def variance(view: ScoreView, resource: str, weight: float, *, alike: bool = False) -> NodeCurve:
    """Return ``weight`` times the variance of a resource.

    Parameters
    ----------
    resource
        Its name; of a resource of machines without Kubernetes, that of the platform's file.
    weight
        Whole units of the tier for each percentage point squared.
    alike
        Every node counts as one, without the factor ``a_n/ā``. The mean of utilizations is then a constant only where
        all nodes are of one size; elsewhere it is taken as it is today, waiting pods shared out alike.

    Raises
    ------
    InputError
        If the resource is unknown, or a node is overcommitted beyond all sense.
    """
    row = view.state.resources.get(resource, view.state.resources.get(of_machines(resource)))
    if row is None:
        field = "evenness" if alike else "variance"
        raise InputError(f"no node offers {resource!r} and no pod requests it", obj="objective", field=field)
    capacity = view.state.allocatable[row]
    here = capacity > 0
    fullness = view.today[row][here] / capacity[here]
    highest = float(fullness.max(initial=1.0))
    if highest > MOST_LOAD:
        node = view.state.nodes[int(np.flatnonzero(here)[fullness.argmax()])].name
        problem = f"its pods request {highest:,.0f} times what it offers; the variance of that is not computed"
        raise InputError(problem, obj=f"Node {node}", field=resource)
    average = float(capacity[here].mean()) if here.any() else 1.0
    unit = _unit(view, row, average)
    demand = np.array([_amount(view, signature, row, unit) for signature in view.signatures], dtype=np.int64)
    held = _held(view, row, unit)
    mean = _mean(view, row, alike=alike)
    sizes, curve = np.unique(capacity[here], return_inverse=True)
    which = np.full(view.state.size, -1, dtype=np.int64)
    which[here] = curve
    kept = {signature: sum(nodes.values()) for signature, nodes in view.kept.items()}
    sums = _sums(
        [*demand.tolist(), *(_amount(view, signature, row, unit) for signature in kept)],
        [*view.counts.tolist(), *kept.values()],
    )
    tied = held - _kept(view, row, unit)
    family = []
    for k, size in enumerate(sizes.tolist()):
        square = _Square(size / unit, mean, weight if alike else weight * size / average)
        reached = _reached(sums, tied[which == k])
        if reached is not None:
            family.append(exact(square, reached))
        else:
            today = view.today[row][which == k] / unit
            family.append(convex(square, [*square.corners(highest), *_some(today)], round(mean * size / unit)))
    curves = stack(family) if family else convex(lambda x: 0.0, (0,), 0)
    return NodeCurve(Origin("evenness" if alike else "variance", resource), demand, held, which, curves)


class _Square:
    """``weight · (100·x/capacity − 100·mean)²`` of a load ``x``, all in units of load.

    Parameters
    ----------
    mean
        Utilization of all nodes together, as a fraction.
    """

    def __init__(self, capacity: float, mean: float, weight: float) -> None:
        self._capacity, self._mean, self._weight = capacity, mean, weight

    def __call__(self, load: float) -> float:
        return self._weight * (100 * load / self._capacity - 100 * self._mean) ** 2

    def corners(self, highest: float) -> list[int]:
        """Return the loads at which the curve has its corners, up to a fraction ``highest`` of the capacity.

        A chord of length ``h`` exceeds a square by at most ``h²/4``. So two corners may be ``2·√LEAST_ERROR`` apart,
        and farther from the mean, at a distance ``d`` of it, ``2·√ERROR·d``.
        """
        least, ratio = 2 * math.sqrt(LEAST_ERROR), 2 * math.sqrt(ERROR)
        near = least / ratio
        reach = max(highest - self._mean, self._mean) * 100
        steps = 2 + max(0, math.ceil(math.log(max(reach, near) / near) / math.log1p(ratio)))
        apart = np.concatenate([np.arange(0, near, least), near * (1 + ratio) ** np.arange(steps)])
        loads = (np.concatenate([-apart, apart]) / 100 + self._mean) * self._capacity
        return [int(load) for load in np.rint(loads) if load >= 0]


def _unit(view: ScoreView, row: int, average: float) -> int:
    """Return the unit of load: the largest that all requests are multiples of, or as fine as `FINEST` lets it be."""
    requests = {int(view.state.vector(signature)[row]) for signature in view.state.signatures.all}
    return max(1, math.gcd(*requests), math.ceil(average / FINEST))


def _amount(view: ScoreView, signature: Signature, row: int, unit: int) -> int:
    return (int(view.state.vector(signature)[row]) + unit // 2) // unit


def _held(view: ScoreView, row: int, unit: int) -> Ints:
    """``[n]`` what fixed pods make of the load of each node, each pod rounded by itself."""
    held = np.zeros(view.state.size, dtype=np.int64)
    for signature in view.state.signatures.all:
        if amount := _amount(view, signature, row, unit):
            for node, count in view.state.placed[signature.index].items():
                held[node] += amount * count
    return held


def _kept(view: ScoreView, row: int, unit: int) -> Ints:
    """``[n]`` the part of it of pods that only the user or the executor keeps."""
    kept = np.zeros(view.state.size, dtype=np.int64)
    for signature, nodes in view.kept.items():
        for node, count in nodes.items():
            kept[node] += _amount(view, signature, row, unit) * count
    return kept


def _mean(view: ScoreView, row: int, *, alike: bool = False) -> float:
    """Return the utilization of all nodes that offer the resource.

    Waiting pods count as far as some node could hold them, and as far as there is capacity at all.
    """
    capacity = view.state.allocatable[row]
    here = capacity > 0
    demand = np.array([view.state.vector(signature)[row] for signature in view.signatures], dtype=np.int64)
    placed, offered = float(view.today[row][here].sum()), float(capacity[here].sum())
    joining = float((demand * view.waiting)[view.placeable].sum())
    joined = min(joining, max(0.0, offered - placed))
    if alike and here.any():
        sizes = capacity[here]
        return float((view.today[row][here] / sizes).mean()) + joined / len(sizes) * float((1 / sizes).mean())
    return (placed + joined) / max(1.0, offered)


def _sums(demand: Sequence[int], counts: Sequence[int]) -> set[int] | None:
    """Return every load that some of the pods make together; ``None`` if there are more than `FEW`."""
    sums = {0}
    for amount, count in zip(demand, counts, strict=True):
        if not amount:
            continue
        if count >= FEW:
            return None
        sums = {total + k * amount for total in sums for k in range(count + 1)}
        if len(sums) > FEW:
            return None
    return sums


def _reached(sums: set[int] | None, held: Ints) -> set[int] | None:
    """Return every load that a node of one size can have, beside what is held there; ``None`` if they are many."""
    if sums is None or len(sums) * len(bases := set(held.tolist())) > FEW:
        return None
    return {base + total for base in bases for total in sums}


def _some(loads: Iterable[float]) -> Sequence[int]:
    """Return the whole loads of today, if they are few: at those the curve is exact."""
    distinct = {round(load) for load in loads}
    return sorted(distinct) if len(distinct) <= FEW // 4 else ()
