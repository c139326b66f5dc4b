"""Convex functions as piecewise linear curves with whole slopes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.problem import FAR, Curves

SLOPE_LIMIT = 1 << 40


def convex(function: Callable[[float], float], points: Iterable[int], anchor: int) -> Curves:
    """Return the curve through a convex function at the given whole numbers.

    Slopes are rounded to whole numbers, which keeps the curve convex and its values whole; it is exact at
    ``anchor``, which should be near the function's minimum, so that rounding errors grow with the distance from it.
    """
    start, slope, value = _pieces(function, sorted(set(points) | {0, anchor}), anchor)
    return Curves(start[None, :], slope[None, :], value[None, :])


def stack(curves: Sequence[Curves]) -> Curves:
    """Put single curves together as one family."""
    width = max((c.start.shape[1] for c in curves), default=1)

    def padded(array: Ints, fill: int | None) -> Ints:
        extra = width - array.shape[1]
        return (
            np.pad(array, ((0, 0), (0, extra)), "constant", constant_values=fill)
            if fill is not None
            else (np.pad(array, ((0, 0), (0, extra)), "edge"))
        )

    return Curves(
        np.vstack([padded(c.start, FAR) for c in curves]),
        np.vstack([padded(c.slope, None) for c in curves]),
        np.vstack([padded(c.value, 0) for c in curves]),
    )


def _pieces(function: Callable[[float], float], xs: list[int], anchor: int) -> tuple[Ints, Ints, Ints]:
    rises = [
        max(-SLOPE_LIMIT, min(SLOPE_LIMIT, round((function(b) - function(a)) / (b - a))))
        for a, b in itertools.pairwise(xs)
    ] or [0]
    values = [0] * len(xs)
    middle = xs.index(anchor)
    values[middle] = round(function(anchor))
    for i in range(middle + 1, len(xs)):
        values[i] = values[i - 1] + rises[i - 1] * (xs[i] - xs[i - 1])
    for i in range(middle - 1, -1, -1):
        values[i] = values[i + 1] - rises[i] * (xs[i + 1] - xs[i])
    slopes = rises if len(xs) > 1 else [0]
    kept = len(slopes)  # the last piece goes on with its slope forever
    return (
        np.array(xs[:kept], dtype=np.int64),
        np.array(slopes, dtype=np.int64),
        np.array(values[:kept], dtype=np.int64),
    )
